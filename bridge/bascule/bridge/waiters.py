"""Who waits for a change of a store, on whichever event loop; woken from any thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading


class Waiters:
    """Wakes every waiting task at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}

    def wake(self) -> None:
        """Wake all who wait now."""
        if not self._waiting:
            return
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for future, loop in waiting.items():
            with contextlib.suppress(RuntimeError):  # that loop is closed, and its tasks with it
                loop.call_soon_threadsafe(_end, future)

    async def wait(self, timeout_s: float) -> bool:
        """Wait to be woken; return False when ``timeout_s`` passed instead."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            self._waiting[future] = loop
        timer = loop.call_later(max(timeout_s, 0.0), _end, future)
        try:
            await future
            return future not in self._waiting
        finally:
            timer.cancel()
            with self._lock:
                self._waiting.pop(future, None)


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
