"""GuestStream: bounded, ordered, and never the reason that an engine hangs."""

from __future__ import annotations

import asyncio

import pytest

from bascule.sandbox.errors import SandboxClosed
from bascule.sandbox.stream import MAX_WAITING_BYTES, STDERR_TAIL_BYTES, GuestStream
from bascule.wire import FrameError

FRAME_BYTES = 1 << 20


class Valve:
    """Stands for the transport: remembers whether it is reading."""

    def __init__(self) -> None:
        self.open = True

    def pause(self) -> None:
        self.open = False

    def resume(self) -> None:
        self.open = True


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def stream_and_valve() -> tuple[GuestStream, Valve]:
    valve = Valve()
    return GuestStream(frame_bytes=FRAME_BYTES, pause=valve.pause, resume=valve.resume), valve


@pytest.mark.anyio
@pytest.mark.parametrize("cut", [1, 2, 3, 5, 7, 100])
async def test_payloads_arrive_whole_and_in_order_however_the_bytes_are_cut(cut: int) -> None:
    stream, _ = stream_and_valve()
    data = frame(b"one") + frame(b"") + frame(b"three")
    for start in range(0, len(data), cut):
        stream.feed_stdout(data[start : start + cut])
    assert [await stream.receive() for _ in range(3)] == [b"one", b"", b"three"]


@pytest.mark.anyio
async def test_a_waiting_reader_is_woken_by_a_payload() -> None:
    stream, _ = stream_and_valve()
    reader = asyncio.ensure_future(stream.receive())
    await asyncio.sleep(0)
    stream.feed_stdout(frame(b"late"))
    assert await reader == b"late"


@pytest.mark.anyio
async def test_what_came_before_the_end_is_still_delivered() -> None:
    stream, _ = stream_and_valve()
    stream.feed_stdout(frame(b"last"))
    stream.end()
    assert await stream.receive() == b"last"
    with pytest.raises(SandboxClosed):
        await stream.receive()


@pytest.mark.anyio
async def test_an_oversized_frame_is_refused_from_its_header_and_nothing_after_it_is_read() -> None:
    stream, _ = stream_and_valve()
    stream.feed_stdout((FRAME_BYTES + 1).to_bytes(4, "big"))
    stream.feed_stdout(frame(b"later"))
    for _ in range(2):
        with pytest.raises(FrameError) as caught:
            await stream.receive()
        assert caught.value.code == "frame_too_large"


@pytest.mark.anyio
async def test_a_slow_host_pauses_the_transport_and_reading_on_resumes_it() -> None:
    stream, valve = stream_and_valve()
    count = MAX_WAITING_BYTES // FRAME_BYTES + 1
    for _ in range(count):
        stream.feed_stdout(frame(bytes(FRAME_BYTES)))
    assert not valve.open
    for _ in range(count):
        await stream.receive()
    assert valve.open


@pytest.mark.anyio
async def test_discarding_reopens_a_paused_transport_and_holds_nothing() -> None:
    stream, valve = stream_and_valve()
    for _ in range(MAX_WAITING_BYTES // FRAME_BYTES + 1):
        stream.feed_stdout(frame(bytes(FRAME_BYTES)))
    stream.discard()
    assert valve.open
    stream.feed_stdout(frame(b"more"))
    with pytest.raises(SandboxClosed):
        await stream.receive()


def test_only_the_tail_of_stderr_is_kept() -> None:
    stream, _ = stream_and_valve()
    stream.feed_stderr(b"x" * (3 * STDERR_TAIL_BYTES))
    stream.feed_stderr(b"end\xff")
    assert len(stream.stderr_tail) == STDERR_TAIL_BYTES
    assert stream.stderr_tail.endswith("end\N{REPLACEMENT CHARACTER}")


def test_a_flood_of_empty_frames_closes_the_valve() -> None:
    stream, valve = stream_and_valve()
    for _ in range(MAX_WAITING_BYTES // 64 // 1000 + 1):
        stream.feed_stdout(frame(b"") * 1000)
    assert not valve.open
