"""The stream to the host: whole frames in, whole frames out. Trusts the host, but bounds what it reads.

Reads and writes block. While one is under way the script does not run, so its clock stands still, and a limit
that fires in the middle of a write waits until the frame is complete.
"""

from __future__ import annotations

import gc
import os
import select
from typing import Protocol

from bascule.wire import Act, Done, Finish, FrameError, Hello, Start, decode_host_frame, encode_frame
from bascule.wire.codec import MAX_HOST_FRAME_BYTES
from bascule.wire.frames import GuestFrame, HostFrame

_HEADER_BYTES = 4
_READ_BYTES = 64 << 10
_BIG_READ_BYTES = 1 << 20
_BIG_FRAME_BYTES = 64 << 10


class HostGone(BaseException):
    """The host closed the stream: there is nobody left to run for."""


class Meter(Protocol):
    """Counts the time the script runs."""

    def pause(self) -> None:
        """The script waits for the host."""
        ...

    def resume(self) -> None:
        """The script runs again."""
        ...


class Channel:
    """Frames over two file descriptors.

    Args:
        read_fd: descriptor with what the host sends.
        write_fd: descriptor for what the guest sends.
        frame_bytes: largest frame to send.
    """

    def __init__(self, *, read_fd: int, write_fd: int, frame_bytes: int, meter: Meter) -> None:
        self._read_fd = read_fd
        self.write_fd = write_fd
        self.frame_bytes = frame_bytes
        self.meter = meter
        self._rest = b""

    def has_news(self) -> bool:
        """Whether there is something to read, or the host is gone."""
        poll = select.poll()
        poll.register(self._read_fd, select.POLLIN)
        return bool(poll.poll(0))

    def hello(self, hello: Hello) -> None:
        """Say who this is."""
        self._write(hello)

    def start(self) -> Start:
        """Wait for the order to run.

        Raises:
            FrameError: the host sent something else.
        """
        frame = self._read()
        if not isinstance(frame, Start):
            raise FrameError("frame_unexpected", "the first frame of the host must be Start")
        return frame

    def exchange(self, act: Act) -> Done:
        """Send the commands of a stretch and wait for completions.

        Raises:
            FrameError: the host sent something else.
        """
        self.meter.pause()
        self._write(act)
        frame = self._read()
        if not isinstance(frame, Done) or not frame.deliveries:
            raise FrameError("frame_unexpected", "the host must answer with completions")
        self.meter.resume()
        return frame

    def hand_over(self, act: Act) -> None:
        """Send output in the middle of a stretch."""
        self.meter.pause()
        self._write(act)
        self.meter.resume()

    def finish(self, finish: Finish) -> None:
        """Send the last frame.

        Raises:
            FrameError: it is too large or holds something that cannot be encoded; nothing was sent.
        """
        self.meter.pause()
        self._write(finish)

    def _write(self, frame: GuestFrame) -> None:
        data = encode_frame(frame, max_bytes=self.frame_bytes)
        sent = os.write(self.write_fd, data)
        while sent < len(data):
            sent += os.write(self.write_fd, memoryview(data)[sent:])

    def _read(self) -> HostFrame:
        data = self._rest or self._more(_READ_BYTES)
        while len(data) < _HEADER_BYTES:
            data += self._more(_READ_BYTES)
        size = int.from_bytes(data[:_HEADER_BYTES], "big")
        if size > MAX_HOST_FRAME_BYTES:
            raise FrameError("frame_too_large", f"frame of {size} bytes announced by the host")
        end = _HEADER_BYTES + size
        if len(data) < end:
            parts = [data]
            missing = end - len(data)
            while missing > 0:
                part = self._more(min(max(missing, _READ_BYTES), _BIG_READ_BYTES))
                parts.append(part)
                missing -= len(part)
            data = b"".join(parts)
        self._rest = data[end:]
        if size <= _BIG_FRAME_BYTES:
            return decode_host_frame(data[_HEADER_BYTES:end])
        # A collector that looks for garbage among a million new objects, again and again, finds none.
        gc.disable()
        try:
            return decode_host_frame(memoryview(data)[_HEADER_BYTES:end])
        finally:
            gc.enable()

    def _more(self, size: int) -> bytes:
        data = os.read(self._read_fd, size)
        if not data:
            raise HostGone
        return data
