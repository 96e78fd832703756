"""What one run waits for: frames of the guest, completions of calls and timers, and reasons to stop.

One reader task takes every frame as it comes, also while the guest should be silent, so that a flooding or
dying guest is noticed at once. Frames are bytes here; nothing is decoded.
"""

from __future__ import annotations

import asyncio
from collections import deque

from bascule.sandbox import Sandbox, SandboxClosed
from bascule.wire import BasculeError, FrameError

_MAX_UNREAD_FRAMES = 16


class Inbox:
    """Collects for one waiting task; everything runs on one event loop."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._frames: deque[bytes] = deque()
        self._ended: BasculeError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._room = asyncio.Event()
        self._reader = asyncio.create_task(self._read())
        self.stop: BaseException | None = None

    def wake(self) -> None:
        """Make the waiting task look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def stop_with(self, reason: BaseException) -> None:
        """Have the waiting task raise ``reason``; the first reason counts."""
        if self.stop is None:
            self.stop = reason
        self.wake()

    @property
    def has_news(self) -> bool:
        """Whether the guest said something or is gone."""
        return bool(self._frames) or self._ended is not None

    def take_frame(self) -> bytes | None:
        """Return the next payload, or None when there is none yet.

        Raises:
            SandboxClosed: the guest is gone and everything it said was taken.
            FrameError: the guest broke the framing.
        """
        if self._frames:
            self._room.set()
            return self._frames.popleft()
        if self._ended is not None:
            raise self._ended
        return None

    async def wait(self, timeout_s: float | None) -> None:
        """Wait until something came, was woken, or ``timeout_s`` passed; may return early for nothing."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        if timeout_s is not None:
            self._set_alarm(loop, loop.time() + timeout_s)
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def close(self) -> None:
        """Stop reading."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._reader.cancel()
        await asyncio.wait({self._reader})

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        """Have the waiting task woken at ``at``; an alarm that rings before stays, and is set anew then.

        Deadlines of a run move later with every call: a timer for each would cost more than it tells.
        """
        if self._alarm is not None:
            if self._alarm.when() <= at:
                return
            self._alarm.cancel()
        self._alarm = loop.call_at(at, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self.wake()

    async def _read(self) -> None:
        try:
            while True:
                payload = await self._sandbox.receive()
                self._frames.append(payload)
                self.wake()
                while len(self._frames) >= _MAX_UNREAD_FRAMES:
                    self._room.clear()
                    await self._room.wait()
        except (SandboxClosed, FrameError) as ended:
            self._ended = ended
            self.wake()
        except BasculeError as broken:
            self.stop_with(broken)
