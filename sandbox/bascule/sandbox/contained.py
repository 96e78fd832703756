"""A sandbox with walls of the kernel's, whoever built them: engine or runtime.

Decides the order of an ending: stop caring about what the guest says, let it exit or kill it, learn how it
ended, and only then remove it. How it ended is read from the kernel when that is enough, else from whoever
built it, which takes longer.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bascule.sandbox.cgroup import Counters
from bascule.sandbox.evidence import Evidence
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.sandbox import Ending
from bascule.sandbox.stream import GuestStream

_SIGNAL_BASE = 128

N = TypeVar("N", int, float)


class Line(Protocol):
    """One of the two transports: attached streams or a channel."""

    stream: GuestStream

    async def send(self, frame: bytes) -> None: ...

    def abort(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """How a started guest is reached and observed.

    Attributes:
        attached: its standard streams; frames come over them when there is no channel.
        channel: the socket it connected to, if it did.
        evidence: its process, where this host can see it.
    """

    attached: Line
    channel: Line | None = None
    evidence: Evidence | None = None

    @property
    def line(self) -> Line:
        """What carries the frames."""
        return self.channel or self.attached


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalState:
    """What the builder of a sandbox says of its end; None where it does not know."""

    exit_code: int | None = None
    oom_killed: bool = False


class ContainedSandbox:
    """Common to containers of engines and of runtimes; they say how to kill, ask and remove."""

    def __init__(self, limits: SandboxLimits, wiring: Wiring) -> None:
        self._limits = limits
        self._wiring = wiring
        self._killed = False
        self._counted = Counters()
        self._ending: asyncio.Task[Ending] | None = None
        self._closing: asyncio.Task[Ending] | None = None

    @property
    def attached(self) -> Line:
        """Its standard streams."""
        return self._wiring.attached

    def count(self) -> Counters:
        """Return what the kernel counted until now, for all that ran in it."""
        self._count()
        return self._counted

    async def send(self, frame: bytes) -> None:
        """See ``Sandbox.send``."""
        await self._wiring.line.send(frame)

    async def receive(self) -> bytes:
        """See ``Sandbox.receive``."""
        return await self._wiring.line.stream.receive()

    async def kill(self) -> None:
        """See ``Sandbox.kill``.

        Raises:
            SandboxError: the engine could not be asked; the container may still run.
        """
        self._discard()
        if self._ending is not None:
            return
        self._count()
        self._killed = await self._kill_all() or self._killed

    async def end(self) -> Ending:
        """Wait for the guest to exit, else kill it, and return how it ended; ``close`` then removes it."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        return await asyncio.shield(self._ending)

    async def close(self) -> Ending:
        """See ``Sandbox.close``.

        Raises:
            SandboxError: the engine failed; removal was tried all the same, the next sweep repeats it.
        """
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        return await asyncio.shield(self._closing)

    # ------------------------------------------------------------ what the builder knows

    async def _kill_all(self) -> bool:
        """Kill every process; return whether there was one."""
        raise NotImplementedError

    async def _final_state(self) -> FinalState:
        """Return how it ended, ending it if need be; may set ``_killed``."""
        raise NotImplementedError

    async def _remove(self) -> None:
        """Let go of the attached streams and remove all that is left."""
        raise NotImplementedError

    def _read_counters(self) -> Counters:
        evidence = self._wiring.evidence
        return Counters() if evidence is None else evidence.read()

    # ------------------------------------------------------------ the ending

    async def _close(self) -> Ending:
        try:
            return await self.end()
        finally:
            if self._wiring.channel is not None:
                self._wiring.channel.abort()
            if self._wiring.evidence is not None:
                self._wiring.evidence.close()
            await self._remove()

    async def _end(self) -> Ending:
        self._discard()
        if not self._killed:
            quick = await self._quick_ending()
            if quick is not None:
                return quick
        stream = self._wiring.line.stream
        if not stream.ended and not self._killed:
            self._count()
            try:
                await asyncio.wait_for(stream.wait_ended(), self._limits.exit_grace_s)
            except TimeoutError:
                self._count()
        state = await self._final_state()
        self._count()
        return self._make_ending(state)

    async def _quick_ending(self) -> Ending | None:
        """Return the ending of a guest that exited well, on the kernel's word; None to ask further."""
        evidence = self._wiring.evidence
        if evidence is None:
            return None
        try:
            status = await evidence.wait_exit(self._limits.exit_grace_s)
        except TimeoutError:
            self._count()
            self._killed = await self._kill_all()
            return None
        self._count()
        if status is None or self._counted.oom_kills is None or self._counted.oom_kills > 0:
            return None
        if os.waitstatus_to_exitcode(status) != 0:
            return None  # its last words are on the way through the slower stream
        return self._make_ending(FinalState(exit_code=0))

    def _make_ending(self, state: FinalState) -> Ending:
        code = state.exit_code
        counted = self._counted
        oom_killed = state.oom_killed or bool(counted.oom_kills)
        return Ending(
            exit_code=code,
            signal=code - _SIGNAL_BASE if code is not None and code > _SIGNAL_BASE else None,
            oom_killed=oom_killed,
            killed=self._killed,
            stderr_tail=self._wiring.attached.stream.stderr_tail,
            peak_memory_bytes=self._limits.memory_bytes if oom_killed else counted.peak_memory_bytes,
            cpu_s=counted.cpu_s,
            refused_forks=counted.refused_forks,
        )

    def _count(self) -> None:
        """Keep the highest of what was counted; a group that is gone takes nothing back."""
        new, old = self._read_counters(), self._counted
        self._counted = Counters(
            peak_memory_bytes=_higher(new.peak_memory_bytes, old.peak_memory_bytes),
            cpu_s=_higher(new.cpu_s, old.cpu_s),
            oom_kills=_higher(new.oom_kills, old.oom_kills),
            refused_forks=_higher(new.refused_forks, old.refused_forks),
        )

    def _discard(self) -> None:
        self._wiring.attached.stream.discard()
        self._wiring.line.stream.discard()


def _higher(new: N | None, old: N | None) -> N | None:
    return old if new is None else new if old is None else max(new, old)
