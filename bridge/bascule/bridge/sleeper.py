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
    timer: asyncio.TimerHandle | None

    def go_on(self, wake: Callable[[], None]) -> None:
        """Start the timer for what is left; a clock that went back never makes a sleep longer than it was."""
        if self.timer is None:
            left_s = min(max(self.due - time.time(), 0.0), self.seconds)
            self.timer = asyncio.get_running_loop().call_later(left_s, wake)

    def stop(self) -> None:
        """Forget the timer."""
        if self.timer is not None:
            self.timer.cancel()
