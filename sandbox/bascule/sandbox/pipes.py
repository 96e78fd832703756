"""The three pipes of a child process: frames out of stdout, frames into stdin, a tail of stderr."""

from __future__ import annotations

import asyncio
from typing import cast

from bascule.sandbox.errors import SandboxClosed
from bascule.sandbox.stream import GuestStream


class PipeProtocol(asyncio.SubprocessProtocol):
    """Feeds a GuestStream from the child's pipes and writes frames to its stdin."""

    def __init__(self, *, frame_bytes: int) -> None:
        self.stream = GuestStream(frame_bytes=frame_bytes, pause=self._pause, resume=self._resume)
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        if fd == 1:
            self.stream.feed_stdout(data)
        else:
            self.stream.feed_stderr(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.stream.end()
        if fd == 0:
            self._writable.set()

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stream.end()
        self.closed.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def send(self, frame: bytes) -> None:
        """Write one frame; returns when the pipe has room for another.

        Raises:
            SandboxClosed: the child is gone.
        """
        stdin = None if self._transport is None else self._transport.get_pipe_transport(0)
        if stdin is None or stdin.is_closing() or self.exited.is_set():
            raise SandboxClosed
        cast("asyncio.WriteTransport", stdin).write(frame)
        if not self._writable.is_set():
            await self._writable.wait()

    def abort(self) -> None:
        """Close the pipes; kills the child if it still runs."""
        if self._transport is not None:
            self._transport.close()

    @property
    def returncode(self) -> int | None:
        """Exit code of the child, negative for a signal, None while it runs."""
        return None if self._transport is None else self._transport.get_returncode()

    def _stdout(self) -> asyncio.ReadTransport | None:
        if self._transport is None:
            return None
        return cast("asyncio.ReadTransport | None", self._transport.get_pipe_transport(1))

    def _pause(self) -> None:
        stdout = self._stdout()
        if stdout is not None:
            stdout.pause_reading()

    def _resume(self) -> None:
        stdout = self._stdout()
        if stdout is not None:
            stdout.resume_reading()
