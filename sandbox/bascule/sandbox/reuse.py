"""One container for several runs of one principal: each run gets a child forked for it, on its own socket.

The parent in the container (``bascule.guest.nursery``) speaks over the standard streams, which its children
do not have: only its word that a child exited well and left nothing lets the next one come. Anything else
ends the container. The guest is untrusted as ever; docs/sandboxes.md says what sharing a container weakens.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Final, Protocol, runtime_checkable

from bascule.sandbox.cgroup import Counters
from bascule.sandbox.channel import ChannelProtocol
from bascule.sandbox.contained import ContainedSandbox
from bascule.sandbox.errors import SandboxClosed, SandboxError
from bascule.sandbox.evidence import Evidence
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.meeting import MeetingPlace, await_guest
from bascule.sandbox.sandbox import Ending
from bascule.wire import FrameError

MOST_RUNS: Final = 1000
"""Runs after which a container is replaced all the same."""

_NEXT: Final = b"n"
_CLEAN: Final = b"clean"


class Nursery:
    """The container and its parent process.

    Args:
        container: started, its guest asked to be a parent.
        place: where children meet this host; owned from here on.
        name: of the container, as its control groups have it.
    """

    def __init__(
        self, container: ContainedSandbox, place: MeetingPlace, *, name: str, limits: SandboxLimits
    ) -> None:
        self.container = container
        self._place = place
        self._name = name
        self._limits = limits
        self._control = container.attached
        self.runs = 0

    async def is_clean(self, timeout_s: float) -> bool:
        """Wait for the parent's word that nothing of the last run is left."""
        try:
            said = await asyncio.wait_for(self._control.stream.receive(), timeout_s)
        except (TimeoutError, SandboxClosed, FrameError):
            return False
        return said == _CLEAN

    async def bear(self) -> ChildSandbox:
        """Have a new child forked; call it only after ``is_clean``.

        Raises:
            SandboxError: ``guest_not_started``; remove the nursery.
        """
        self.runs += 1
        self._control.stream.forget_stderr()
        before = self.container.count()
        self._place.listen()
        try:
            await self._control.send(_NEXT)
            found = await await_guest(self._place, self._name, attached=self._control, limits=self._limits)
        except SandboxClosed:
            found = None
        finally:
            self._place.hush()
        if found is None:
            raise SandboxError("guest_not_started", "the container ended before its next guest came")
        connected, evidence = found
        channel = ChannelProtocol(frame_bytes=self._limits.frame_bytes)
        await asyncio.get_running_loop().create_unix_connection(lambda: channel, sock=connected)
        return ChildSandbox(self, channel, evidence, before=before, limits=self._limits)

    async def remove(self) -> Ending:
        """End and remove the container; idempotent."""
        try:
            return await self.container.close()
        finally:
            self._place.close()


class ChildSandbox:
    """One run's guest in a container that had others before. Made by ``Nursery.bear`` only."""

    def __init__(
        self,
        nursery: Nursery,
        channel: ChannelProtocol,
        evidence: Evidence,
        *,
        before: Counters,
        limits: SandboxLimits,
    ) -> None:
        self.nursery = nursery
        self._channel = channel
        self._evidence = evidence
        self._before = before
        self._limits = limits
        self._ending: asyncio.Task[Ending] | None = None
        self._killed = False
        self._clean = False

    @property
    def pid(self) -> int:
        """The child's process, as this host counts."""
        return self._evidence.pid

    @property
    def may_be_followed(self) -> bool:
        """Whether the run ended so well that the container can serve the same principal again."""
        return self._clean and self.nursery.runs < MOST_RUNS

    async def send(self, frame: bytes) -> None:
        """See ``Sandbox.send``."""
        await self._channel.send(frame)

    async def receive(self) -> bytes:
        """See ``Sandbox.receive``."""
        return await self._channel.stream.receive()

    async def kill(self) -> None:
        """See ``Sandbox.kill``: the whole container ends, whatever the child started included."""
        self._channel.stream.discard()
        if self._ending is None:
            self._killed = True
            await self.nursery.container.kill()

    async def end(self) -> Ending:
        """Wait for the child to exit and the parent's word that nothing is left, else end the container."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        return await asyncio.shield(self._ending)

    async def close(self) -> Ending:
        """See ``Sandbox.close``: the container goes too, whether it could serve again or not."""
        try:
            ending = await self.end()
        finally:
            with contextlib.suppress(SandboxError):
                await self.nursery.container.kill()
            await self.nursery.remove()
        return ending

    async def _end(self) -> Ending:
        self._channel.stream.discard()
        try:
            well = not self._killed and await self.nursery.is_clean(self._limits.exit_grace_s)
            now = self.nursery.container.count()
            if well and not _rose(now.oom_kills, self._before.oom_kills):
                self._clean = True
                return self._good_ending(now)
            ending = await self.nursery.container.end()
            return replace(
                ending, oom_killed=ending.oom_killed or _rose(now.oom_kills, self._before.oom_kills)
            )
        finally:
            self._channel.abort()
            self._evidence.close()

    def _good_ending(self, now: Counters) -> Ending:
        before = self._before
        return Ending(
            exit_code=0,
            signal=None,
            oom_killed=False,
            killed=False,
            stderr_tail=self.nursery.container.attached.stream.stderr_tail,
            # The kernel keeps the highest use of all runs: it is this run's only where it rose.
            peak_memory_bytes=now.peak_memory_bytes
            if _rose(now.peak_memory_bytes, before.peak_memory_bytes)
            else None,
            cpu_s=None if now.cpu_s is None or before.cpu_s is None else now.cpu_s - before.cpu_s,
            refused_forks=None
            if now.refused_forks is None or before.refused_forks is None
            else now.refused_forks - before.refused_forks,
        )


@runtime_checkable
class Reusing(Protocol):
    """A backend whose containers can serve several runs of one principal."""

    async def start_reusable(self, limits: SandboxLimits, *, run_id: str) -> ChildSandbox:
        """Start a container with a first child; cancelled or failed, it leaves nothing.

        Raises:
            SandboxError: ``isolation_unsupported``: this engine or runtime passes no sockets to guests.
        """
        ...


async def first_child(
    container: ContainedSandbox, place: MeetingPlace, *, name: str, limits: SandboxLimits
) -> ChildSandbox:
    """Return the first child of a container just started; failed, it removes the container.

    Raises:
        SandboxError: ``guest_not_started`` with its last words.
    """
    nursery = Nursery(container, place, name=name, limits=limits)
    try:
        if not await nursery.is_clean(limits.start_timeout_s):
            words = container.attached.stream.stderr_tail[-2000:]
            raise SandboxError("guest_not_started", f"the guest did not get ready; its last words: {words!r}")
        return await nursery.bear()
    except BaseException:
        with contextlib.suppress(SandboxError):
            await asyncio.shield(container.kill())
        await asyncio.shield(nursery.remove())
        raise


def _rose(now: int | None, before: int | None) -> bool:
    return now is not None and before is not None and now > before
