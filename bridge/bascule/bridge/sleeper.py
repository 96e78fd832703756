"""One sleep of a script: a timer that outlives the process, because its end is in the journal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass


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
