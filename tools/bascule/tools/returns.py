"""Whether a tool gave what it declared.

The declared type is what models are told, so a result of another shape is a bug worth stopping. The check is
lenient where an honest tool may be sloppy: a dict for a model, an int for a float, text for a Decimal. Either
the Python value or its JSON form must fit.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bascule.tools.canonical import join_path
from bascule.tools.errors import ResultInvalid

MAX_MESSAGE_CHARS = 500

LARGE_BYTES = 64 << 10
"""Results from this size on are checked with the garbage collector off: it makes the check super-linear."""


def check_result(tool: str, adapter: TypeAdapter[Any], value: object, encoded: bytes) -> None:
    """Check a result against its declared type.

    Args:
        value: what the function returned; it has a JSON form.
        encoded: this form.

    Raises:
        ResultInvalid: ``result_type_mismatch`` with the path of the first mismatch.
    """
    try:
        with _collector_paused(len(encoded)):
            adapter.validate_python(value)
        return
    except Exception:  # validators are the tool's own code; the JSON form decides
        pass
    try:
        adapter.validate_json(encoded, by_alias=True, by_name=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ""
        for step in first["loc"]:
            path = join_path(path, step)
        reason = f"{first['msg']}, got {first['input']!r:.80}"
        raise _mismatch(tool, path, reason) from error
    except Exception as error:
        raise _mismatch(tool, "", f"its validator failed: {error!r:.200}") from error


@contextlib.contextmanager
def _collector_paused(size_bytes: int) -> Generator[None]:
    """Keep the garbage collector from going through a large result again and again while it is checked."""
    if size_bytes < LARGE_BYTES or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _mismatch(tool: str, path: str, reason: str) -> ResultInvalid:
    where = f" at {path}" if path else ""
    message = f"{tool}() did not return its declared type{where}: {reason}"[:MAX_MESSAGE_CHARS]
    return ResultInvalid("result_type_mismatch", message, tool=tool, path=path)
