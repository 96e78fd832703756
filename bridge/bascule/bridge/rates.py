"""Rate limits of tools: how often one is started at most, over all runs, executors and processes of a store.

A sliding window over the times of the last starts. Times are of the host's clock, because processes share
them; a time from the future (the clock went back) counts for nothing, rather than for hours.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from bascule.bridge.failure import CallFailed
from bascule.tools import AnyTool
from bascule.wire import BasculeError, ToolFailure

MAX_RATE_WAIT_S: Final = 10.0
"""Longest wait for a place under a rate limit; beyond it the call fails and may be repeated."""

_CLOCK_SLACK_S: Final = 1.0
"""How far in the future a time may lie and still be believed."""

_SHORTEST_WAIT_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Rate:
    """One limit: ``amount`` starts within any ``window_s`` seconds.

    Attributes:
        key: names what is limited, in the store.
    """

    key: str
    amount: int
    window_s: float

    def left_s(self, start: float | None, now: float) -> float:
        """Return how long the next start must wait.

        Args:
            start: time of the start that is ``amount`` back; None when there were fewer.
        """
        if start is None or start > now + _CLOCK_SLACK_S:
            return 0.0
        return max(0.0, start + self.window_s - now)


class RateFull(BasculeError):
    """Raised when a rate has no place now (``budget_exceeded``); there is one in ``left_s`` seconds."""

    def __init__(self, rate: Rate, left_s: float) -> None:
        super().__init__("budget_exceeded", f"rate {rate.key} is used up for {left_s:.2f} s")
        self.left_s = left_s


class RateTable(Protocol):
    """The starts that a store remembers."""

    def take(self, rates: Sequence[Rate]) -> None:
        """Take a place under each rate, or none at all.

        Raises:
            RateFull: one has none now.
        """
        ...


class MemoryRates:
    """Starts of one process."""

    def __init__(self) -> None:
        self._starts: dict[str, deque[float]] = {}

    def take(self, rates: Sequence[Rate]) -> None:
        """See `RateTable.take`."""
        now = time.time()
        for rate in rates:
            starts = self._starts.setdefault(rate.key, deque())
            oldest = starts[-rate.amount] if len(starts) >= rate.amount else None
            left_s = rate.left_s(oldest, now)
            if left_s > 0:
                raise RateFull(rate, left_s)
        for rate in rates:
            starts = self._starts[rate.key]
            starts.append(now)
            while len(starts) > rate.amount:
                starts.popleft()


def rate_of(tool: AnyTool) -> Rate | None:
    """Return the rate a tool declares."""
    return None if tool.rate is None else Rate(tool.name, *_read(tool.rate))


@lru_cache(maxsize=256)
def _read(text: str) -> tuple[int, float]:
    from limits import parse  # only tools with a rate pay for the import

    item = parse(text)
    return item.amount, float(item.get_expiry())


async def wait_for_place(tool: AnyTool, full: RateFull, *, since: float) -> None:
    """Wait until a rate has a place again, unless that is too long.

    Args:
        since: when the call began to wait, by `time.monotonic`.

    Raises:
        CallFailed: ``budget_exceeded``; the call may be made again later.
    """
    until = since + min(MAX_RATE_WAIT_S, tool.timeout_s)
    left_s = max(_SHORTEST_WAIT_S, full.left_s)
    if time.monotonic() + left_s > until:
        failure = ToolFailure(
            kind="budget_exceeded",
            message=f"{tool.name} may be called {tool.rate}, which is used up",
            suggestion=f"try again in {left_s:.0f} s, or ask for more in one call",
            retryable=True,
        )
        raise CallFailed(failure, "not_started")
    await asyncio.sleep(left_s)
