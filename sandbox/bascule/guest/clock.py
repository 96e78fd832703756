"""The script's clock. Decides what time it is; trusts only what the host stamped on the last delivery.

The clock stands still while the script runs, so a run replayed from its journal sees the same times.
"""

from __future__ import annotations

import datetime


class Clock:
    """Time as the script sees it.

    Args:
        now: seconds since the epoch, UTC.
    """

    __slots__ = ("_now", "_start")

    def __init__(self, now: float) -> None:
        self._now = now
        self._start = now

    @property
    def now(self) -> float:
        """Seconds since the epoch, UTC, of the last delivery."""
        return self._now

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began; what monotonic clocks count."""
        return self._now - self._start

    def set(self, now: float) -> None:
        """Move to the time of a delivery. Never backwards: a script may rely on order."""
        self._now = max(now, self._now)

    def utc(self) -> datetime.datetime:
        """Return the time as an aware datetime in UTC."""
        return datetime.datetime.fromtimestamp(self._now, datetime.UTC)
