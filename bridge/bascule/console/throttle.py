"""Rate limits of requests: of one principal, and of attempts to log in from one address."""

from __future__ import annotations

from typing import Final

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from bascule.console.problems import Problem

LOGINS_PER_MINUTE: Final = 10
"""Failed attempts of one address."""


class Throttle:
    """Counts in memory; a restart forgets.

    Args:
        requests_per_minute: of one principal.
    """

    def __init__(self, *, requests_per_minute: int) -> None:
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._requests = RateLimitItemPerMinute(requests_per_minute)
        self._logins = RateLimitItemPerMinute(LOGINS_PER_MINUTE)

    def admit(self, name: str) -> None:
        """Count one request of a principal.

        Raises:
            Problem: 429.
        """
        if not self._limiter.hit(self._requests, "request", name):
            raise Problem(429, "too_many_requests", "wait a little", headers={"Retry-After": "5"})

    def check_address(self, address: str) -> None:
        """Refuse an address with too many failed attempts.

        Raises:
            Problem: 429.
        """
        if not self._limiter.test(self._logins, "login", address):
            raise Problem(
                429, "too_many_logins", "too many wrong tokens; wait a minute", headers={"Retry-After": "60"}
            )

    def note_failure(self, address: str) -> None:
        """Count one failed attempt."""
        self._limiter.hit(self._logins, "login", address)
