"""The attached stream of a container: one socket that carries stdin in, stdout and stderr out.

The engine frames what the container writes with an 8-byte header (stream number, three zeros, big-endian
length). The engine is trusted to frame correctly; what is inside is the guest's and goes to GuestStream.
"""

from __future__ import annotations

import asyncio

from bascule.sandbox.errors import SandboxClosed
from bascule.sandbox.stream import GuestStream

_HEADER_BYTES = 8
_STDOUT = 1


class AttachProtocol(asyncio.Protocol):
    """Splits the engine's multiplexed stream and writes frames to the guest's stdin."""

    def __init__(self, *, frame_bytes: int) -> None:
        self.stream = GuestStream(frame_bytes=frame_bytes, pause=self._pause, resume=self._resume)
        self._transport: asyncio.Transport | None = None
        self._header = bytearray()
        self._channel = 0
        self._left = 0
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; asyncio calls this once."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take what the engine sent: any cut of headers and contents."""
        position = 0
        while position < len(data):
            if self._left == 0:
                take = min(_HEADER_BYTES - len(self._header), len(data) - position)
                self._header += data[position : position + take]
                position += take
                if len(self._header) == _HEADER_BYTES:
                    self._channel = self._header[0]
                    self._left = int.from_bytes(self._header[4:], "big")
                    self._header.clear()
                continue
            take = min(self._left, len(data) - position)
            piece = data[position : position + take]
            position += take
            self._left -= take
            if self._channel == _STDOUT:
                self.stream.feed_stdout(piece)
            else:
                self.stream.feed_stderr(piece)

    def eof_received(self) -> None:
        """The container's outputs are closed; asyncio then closes the transport."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the end on; a broken connection and an exited guest look the same from here."""
        self._transport = None
        self._writable.set()
        self.stream.end()

    def pause_writing(self) -> None:
        """The guest does not read as fast as the host writes."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The guest caught up."""
        self._writable.set()

    async def send(self, frame: bytes) -> None:
        """Write one frame; returns when the transport has room for another.

        Raises:
            SandboxClosed: the connection ended.
        """
        if self._transport is None or self._transport.is_closing():
            raise SandboxClosed
        self._transport.write(frame)
        if not self._writable.is_set():
            await self._writable.wait()

    def abort(self) -> None:
        """Close the connection now, dropping what was not sent."""
        if self._transport is not None:
            self._transport.abort()

    def _pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()
