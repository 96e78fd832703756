"""The guest's two output streams: frames from stdout, a bounded tail of stderr.

Everything is untrusted and everything is bounded: at most one unfinished frame plus ``MAX_WAITING_BYTES`` of
finished ones are held, then the transport is paused. Once the host has stopped caring (``discard``) all
bytes are read and dropped, because a reader that stops makes the engine's kill, inspect and remove calls
hang until the stream is drained (security-facts 3.4).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from bascule.sandbox.errors import SandboxClosed
from bascule.wire import FrameError, FrameSplitter

MAX_WAITING_BYTES = 4 << 20
"""Finished frames held for a host that is slower than its guest."""

FRAME_COST_BYTES = 64
"""What keeping one frame costs beside its payload: a flood of empty ones counts too."""

STDERR_TAIL_BYTES = 8 << 10
"""Kept of the guest's stderr; a faulthandler dump of a deep stack fits."""


class GuestStream:
    """Collects what a guest writes; fed by a transport, read by one host task.

    Args:
        frame_bytes: cap on one payload.
        pause: called to stop the transport's reading of stdout.
        resume: called to continue it.
    """

    def __init__(self, *, frame_bytes: int, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._splitter = FrameSplitter(max_bytes=frame_bytes)
        self._payloads: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._paused = False
        self._pause = pause
        self._resume = resume
        self._discarding = False
        self._broken: FrameError | None = None
        self._reader: asyncio.Future[None] | None = None
        self._stderr = bytearray()
        self._ended = asyncio.Event()

    def feed_stdout(self, data: bytes) -> None:
        """Take bytes of the guest's stdout."""
        if self._discarding or self._broken is not None:
            return
        try:
            for payload in self._splitter.feed(data):
                self._payloads.append(payload)
                self._waiting_bytes += len(payload) + FRAME_COST_BYTES
        except FrameError as error:
            self._broken = error
        if self._waiting_bytes > MAX_WAITING_BYTES and not self._paused:
            self._paused = True
            self._pause()
        self._wake()

    def feed_stderr(self, data: bytes) -> None:
        """Take bytes of the guest's stderr, keeping only the tail."""
        self._stderr += data[-STDERR_TAIL_BYTES:]
        if len(self._stderr) > STDERR_TAIL_BYTES:
            del self._stderr[:-STDERR_TAIL_BYTES]

    def end(self) -> None:
        """Note that nothing more will come."""
        self._ended.set()
        self._wake()

    def discard(self) -> None:
        """Drop what is held and whatever still comes, and keep the transport reading."""
        self._discarding = True
        self._payloads.clear()
        self._waiting_bytes = 0
        self._continue()
        self._wake()

    async def receive(self) -> bytes:
        """Return the next payload.

        Raises:
            FrameError: the stream broke the framing; every later call raises it too.
            SandboxClosed: the stream ended or is being discarded.
        """
        while not self._payloads:
            if self._broken is not None:
                raise self._broken
            if self._discarding or self._ended.is_set():
                raise SandboxClosed
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        payload = self._payloads.popleft()
        self._waiting_bytes -= len(payload) + FRAME_COST_BYTES
        if self._paused and self._waiting_bytes <= MAX_WAITING_BYTES // 2:
            self._continue()
        return payload

    def forget_stderr(self) -> None:
        """Drop the tail: what comes from now on is another run's."""
        self._stderr.clear()

    async def wait_ended(self) -> None:
        """Wait until the guest's streams have ended."""
        await self._ended.wait()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._ended.is_set()

    @property
    def stderr_tail(self) -> str:
        """The last bytes of stderr as text."""
        return self._stderr.decode("utf-8", "replace")

    def _continue(self) -> None:
        if self._paused:
            self._paused = False
            self._resume()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
