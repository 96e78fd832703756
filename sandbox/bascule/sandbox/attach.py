"""The attached stream of a container: one socket that carries stdin in, stdout and stderr out.

The engine frames what the container writes with an 8-byte header (stream number, three zeros, big-endian
length). The engine is trusted to frame correctly; what is inside is the guest's and goes to GuestStream.
"""

from __future__ import annotations

from bascule.sandbox.socket_line import SocketLine

_HEADER_BYTES = 8
_STDOUT = 1


class AttachProtocol(SocketLine):
    """Splits the engine's multiplexed stream and writes frames to the guest's stdin."""

    def __init__(self, *, frame_bytes: int) -> None:
        super().__init__(frame_bytes=frame_bytes)
        self._header = bytearray()
        self._channel = 0
        self._left = 0

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
