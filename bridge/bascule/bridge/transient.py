"""Which failures of a tool pass by themselves, and how long to wait before trying again.

Reads what the common HTTP libraries put on their exceptions (a status, a Retry-After header), without
importing any of them. Exceptions come from tools, which the operator chose.
"""

from __future__ import annotations

import email.utils
import time
from typing import Any, Final

from bascule.tools import AnyTool

TRANSIENT_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
REFUSED_STATUSES: Final = frozenset({401, 403})
"""The service does not accept the host's own credentials."""


def is_transient(error: BaseException, tool: AnyTool) -> bool:
    """Tell whether the same call may succeed in a moment.

    A connection error counts when it comes from the network and has its errno. One that a tool raises in its
    own words is an answer to the script, which may be written to deal with it, unless the tool declares it.
    """
    if isinstance(error, ConnectionError) and error.errno is not None:
        return True
    if tool.transient and isinstance(error, tool.transient):
        return True
    return find_status(error) in TRANSIENT_STATUSES


def find_status(error: BaseException) -> int | None:
    """Return the HTTP status an exception carries (httpx, requests, urllib, aiohttp), or None."""
    for holder in (getattr(error, "response", None), error):
        for name in ("status_code", "status", "code"):
            found = getattr(holder, name, None)
            if isinstance(found, int) and not isinstance(found, bool) and 100 <= found <= 599:
                return found
    return None


def find_retry_after_s(error: BaseException) -> float | None:
    """Return the seconds a service asked to wait, or None."""
    own = getattr(error, "retry_after", None)
    if isinstance(own, int | float) and not isinstance(own, bool):
        return max(0.0, float(own))
    for holder in (getattr(error, "response", None), error):
        read: Any = getattr(getattr(holder, "headers", None), "get", None)
        if read is None:
            continue
        text: object = read("Retry-After") or read("retry-after")
        if isinstance(text, str):
            return _read_retry_after(text)
    return None


def _read_retry_after(text: str) -> float | None:
    if text.strip().isdigit():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
