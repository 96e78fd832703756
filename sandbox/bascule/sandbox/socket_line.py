"""The half that both socket transports share: frames out, reading paused and resumed, the end passed on.

``attach`` and ``channel`` add what their bytes mean. The other side is untrusted and may stop reading.
"""

from __future__ import annotations

import asyncio
from typing import cast

from bascule.sandbox.errors import SandboxClosed
from bascule.sandbox.stream import GuestStream


class SocketLine(asyncio.Protocol):
    """Writes frames to a guest, one write for each; a subclass feeds ``stream`` with what comes back."""

    def __init__(self, *, frame_bytes: int) -> None:
        self.stream = GuestStream(frame_bytes=frame_bytes, pause=self._pause, resume=self._resume)
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; asyncio calls this once."""
        # Not checked: transports of uvloop are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

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
