"""A sandbox that was started ahead of its run: its guest waits, its Hello is checked and kept for the bridge.

An idle guest has nothing to say. One that speaks or dies is never given to a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from bascule.sandbox.sandbox import Ending, Sandbox


@runtime_checkable
class EndsFirst(Protocol):
    """A sandbox that can tell how its guest ended before it is removed."""

    async def end(self) -> Ending:
        """Wait for the guest to exit, or kill it, as ``Sandbox.close`` does; remove nothing yet."""
        ...


class WarmSandbox:
    """One warm sandbox, idle and then leased to one run. Made by the pool only.

    Args:
        inner: the started sandbox.
        hello: payload of its Hello, given to the first `receive`.
        stirred: called when the guest speaks or dies while it is idle.
        returned: called once with the sandbox when its run is over; it must have it removed.
    """

    def __init__(
        self,
        inner: Sandbox,
        hello: bytes,
        *,
        stirred: Callable[[WarmSandbox], None],
        returned: Callable[[WarmSandbox], None],
    ) -> None:
        self.inner = inner
        self._hello: bytes | None = hello
        self._returned = returned
        self._closing: asyncio.Task[Ending] | None = None
        # The read that watches the idle guest becomes the run's first read: no byte can fall between.
        self._watch: asyncio.Task[bytes] | None = asyncio.ensure_future(inner.receive())
        self._watch.add_done_callback(lambda watch: self._on_news(watch, stirred))
        self._leased = False
        self.principal = ""
        """Whose run it serves, or served; only theirs may come after it in the same container."""
        self.since_s = time.monotonic()

    @property
    def is_alive(self) -> bool:
        """Whether the idle guest is still silent and there."""
        return self._watch is not None and not self._watch.done()

    def lease(self, principal: str) -> None:
        """From here on what the guest says is the run's business."""
        self._leased = True
        self.principal = principal

    async def send(self, frame: bytes) -> None:
        """See ``Sandbox.send``."""
        await self.inner.send(frame)

    async def receive(self) -> bytes:
        """See ``Sandbox.receive``."""
        if self._hello is not None:
            hello, self._hello = self._hello, None
            return hello
        if self._watch is not None:
            watch, self._watch = self._watch, None
            return await watch
        return await self.inner.receive()

    async def kill(self) -> None:
        """See ``Sandbox.kill``."""
        await self.inner.kill()

    async def close(self) -> Ending:
        """Return the ending as soon as it is known; what is left is removed behind the caller's back.

        The pool's ``close`` waits for all such removals.
        """
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        return await asyncio.shield(self._closing)

    async def _close(self) -> Ending:
        try:
            if isinstance(self.inner, EndsFirst):
                return await self.inner.end()
            return await self.inner.close()
        finally:
            self._returned(self)

    async def remove(self) -> None:
        """Remove all that is left, ending the guest if it still runs."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({watch})
        await self.inner.close()

    def _on_news(self, watch: asyncio.Task[bytes], stirred: Callable[[WarmSandbox], None]) -> None:
        if watch.cancelled():
            return
        watch.exception()  # taken note of; a run that reads gets it from the task itself
        if not self._leased:
            stirred(self)
