"""Errors of the models package: about a server or the set-up, never about what a model wrote.

What a model wrote and what became of it is in the turn and the answer; these end the loop, with a transcript
that can be sent again.
"""

from __future__ import annotations

from bascule.wire import BasculeError


class ModelError(BasculeError):
    """Raised when a model's server gave no turn; retries are the SDK's own and came to an end before.

    Codes: ``model_unreachable`` (no connection, timeout: try again), ``model_failed`` (429 or 5xx: try again
    later), ``model_rejected`` (another 4xx: the request or the credentials are wrong), ``response_invalid``
    (what came back is not what the API promises).
    """


class SdkMissing(BasculeError):
    """Raised when the SDK of an API is not installed (``sdk_missing``); the message names the extra."""

    def __init__(self, extra: str) -> None:
        super().__init__("sdk_missing", f"this API needs its SDK: pip install 'bascule[{extra}]'")


class StateInvalid(BasculeError):
    """Raised when a saved state of an agent cannot be used (``state_invalid``); the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__("state_invalid", message)
