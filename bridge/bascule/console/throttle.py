"""Rate limits of requests: of one principal, and of attempts to log in from one address.

Sliding windows of a minute, counted in two numbers a key. Not the `limits` package, as tools have it: its
memory storage begins a thread for each hit, which was a twentieth of what a request cost here.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from bascule.console.problems import Problem

LOGINS_PER_MINUTE: Final = 10
"""Failed attempts of one address."""


MAX_KEYS: Final = 10_000
"""Principals and addresses that are counted; the one unused for longest is forgotten."""

_WINDOW_S: Final = 60.0


class _Windows:
    """Hits of each key in the last minute: those of this window and a share of those of the one before."""

    def __init__(self, limit: int, now: Callable[[], float]) -> None:
        self._limit = limit
        self._now = now
        self._counts: OrderedDict[str, tuple[int, int, int]] = OrderedDict()

    def test(self, key: str) -> bool:
        """Tell whether one more hit is within the limit."""
        now = self._now()
        _, before, count = self._read(key, now)
        return before * (1.0 - now % _WINDOW_S / _WINDOW_S) + count < self._limit

    def hit(self, key: str) -> bool:
        """Count one hit; False when it is above the limit, and then it does not count."""
        if not self.test(key):
            return False
        window, before, count = self._read(key, self._now())
        self._counts[key] = (window, before, count + 1)
        self._counts.move_to_end(key)
        if len(self._counts) > MAX_KEYS:
            self._counts.popitem(last=False)
        return True

    def _read(self, key: str, now: float) -> tuple[int, int, int]:
        window = int(now / _WINDOW_S)
        last, before, count = self._counts.get(key, (window, 0, 0))
        if last == window:
            return window, before, count
        return window, count if last == window - 1 else 0, 0


class Throttle:
    """Counts in memory; a restart forgets.

    Args:
        requests_per_minute: of one principal.
        now: seconds of a clock that only goes forward.
    """

    def __init__(self, *, requests_per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._requests = _Windows(requests_per_minute, now)
        self._logins = _Windows(LOGINS_PER_MINUTE, now)

    def admit(self, name: str) -> None:
        """Count one request of a principal.

        Raises:
            Problem: 429.
        """
        if not self._requests.hit(name):
            raise Problem(429, "too_many_requests", "wait a little", headers={"Retry-After": "5"})

    def check_address(self, address: str) -> None:
        """Refuse an address with too many failed attempts.

        Raises:
            Problem: 429.
        """
        if not self._logins.test(address):
            raise Problem(
                429, "too_many_logins", "too many wrong tokens; wait a minute", headers={"Retry-After": "60"}
            )

    def note_failure(self, address: str) -> None:
        """Count one failed attempt."""
        self._logins.hit(address)
