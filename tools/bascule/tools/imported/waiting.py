"""How long a service asks to wait (RFC 9110, Retry-After)."""

from __future__ import annotations

import email.utils
import time


def read_retry_after(text: str) -> float | None:
    """Return the seconds a header asks for, None for what says nothing."""
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit() and len(stripped) < 10:
        return float(stripped)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(stripped).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
