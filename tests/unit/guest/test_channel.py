"""Frames cross a real stream whole, however it is cut, and only frames of the right kind are taken."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import msgspec
import pytest

from bascule.guest.channel import Channel, HostGone
from bascule.wire import (
    Act,
    Activation,
    Delivery,
    Done,
    Finish,
    FrameError,
    GuestUsage,
    Hello,
    Output,
    Start,
    decode_guest_frame,
    encode_frame,
)
from bascule.wire.codec import MAX_HOST_FRAME_BYTES
from tests.unit.guest.harness import guest_limits

DONE = Done(deliveries=(Delivery(seq=1, now=1.0, value=msgspec.Raw(b"1")),))
START = Start(script="1", tools=(), seed=1, now=1.0, limits=guest_limits())
FINISH = Finish(status="ok", activations=(), usage=GuestUsage(cpu_s=0.0, peak_memory_bytes=0))


class Counting:
    """A meter that remembers what it was told."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def pause(self) -> None:
        """Remember."""
        self.seen.append("pause")

    def resume(self) -> None:
        """Remember."""
        self.seen.append("resume")


class Ends:
    """A channel and the host's two ends of it."""

    def __init__(self) -> None:
        read_fd, self.to_guest = os.pipe()
        self.from_guest, write_fd = os.pipe()
        self.meter = Counting()
        self.channel = Channel(read_fd=read_fd, write_fd=write_fd, frame_bytes=1 << 20, meter=self.meter)
        self._open = {read_fd, write_fd, self.to_guest, self.from_guest}

    def close(self, fd: int) -> None:
        """Close one end."""
        self._open.discard(fd)
        os.close(fd)

    def close_all(self) -> None:
        """Close every end that is open."""
        for fd in list(self._open):
            self.close(fd)

    def sent(self) -> object:
        """Return the next frame that the guest sent."""
        size = int.from_bytes(os.read(self.from_guest, 4), "big")
        data = b""
        while len(data) < size:
            data += os.read(self.from_guest, size - len(data))
        return decode_guest_frame(data)


@pytest.fixture(name="ends")
def make_ends() -> Iterator[Ends]:
    """Give a channel over two pipes."""
    ends = Ends()
    yield ends
    ends.close_all()


def to_bytes(frame: Start | Done | Hello) -> bytes:
    """Return header and payload."""
    return encode_frame(frame, max_bytes=1 << 30)


def test_the_conversation_in_order(ends: Ends) -> None:
    hello = Hello(protocol=1, image="x", python="3")
    ends.channel.hello(hello)
    assert ends.sent() == hello
    os.write(ends.to_guest, to_bytes(START) + to_bytes(DONE))
    assert ends.channel.start() == START
    act = Act(activations=(Activation(commands=(Output(text="é"),)),))
    assert ends.channel.exchange(act).deliveries[0].seq == 1
    assert ends.sent() == act
    ends.channel.hand_over(act)
    assert ends.sent() == act
    ends.channel.finish(FINISH)
    assert ends.sent() == FINISH


def test_the_clock_stands_still_while_the_host_works(ends: Ends) -> None:
    os.write(ends.to_guest, to_bytes(DONE))
    ends.channel.exchange(Act(activations=()))
    assert ends.meter.seen == ["pause", "resume"]


def test_a_frame_may_arrive_byte_by_byte(ends: Ends) -> None:
    data = to_bytes(START)

    def trickle() -> None:
        for byte in data:
            os.write(ends.to_guest, bytes([byte]))

    thread = threading.Thread(target=trickle)
    thread.start()
    assert ends.channel.start() == START
    thread.join()


def test_a_frame_larger_than_any_buffer_crosses_in_both_directions(ends: Ends) -> None:
    value = msgspec.json.encode("x" * 3_000_000)
    done = Done(deliveries=(Delivery(seq=1, now=1.0, value=msgspec.Raw(value)),))
    received: list[object] = []

    def host() -> None:
        received.append(ends.sent())
        data = memoryview(to_bytes(done))
        while data:
            data = data[os.write(ends.to_guest, data) :]

    thread = threading.Thread(target=host)
    thread.start()
    act = Act(activations=(Activation(commands=(Output(text="y" * 900_000),)),))
    answer = ends.channel.exchange(act)
    thread.join()
    assert bytes(answer.deliveries[0].value) == value
    assert received == [act]


def test_an_order_that_waits_is_known_before_it_is_read(ends: Ends) -> None:
    assert not ends.channel.has_news()
    os.write(ends.to_guest, to_bytes(START))
    assert ends.channel.has_news()
    assert ends.channel.start() == START
    assert not ends.channel.has_news()


def test_a_host_that_is_gone_is_news(ends: Ends) -> None:
    ends.close(ends.to_guest)
    assert ends.channel.has_news()


def test_the_end_of_the_stream_ends_the_guest(ends: Ends) -> None:
    ends.close(ends.to_guest)
    with pytest.raises(HostGone):
        ends.channel.start()


def test_a_stream_cut_in_the_middle_of_a_frame_ends_the_guest(ends: Ends) -> None:
    os.write(ends.to_guest, to_bytes(START)[:-1])
    ends.close(ends.to_guest)
    with pytest.raises(HostGone):
        ends.channel.start()


def test_anything_but_start_is_refused_at_first(ends: Ends) -> None:
    os.write(ends.to_guest, to_bytes(DONE))
    with pytest.raises(FrameError, match="Start"):
        ends.channel.start()


@pytest.mark.parametrize("frame", [START, Done(deliveries=())])
def test_anything_but_completions_is_refused_later(ends: Ends, frame: Start | Done) -> None:
    os.write(ends.to_guest, to_bytes(frame))
    with pytest.raises(FrameError, match="completions"):
        ends.channel.exchange(Act(activations=()))


def test_a_frame_that_announces_too_much_is_not_awaited(ends: Ends) -> None:
    os.write(ends.to_guest, (MAX_HOST_FRAME_BYTES + 1).to_bytes(4, "big"))
    with pytest.raises(FrameError, match="announced"):
        ends.channel.start()


def test_a_frame_that_is_too_large_is_not_sent(ends: Ends) -> None:
    ends.channel.frame_bytes = 10
    with pytest.raises(FrameError):
        ends.channel.finish(FINISH)
    ends.close(ends.channel.write_fd)
    assert os.read(ends.from_guest, 1) == b""
