"""What SDKs raise while they talk to a server, in our words, without importing any of them."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from bascule.models.errors import ModelError

_SHOWN_CHARS: Final = 500
_UNREACHABLE: Final = (
    "APIConnectionError",
    "TransportError",
    "RequestError",
    "ConnectionError",
    "TimeoutError",
)
_RETRYABLE: Final = (408, 409, 429)


@contextmanager
def translated(api: str) -> Generator[None]:
    """Turn what an SDK raises into a `ModelError`; the original is its cause.

    Raises:
        ModelError: see there.
    """
    try:
        yield
    except (ModelError, asyncio.CancelledError):
        raise
    except Exception as error:  # whatever an SDK makes of a hostile server's bytes
        raise _classify(api, error) from error


def invalid(api: str, what: str) -> ModelError:
    """Return the error for a response that is not what the API promises."""
    return ModelError("response_invalid", f"{api}: {what}")


def _classify(api: str, error: Exception) -> ModelError:
    shown = f"{type(error).__name__}: {str(error)[:_SHOWN_CHARS]}"
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        status = getattr(error, "code", None)
    if isinstance(status, int) and status >= 400:
        code = "model_failed" if status >= 500 or status in _RETRYABLE else "model_rejected"
        return ModelError(code, f"{api} answered with status {status}: {shown}")
    names = {each.__name__ for each in type(error).__mro__}
    if names & set(_UNREACHABLE):
        return ModelError("model_unreachable", f"{api} cannot be reached: {shown}")
    return invalid(api, f"its answer cannot be read: {shown}")
