"""Times and ages as people read them."""

from __future__ import annotations

import time
from typing import Final

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"))


def describe_time(at: float) -> str:
    """Return a time (seconds since the epoch) in UTC, to the second."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
    except (OverflowError, ValueError, OSError):
        return "at no time that a calendar has"


def describe_age(seconds: float) -> str:
    """Return a span in its largest whole unit: ``5 s``, ``3 min``, ``2 h``, ``9 d``; never below ``0 s``."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(max(seconds, 0))} s"
