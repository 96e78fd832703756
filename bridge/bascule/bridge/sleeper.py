"""The sleeps of a script: timers that outlive the process, because their ends are in the journal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial


@dataclass(slots=True)
class Sleeper:
    """One sleep: when it is due (seconds since the epoch), and its timer once the run is live."""

    due: float
    seconds: float
    line: int | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def left_s(self) -> float:
        """Seconds until it ends; a clock that went back never makes a sleep longer than it was."""
        return min(max(self.due - time.time(), 0.0), self.seconds)

    def go_on(self, wake: Callable[[], None]) -> None:
        """Start the timer for what is left."""
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(self.left_s, wake)

    def stop(self) -> None:
        """Forget the timer."""
        if self.timer is not None:
            self.timer.cancel()


class Sleeps:
    """The sleeps of one run that are not over.

    Args:
        woken: called with the number of one that is over.
    """

    def __init__(self, woken: Callable[[int], None]) -> None:
        self._woken = woken
        self._sleepers: dict[int, Sleeper] = {}

    def __len__(self) -> int:
        return len(self._sleepers)

    @property
    def dues(self) -> list[float]:
        """When they end, in seconds since the epoch."""
        return [sleeper.due for sleeper in self._sleepers.values()]

    @property
    def first(self) -> Sleeper | None:
        """The one that ends first."""
        return min(self._sleepers.values(), key=lambda sleeper: sleeper.left_s, default=None)

    def add(self, seq: int, sleeper: Sleeper, *, live: bool) -> None:
        """Take up a sleep; its time runs only in a run that is live."""
        self._sleepers[seq] = sleeper
        if live:
            sleeper.go_on(partial(self._wake, seq))

    def go_live(self) -> None:
        """Let time run."""
        for seq, sleeper in self._sleepers.items():
            sleeper.go_on(partial(self._wake, seq))

    def drop(self, seq: int) -> None:
        """Forget a sleep, if there is one of this number."""
        sleeper = self._sleepers.pop(seq, None)
        if sleeper is not None:
            sleeper.stop()

    def stop(self) -> None:
        """Wake nobody any more."""
        for sleeper in self._sleepers.values():
            sleeper.stop()

    def _wake(self, seq: int) -> None:
        del self._sleepers[seq]
        self._woken(seq)
