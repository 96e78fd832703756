"""The guest's frames over one connected unix socket; the quick one of the two transports.

What comes is the guest's, untrusted, and goes to GuestStream. The other transport is ``attach``.
"""

from __future__ import annotations

from bascule.sandbox.socket_line import SocketLine


class ChannelProtocol(SocketLine):
    """Reads frames of the guest and writes frames to it."""

    def data_received(self, data: bytes) -> None:
        """Take what the guest sent."""
        self.stream.feed_stdout(data)
