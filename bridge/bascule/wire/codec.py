"""Bytes to frames and back. Total: any bytes give a frame or a FrameError, within stated bounds.

A frame is a 4-byte big-endian length and that many bytes of JSON. What a guest sends must also be
*canonical*: byte for byte what our own encoder gives for the decoded frame. That one rule refuses duplicate
keys, white space, alternative spellings of numbers and strings, and everything else on which two parsers
could disagree; msgspec itself refuses bad UTF-8, lone surrogates, NaN and infinities.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from bascule.wire.errors import FrameError
from bascule.wire.frames import Frame, GuestFrame, HostFrame

MAX_DEPTH = 64
"""Nesting of lists and objects in one frame, the frame's own included."""

MAX_ELEMENTS = 200_000
"""Values in one frame from a guest. A frame of 1 MiB can otherwise become 28 MB of objects."""

MAX_GUEST_FRAME_BYTES = 1 << 20
"""Cap on one frame from a guest."""

MAX_HOST_FRAME_BYTES = 65 << 20
"""Cap on one frame to a guest: results of 64 MiB and their envelope."""

_HEADER_BYTES = 4
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_BRACKET = re.compile(rb"[\[{\]}]")

FrameT = TypeVar("FrameT")

_encoder = msgspec.json.Encoder()
_guest_decoder: msgspec.json.Decoder[GuestFrame] = msgspec.json.Decoder(GuestFrame)
_host_decoder: msgspec.json.Decoder[HostFrame] = msgspec.json.Decoder(HostFrame)


def encode_frame(frame: Frame, *, max_bytes: int) -> bytes:
    """Return header and payload of a frame.

    Raises:
        FrameError: ``frame_too_large``: the payload exceeds ``max_bytes``; send less.
        FrameError: ``frame_not_encodable``: a value is not plain JSON data.
    """
    try:
        payload = _encoder.encode(frame)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise FrameError("frame_not_encodable", f"frame cannot be encoded: {error}") from error
    if len(payload) > max_bytes:
        raise FrameError("frame_too_large", f"frame has {len(payload)} bytes, the cap is {max_bytes}")
    return len(payload).to_bytes(_HEADER_BYTES, "big") + payload


def decode_guest_frame(payload: bytes) -> GuestFrame:
    """Decode what an untrusted guest sent, without its header.

    Raises:
        FrameError: whatever is wrong with it; the guest must be killed.
    """
    check_shape(payload)
    frame = _decode(_guest_decoder, payload)
    if _encoder.encode(frame) != payload:
        raise FrameError("frame_not_canonical", "frame is not in canonical form")
    return frame


def decode_host_frame(payload: bytes | memoryview) -> HostFrame:
    """Decode what the host sent, without its header (the guest's side).

    Raises:
        FrameError: the host sent something else than Start or Done.
    """
    return _decode(_host_decoder, payload)


def _decode(decoder: msgspec.json.Decoder[FrameT], payload: bytes | memoryview) -> FrameT:
    try:
        return decoder.decode(payload)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise FrameError("frame_invalid", f"frame is invalid: {error}") from error


def check_shape(payload: bytes) -> None:
    """Bound depth and number of values before anything is built from the bytes.

    Raises:
        FrameError: ``frame_too_deep`` or ``frame_too_many_elements``.
    """
    opened = payload.count(b"[") + payload.count(b"{")
    if opened <= MAX_DEPTH and payload.count(b",") + opened <= MAX_ELEMENTS:
        return
    bare = _STRING.sub(b'""', payload)
    if bare.count(b",") + bare.count(b"[") + bare.count(b"{") > MAX_ELEMENTS:
        raise FrameError("frame_too_many_elements", f"frame holds more than {MAX_ELEMENTS} values")
    depth = 0
    for match in _BRACKET.finditer(bare):
        depth += 1 if match.group() in b"[{" else -1
        if depth > MAX_DEPTH:
            raise FrameError("frame_too_deep", f"frame nests deeper than {MAX_DEPTH}")


class FrameSplitter:
    """Cuts a stream of bytes into payloads, holding at most one frame's worth of bytes.

    Args:
        max_bytes: cap on one payload, checked from the header before the payload is awaited.
    """

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield every payload that is complete after ``data``.

        Raises:
            FrameError: ``frame_too_large``; nothing more can be read from this stream.
        """
        self._buffer += data
        while len(self._buffer) >= _HEADER_BYTES:
            size = int.from_bytes(self._buffer[:_HEADER_BYTES], "big")
            if size > self._max_bytes:
                raise FrameError(
                    "frame_too_large", f"frame of {size} bytes announced, the cap is {self._max_bytes}"
                )
            end = _HEADER_BYTES + size
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_HEADER_BYTES:end])
            del self._buffer[:end]
            yield payload

    @property
    def pending(self) -> int:
        """Bytes of an unfinished frame; not zero at the end of a stream means it was cut."""
        return len(self._buffer)
