"""Guests written in Python, on the host's own event loop: the other end of the wire for tests of the bridge.

A guest is an async function that is given a `Line`. It can speak well-formed frames or raw bytes, so that
honest and hostile guests are written alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from bascule.sandbox import Ending, Sandbox, SandboxClosed, SandboxLimits
from bascule.wire import (
    PROTOCOL,
    Act,
    Activation,
    Call,
    Cancel,
    Done,
    Finish,
    FrameSplitter,
    GuestUsage,
    Hello,
    Note,
    Output,
    Sleep,
    Start,
    decode_host_frame,
    encode_frame,
)

IMAGE = "0" * 64
MAX_BYTES = 65 << 20
USAGE = GuestUsage(cpu_s=0.5, peak_memory_bytes=1000)
EXITED = Ending(exit_code=0, signal=None, oom_killed=False, killed=False, stderr_tail="")
KILLED = Ending(exit_code=137, signal=9, oom_killed=False, killed=True, stderr_tail="")

Command = Call | Cancel | Sleep | Output
Guest = Callable[["Line"], Awaitable[Ending | None]]


class Line:
    """A guest's end of the wire."""

    def __init__(self) -> None:
        self.to_host: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.to_guest: asyncio.Queue[bytes] = asyncio.Queue()
        self.last_seq = 0

    def send(self, frame: Hello | Act | Finish) -> None:
        """Send a well-formed frame."""
        self.send_bytes(encode_frame(frame, max_bytes=MAX_BYTES)[4:])

    def send_bytes(self, payload: bytes) -> None:
        """Send any payload."""
        self.to_host.put_nowait(payload)

    async def receive(self) -> Start | Done:
        """Return the next frame of the host."""
        return decode_host_frame(await self.to_guest.get())

    async def greet(self) -> Start:
        """Say hello and wait for the order to run."""
        self.send(Hello(protocol=PROTOCOL, image=IMAGE, python="3.11"))
        start = await self.receive()
        assert isinstance(start, Start)
        return start

    def act(self, *activations: Sequence[Command], blocked: bool = True) -> None:
        """Send one Act."""
        made = tuple(Activation(commands=tuple(commands)) for commands in activations)
        self.send(Act(activations=made, blocked=blocked))

    def act_for(self, done: Done) -> None:
        """Answer a Done with nothing to say."""
        self.send(Act(activations=tuple(Activation() for _ in done.deliveries)))

    async def done(self) -> Done:
        """Return the host's next Done."""
        frame = await self.receive()
        assert isinstance(frame, Done)
        return frame

    def call(self, tool: str, /, **args: Any) -> Call:
        """Make the next call command, as if issued at a line of the same number."""
        self.last_seq += 1
        return Call(seq=self.last_seq, tool=tool, args=args, line=self.last_seq)

    def finish(self, value: Any = None, *commands: Command, notes: tuple[Note, ...] = ()) -> None:
        """Finish well."""
        activations = (Activation(commands=commands),) if commands else ()
        self.send(
            Finish(
                status="ok",
                activations=activations,
                value=value,
                value_source="return",
                notes=notes,
                usage=USAGE,
            )
        )


class GuestSandbox:
    """A sandbox around a guest function."""

    def __init__(self, guest: Guest) -> None:
        self.line = Line()
        self.closed = False
        self.killed = False
        self._splitter = FrameSplitter(max_bytes=MAX_BYTES)
        self._task = asyncio.ensure_future(self._live(guest))

    async def _live(self, guest: Guest) -> Ending:
        try:
            ending = await guest(self.line)
        finally:
            self.line.to_host.put_nowait(None)
        return ending or EXITED

    async def send(self, frame: bytes) -> None:
        if self._task.done():
            raise SandboxClosed
        for payload in self._splitter.feed(frame):
            self.line.to_guest.put_nowait(payload)

    async def receive(self) -> bytes:
        payload = await self.line.to_host.get()
        if payload is None:
            self.line.to_host.put_nowait(None)
            raise SandboxClosed
        return payload

    async def kill(self) -> None:
        self.killed = True
        self._task.cancel()

    async def close(self) -> Ending:
        self.closed = True
        await asyncio.wait({self._task}, timeout=1.0)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._task.cancelled():
            return KILLED
        error = self._task.exception()
        if error is not None:
            raise error
        return self._task.result()


class GuestBackend:
    """Gives every run the same guest."""

    name = "process"
    image_hash = IMAGE

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self.sandboxes: list[GuestSandbox] = []

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> Sandbox:
        sandbox = GuestSandbox(self._guest)
        self.sandboxes.append(sandbox)
        return sandbox

    async def sweep(self) -> int:
        return 0

    async def close(self) -> None:
        return None


def calls(*wanted: tuple[str, dict[str, Any]]) -> Guest:
    """Return a guest that issues these calls at once and returns every outcome by sequence number."""

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call(tool, **args) for tool, args in wanted])
        outcomes: dict[str, Any] = {}
        while len(outcomes) < len(wanted):
            done = await line.done()
            for delivery in done.deliveries:
                failure = delivery.failure
                outcomes[str(delivery.seq)] = (
                    bytes(delivery.value).decode() if failure is None else [failure.kind, failure.message]
                )
            if len(outcomes) < len(wanted):
                line.act_for(done)
        line.finish(outcomes)

    return guest


def sequence(*wanted: tuple[str, dict[str, Any]]) -> Guest:
    """Return a guest that issues these calls one after the other and returns every outcome in order."""

    async def guest(line: Line) -> None:
        await line.greet()
        outcomes: list[Any] = []
        for tool, args in wanted:
            line.act([line.call(tool, **args)])
            delivery = (await line.done()).deliveries[0]
            failure = delivery.failure
            outcomes.append(
                bytes(delivery.value).decode() if failure is None else [failure.kind, failure.message]
            )
        line.finish(outcomes)

    return guest
