"""CPython's own event loop on a clock that nobody waits for: a busy machine changes nothing it prints.

When nothing is ready and a timer is set, the clock jumps to the timer. Without timers it waits for threads.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class _JumpingSelector(selectors.DefaultSelector):
    """Passes time instead of waiting for it."""

    passed_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Return what is ready; let ``timeout`` seconds pass if nothing is."""
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready and timeout > 0:
            self.passed_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still while anything runs."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual clock in seconds."""
        return self._jumping.passed_s
