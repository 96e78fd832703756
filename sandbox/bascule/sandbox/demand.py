"""How many sandboxes should stand ready: as many as were asked for within the time it takes to start one.

Little's law with a memory for bursts. The floor and the ceiling are the pool's.
"""

from __future__ import annotations

from collections import deque

MEMORY_S = 30.0
"""A burst is remembered that long; then the pool shrinks again."""

_MAX_NOTED = 1024
_SMOOTHING = 0.3


class Demand:
    """The recent requests for one kind of sandbox."""

    def __init__(self) -> None:
        self._asked: deque[float] = deque(maxlen=_MAX_NOTED)
        self._start_s = 0.2
        self.leases = 0

    def note_request(self, now_s: float) -> None:
        """Note that a sandbox was asked for."""
        self._asked.append(now_s)
        self.leases += 1

    def note_start(self, took_s: float) -> None:
        """Note how long a sandbox took from the order to its hello."""
        self._start_s += _SMOOTHING * (took_s - self._start_s)

    def wanted(self, now_s: float) -> int:
        """Return the largest number of requests that fell within one start time, of the last `MEMORY_S`."""
        asked = self._asked
        while asked and asked[0] < now_s - MEMORY_S:
            asked.popleft()
        most = first = 0
        times = list(asked)
        for last, at in enumerate(times):
            while times[first] < at - self._start_s:
                first += 1
            most = max(most, last - first + 1)
        return most

    def idle_s(self, now_s: float) -> float:
        """Return how long ago the last request was, infinity when there was none."""
        return now_s - self._asked[-1] if self._asked else float("inf")
