"""The guest at the other end: a sandbox, what it says, and the proof that it is the program we installed.

Serves one run, or the runs of one session one after the other.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Final

from bascule.bridge.errors import HandshakeError
from bascule.bridge.inbox import Inbox
from bascule.bridge.limits import Limits
from bascule.sandbox import (
    Backend,
    Ending,
    Sandbox,
    SandboxClosed,
    SandboxError,
    SandboxLimits,
    image_mismatch,
)
from bascule.wire import PROTOCOL, FrameError, Hello, decode_guest_frame
from bascule.wire.frames import GuestFrame

GUEST_OWN_BYTES: Final = 64 << 20
"""Memory the idle guest and its tmpfs may take beside what the script may add."""

_log = logging.getLogger("bascule.bridge")

ALIVE: Final = Ending(exit_code=0, signal=None, oom_killed=False, killed=False, stderr_tail="")
"""How a guest "ended" that has finished a script of a session and waits for the next."""


class Guest:
    """One started guest; `greet` it before anything else, `close` it always."""

    def __init__(self, sandbox: Sandbox, image_hash: str) -> None:
        self.sandbox = sandbox
        self.inbox = Inbox(sandbox)
        self.labels: frozenset[str] = frozenset()
        """Labels its scripts have gathered: what one of a session read, the next one may hold."""
        self._image_hash = image_hash
        self._greeted = False
        self._closed = False

    async def greet(self, limits: Limits) -> None:
        """Take its hello and check it; does nothing the second time.

        Raises:
            HandshakeError, SandboxError: it is not ours.
        """
        if self._greeted:
            return
        try:
            hello = await self._hello(limits.start_s)
        except (SandboxClosed, FrameError) as error:
            ending = await self.sandbox.close()
            raise HandshakeError(
                "guest_not_started",
                f"the guest ended before it said hello: {error} (exit {ending.exit_code});"
                f" its last words: {ending.stderr_tail[-2000:]!r}",
            ) from error
        if hello is None:
            raise HandshakeError(
                "guest_not_started", f"the guest said nothing within {limits.start_s:g} s; raise start_s"
            )
        if not isinstance(hello, Hello) or hello.protocol != PROTOCOL:
            raise HandshakeError(
                "protocol_mismatch",
                "the guest does not speak this host's protocol; run `bascule image build`",
            )
        if hello.image != self._image_hash:
            raise image_mismatch(expected=self._image_hash, found=hello.image)
        self._greeted = True

    async def end(self, *, kill: bool) -> Ending:
        """End the guest and return how it ended; idempotent."""
        try:
            if kill:
                with contextlib.suppress(SandboxError):  # close tries again, and raises it
                    await self.sandbox.kill()
            ending = await self.sandbox.close()
        except SandboxError as error:  # an engine that fails only now does not take the receipts with it
            _log.error("the engine failed after the script had begun: %s", error)
            ending = Ending(exit_code=None, signal=None, oom_killed=False, killed=False, stderr_tail="")
        await self.close_inbox()
        return ending

    async def close_inbox(self) -> None:
        """Stop listening."""
        if not self._closed:
            self._closed = True
            await self.inbox.close()

    @property
    def closed(self) -> bool:
        """Whether it was ended."""
        return self._closed

    async def _hello(self, timeout_s: float) -> GuestFrame | None:
        if not self.inbox.has_news:
            await self.inbox.wait(timeout_s)
        if self.inbox.stop is not None:
            raise self.inbox.stop
        payload = self.inbox.take_frame()
        return None if payload is None else decode_guest_frame(payload)


async def start_guest(backend: Backend, limits: Limits, run_id: str) -> Guest:
    """Start a fresh guest.

    Raises:
        SandboxError: there is no sandbox to be had.
    """
    return Guest(await backend.start(sandbox_limits(limits), run_id=run_id), backend.image_hash)


def sandbox_limits(limits: Limits) -> SandboxLimits:
    """Return what the sandbox of a run with these limits may use."""
    return SandboxLimits(memory_bytes=limits.memory_bytes + GUEST_OWN_BYTES, start_timeout_s=limits.start_s)
