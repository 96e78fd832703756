"""A sandbox backend with no wall at all: the guest's real program, forked from a warm parent.

For tests of the interpreter alone, and for running thousands of scripts through the whole bridge in seconds.
The guest's own limits hold (signals, address space); nothing outside it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bascule.sandbox import Ending, SandboxClosed, SandboxLimits, build_context
from bascule.sandbox.hardening import ENVIRONMENT
from bascule.wire import FrameSplitter

STDERR_TAIL_BYTES = 8192
READ_BYTES = 1 << 16
EXIT_GRACE_S = 60.0
"""How long a guest may take from its last frame to its exit: a busy machine is no crash."""


class ForkedSandbox:
    """One forked guest."""

    def __init__(
        self, backend: ForkBackend, pid: int, streams: tuple[int, int, int], frame_bytes: int
    ) -> None:
        self._backend = backend
        self._pid = pid
        self._stdin, self._stdout, self._stderr = streams
        self._splitter = FrameSplitter(max_bytes=frame_bytes)
        self._payloads: list[bytes] = []
        self._killed = False
        self._ending: Ending | None = None
        for fd in streams:
            os.set_blocking(fd, False)

    async def send(self, frame: bytes) -> None:
        """See `Sandbox.send`."""
        view = memoryview(frame)
        while view:
            try:
                view = view[os.write(self._stdin, view) :]
            except BlockingIOError:
                await self._ready(self._stdin, write=True)
            except BrokenPipeError:
                raise SandboxClosed from None

    async def receive(self) -> bytes:
        """See `Sandbox.receive`."""
        while not self._payloads:
            try:
                data = os.read(self._stdout, READ_BYTES)
            except BlockingIOError:
                await self._ready(self._stdout, write=False)
                continue
            if not data or self._killed:
                raise SandboxClosed
            self._payloads.extend(self._splitter.feed(data))
        return self._payloads.pop(0)

    async def kill(self) -> None:
        """See `Sandbox.kill`."""
        self._killed = True
        self._signal()

    async def close(self) -> Ending:
        """See `Sandbox.close`."""
        if self._ending is None:
            exited = self._backend.exits[self._pid]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(exited), EXIT_GRACE_S)
            self._signal()
            status = await exited
            del self._backend.exits[self._pid]
            by_signal = os.WIFSIGNALED(status)
            self._ending = Ending(
                exit_code=128 + os.WTERMSIG(status) if by_signal else os.WEXITSTATUS(status),
                signal=os.WTERMSIG(status) if by_signal else None,
                oom_killed=False,
                killed=self._killed,
                stderr_tail=self._read_stderr(),
            )
            for fd in (self._stdin, self._stdout, self._stderr):
                os.close(fd)
        return self._ending

    def _signal(self) -> None:
        if not self._backend.exits[self._pid].done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def _read_stderr(self) -> str:
        size = os.fstat(self._stderr).st_size
        return os.pread(self._stderr, STDERR_TAIL_BYTES, max(0, size - STDERR_TAIL_BYTES)).decode(
            "utf-8", "replace"
        )

    async def _ready(self, fd: int, *, write: bool) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        (loop.add_writer if write else loop.add_reader)(fd, ready.set)
        try:
            await ready.wait()
        finally:
            (loop.remove_writer if write else loop.remove_reader)(fd)


class ForkBackend:
    """Forks guests from one warm parent. Use it within one event loop and close it there.

    Args:
        environment: added to the guest's environment, for canaries.
    """

    name = "fork"

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bascule-forks-")
        context = Path(self._folder.name, "context")
        self.image_hash = build_context(context)
        self.exits: dict[int, asyncio.Future[int]] = {}
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._server = subprocess.Popen(
            [
                sys.executable,
                "-S",
                "-s",
                "-P",
                str(Path(__file__).with_name("server.py")),
                str(context),
                str(theirs.fileno()),
            ],
            pass_fds=[theirs.fileno()],
            env={**ENVIRONMENT, **(environment or {})},
            cwd=self._folder.name,
        )
        theirs.close()
        self._socket.setblocking(False)
        self._starting: asyncio.Lock | None = None
        self._pid: asyncio.Future[int] | None = None

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> ForkedSandbox:
        """See `Backend.start`; ``command`` is not for forks."""
        assert command is None
        loop = asyncio.get_running_loop()
        if self._starting is None:
            self._starting = asyncio.Lock()
            loop.add_reader(self._socket, self._take)
        async with self._starting:
            stdin, ours_in = os.pipe()
            ours_out, stdout = os.pipe()
            stderr = os.open(self._folder.name, os.O_TMPFILE | os.O_RDWR)
            self._pid = loop.create_future()
            socket.send_fds(self._socket, [b"fork"], [stdin, stdout, stderr])
            os.close(stdin)
            os.close(stdout)
            pid = await self._pid
        return ForkedSandbox(self, pid, (ours_in, ours_out, stderr), limits.frame_bytes)

    async def sweep(self) -> int:
        """See `Backend.sweep`; children end with their streams."""
        return 0

    async def close(self) -> None:
        """See `Backend.close`."""
        if self._starting is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._server.wait()
        self._folder.cleanup()

    def _take(self) -> None:
        message = self._socket.recv(16)
        if message[:1] == b"p":
            (pid,) = struct.unpack(">i", message[1:])
            assert self._pid is not None
            self.exits[pid] = asyncio.get_running_loop().create_future()
            self._pid.set_result(pid)
        elif message[:1] == b"x":
            pid, status = struct.unpack(">ii", message[1:])
            self.exits[pid].set_result(status)
        elif self._pid is not None and not self._pid.done():
            self._pid.set_exception(RuntimeError("the fork server ended; see its traceback above"))
