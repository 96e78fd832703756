"""A backend without processes for tests of the pool: guests say hello, wait, and can be made to die."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bascule.sandbox import Ending, SandboxClosed, SandboxError, SandboxLimits
from bascule.wire import PROTOCOL, Hello, encode_frame

IMAGE = "1" * 64
EXITED = Ending(exit_code=0, signal=None, oom_killed=False, killed=False, stderr_tail="")


class Waiting:
    """A sandbox whose guest said hello."""

    def __init__(self, image: str) -> None:
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        hello = Hello(protocol=PROTOCOL, image=image, python="3.11")
        self.say(encode_frame(hello, max_bytes=1 << 20)[4:])
        self.removed = False
        self.killed = False

    def say(self, payload: bytes) -> None:
        """Send a frame to the host."""
        self._frames.put_nowait(payload)

    def die(self) -> None:
        """End the stream."""
        self._frames.put_nowait(None)

    def lose_everything(self) -> None:
        """Die before the hello."""
        self._frames = asyncio.Queue()
        self.die()

    async def send(self, frame: bytes) -> None:
        return None

    async def receive(self) -> bytes:
        payload = await self._frames.get()
        if payload is None:
            self.die()
            raise SandboxClosed
        return payload

    async def kill(self) -> None:
        self.killed = True

    async def end(self) -> Ending:
        return EXITED

    async def close(self) -> Ending:
        await asyncio.sleep(0)
        self.removed = True
        return EXITED


class StageBackend:
    """Starts `Waiting` sandboxes; ``gate`` holds starts back, ``fail`` makes them fail."""

    name = "process"
    image_hash = IMAGE

    def __init__(self) -> None:
        self.made: list[Waiting] = []
        self.commands: list[Sequence[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fail = False
        self.says = IMAGE
        self.stillborn = 0
        self.at_once = 0
        self.most_at_once = 0
        self.closed = False

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> Waiting:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
        finally:
            self.at_once -= 1
        if self.fail:
            raise SandboxError("engine_unavailable", "no engine in this test")
        if command is not None:
            self.commands.append(command)
        sandbox = Waiting(self.says)
        self.made.append(sandbox)
        if self.stillborn:
            self.stillborn -= 1
            sandbox.lose_everything()
        return sandbox

    async def sweep(self) -> int:
        return 0

    async def close(self) -> None:
        self.closed = True
