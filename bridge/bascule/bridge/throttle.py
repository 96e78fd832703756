"""Holds calls back before they are dispatched: rate limits of tools, and a circuit breaker for each tool.

One for all runs of an executor. Times are of a clock that only rises; nothing here outlives the process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bascule.bridge.failure import CallFailed
from bascule.tools import AnyTool
from bascule.wire import ToolFailure

if TYPE_CHECKING:
    from limits.strategies import MovingWindowRateLimiter

OPENS_AFTER: Final = 5
"""Transient failures in a row after which a tool is not called for a while."""

OPEN_S: Final = 30.0
"""Seconds for which it is not; then one call is let through, and decides."""

MAX_RATE_WAIT_S: Final = 10.0
"""Longest wait for a place under a rate limit; beyond it the call fails and may be repeated."""


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    open_until: float = 0.0


class Throttle:
    """Admits calls.

    Args:
        read: a clock that only rises, in seconds.
    """

    def __init__(self, *, read: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._circuits: dict[str, _Circuit] = {}
        self._limiter: MovingWindowRateLimiter | None = None
        self._rates: dict[str, Any] = {}

    async def admit(self, tool: AnyTool) -> None:
        """Return when a call may be dispatched.

        Raises:
            CallFailed: ``unavailable``: the tool's circuit is open; ``budget_exceeded``: no place in time.
        """
        if tool.rate is not None:
            await self._wait_for_place(tool, tool.rate)
        circuit = self._circuits.get(tool.name)
        if circuit is None or circuit.failures < OPENS_AFTER:
            return
        left_s = circuit.open_until - self._read()
        if left_s > 0:
            failure = ToolFailure(
                kind="unavailable",
                message=f"{tool.name} failed {circuit.failures} times in a row and is not called for a while",
                suggestion=f"go on without it, or try again in {max(1.0, left_s):.0f} s",
                retryable=True,
            )
            raise CallFailed(failure, "not_started")
        circuit.open_until = self._read() + OPEN_S  # for everybody but this one call

    def note(self, tool: AnyTool, *, transient_failure: bool) -> None:
        """Take note of how a call ended; the tool's own refusals are no failures."""
        if not transient_failure:
            self._circuits.pop(tool.name, None)
            return
        circuit = self._circuits.setdefault(tool.name, _Circuit())
        circuit.failures += 1
        if circuit.failures >= OPENS_AFTER:
            circuit.open_until = self._read() + OPEN_S

    async def _wait_for_place(self, tool: AnyTool, rate: str) -> None:
        limiter = self._limiter
        if limiter is None:
            from limits.storage import MemoryStorage  # only executors with such tools pay for the import
            from limits.strategies import MovingWindowRateLimiter

            limiter = self._limiter = MovingWindowRateLimiter(MemoryStorage())
        if rate not in self._rates:
            from limits import parse

            self._rates[rate] = parse(rate)
        item = self._rates[rate]
        until = self._read() + min(MAX_RATE_WAIT_S, tool.timeout_s)
        while not limiter.hit(item, tool.name):
            left_s = max(0.01, limiter.get_window_stats(item, tool.name).reset_time - time.time())
            if self._read() + left_s > until:
                failure = ToolFailure(
                    kind="budget_exceeded",
                    message=f"{tool.name} may be called {rate}, which is used up",
                    suggestion=f"try again in {left_s:.0f} s, or ask for more in one call",
                    retryable=True,
                )
                raise CallFailed(failure, "not_started")
            await asyncio.sleep(left_s)
