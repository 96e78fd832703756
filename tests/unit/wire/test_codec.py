"""The codec gives a frame or a FrameError for any bytes, and says which bound was broken."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bascule.wire import (
    Act,
    Activation,
    BasculeError,
    Call,
    Delivery,
    Done,
    Finish,
    FrameError,
    FrameSplitter,
    GuestLimits,
    GuestUsage,
    Hello,
    Start,
    decode_guest_frame,
    decode_host_frame,
    encode_frame,
)
from bascule.wire.codec import MAX_DEPTH, MAX_ELEMENTS, MAX_GUEST_FRAME_BYTES

HELLO = Hello(protocol=1, image="abc", python="3.11.7")
LIMITS = GuestLimits(
    wall_s=1.0, cpu_s=1.0, memory_bytes=1, output_bytes=1, recursion=1, calls=1, frame_bytes=1
)


def payload(frame: Any) -> bytes:
    """Return the payload of a frame, without its header."""
    return encode_frame(frame, max_bytes=MAX_GUEST_FRAME_BYTES)[4:]


def finish(value: object) -> Finish:
    """Return a Finish that carries ``value``."""
    return Finish(
        status="ok",
        activations=(),
        value=value,
        value_source="return",
        usage=GuestUsage(cpu_s=0.5, peak_memory_bytes=1),
    )


def code_of(data: bytes) -> str:
    """Return the code with which a guest's payload is refused."""
    with pytest.raises(FrameError) as caught:
        decode_guest_frame(data)
    return caught.value.code


def test_the_header_is_the_big_endian_length_of_the_payload() -> None:
    data = encode_frame(HELLO, max_bytes=1_000)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    assert decode_guest_frame(data[4:]) == HELLO


def test_a_host_frame_survives_the_round_trip() -> None:
    start = Start(script="1", tools=(), seed=1, now=2.0, limits=LIMITS)
    assert decode_host_frame(payload(start)) == start
    done = Done(deliveries=(Delivery(seq=1, now=2.0, value=msgspec.Raw(b"[1]")),))
    decoded = decode_host_frame(payload(done))
    assert isinstance(decoded, Done)
    assert bytes(decoded.deliveries[0].value) == b"[1]"


def test_a_frame_above_the_cap_is_not_sent() -> None:
    with pytest.raises(FrameError, match="the cap is 10") as caught:
        encode_frame(HELLO, max_bytes=10)
    assert caught.value.code == "frame_too_large"


def test_a_frame_at_the_cap_is_sent() -> None:
    size = len(payload(HELLO))
    assert encode_frame(HELLO, max_bytes=size)


def _endless() -> list[Any]:
    nested: list[Any] = []
    nested.append(nested)
    return nested


@pytest.mark.parametrize("value", [object(), "\ud800", _endless(), {1j: 2}])
def test_a_value_that_is_not_json_is_not_sent(value: object) -> None:
    with pytest.raises(FrameError) as caught:
        encode_frame(finish(value), max_bytes=MAX_GUEST_FRAME_BYTES)
    assert caught.value.code == "frame_not_encodable"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"type":"hello"}',
        b'{"type":"approve","seq":1}',
        b'{"type":"done","deliveries":[]}',
        b'{"type":"start","script":"","tools":[],"seed":0,"now":0.0}',
        b'{"type":"hello","protocol":1,"image":"a","python":"b","more":1}',
        b'{"type":"hello","protocol":"1","image":"a","python":"b"}',
        b'{"type":"hello","protocol":1,"image":"\xff","python":"b"}',
        b'{"type":"hello","protocol":1,"image":"\\ud800","python":"b"}',
        payload(HELLO) + b"{}",
        payload(HELLO) + b"\0",
        payload(HELLO)[:-1],
        b"\xef\xbb\xbf" + payload(HELLO),
        payload(HELLO).decode().encode("utf-16"),
    ],
)
def test_what_is_no_guest_frame_is_refused(data: bytes) -> None:
    assert code_of(data) == "frame_invalid"


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_numbers_that_are_not_finite_are_refused(number: bytes) -> None:
    data = payload(finish(1)).replace(b'"value":1', b'"value":' + number)
    assert code_of(data) in {"frame_invalid", "frame_not_canonical"}


def test_a_guest_may_not_send_what_only_the_host_sends() -> None:
    done = payload(Done(deliveries=(Delivery(seq=1, now=1.0, value=msgspec.Raw(b"1")),)))
    assert code_of(done) == "frame_invalid"


def test_a_host_frame_from_the_guests_side_is_refused_by_the_guest() -> None:
    with pytest.raises(FrameError):
        decode_host_frame(payload(HELLO))


@pytest.mark.parametrize(
    "data",
    [
        b" " + payload(HELLO),
        payload(HELLO) + b"\n",
        payload(HELLO).replace(b":1", b": 1"),
        payload(HELLO).replace(b"abc", b"\\u0061bc"),
        payload(HELLO).replace(b'"image":"abc"', b'"image":"x","image":"abc"'),
        b'{"protocol":1,"type":"hello","image":"abc","python":"3.11.7"}',
        payload(finish({"a": 1})).replace(b'{"a":1}', b'{"a":2,"a":1}'),
        payload(finish(1.5)).replace(b'"value":1.5', b'"value":1.50'),
        payload(finish(1.5)).replace(b'"value":1.5', b'"value":15e-1'),
        payload(finish("/")).replace(b'"/"', b'"\\/"'),
    ],
)
def test_a_second_spelling_of_the_same_frame_is_refused(data: bytes) -> None:
    assert code_of(data) == "frame_not_canonical"


def nested(levels: int) -> list[Any]:
    """Return a list inside a list, ``levels`` deep."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_nesting_up_to_the_bound_is_accepted_and_one_more_is_refused() -> None:
    # The frame itself is one level.
    assert decode_guest_frame(payload(finish(nested(MAX_DEPTH - 1))))
    assert code_of(payload(finish(nested(MAX_DEPTH)))) == "frame_too_deep"


def test_brackets_inside_strings_do_not_count_as_nesting() -> None:
    assert decode_guest_frame(payload(finish("[" * 1_000 + '\\"' + "{" * 1_000)))


def test_many_shallow_lists_are_no_nesting() -> None:
    assert decode_guest_frame(payload(finish([nested(1) for _ in range(1_000)])))


def test_more_values_than_the_bound_are_refused() -> None:
    assert code_of(payload(finish([0] * (MAX_ELEMENTS + 2)))) == "frame_too_many_elements"


def test_commas_inside_strings_do_not_count_as_values() -> None:
    assert decode_guest_frame(payload(finish("," * (MAX_ELEMENTS + 2))))


def test_an_act_carries_its_calls() -> None:
    call = Call(seq=1, tool="t", args={"a": [1, None, "x"]}, line=3)
    act = Act(activations=(Activation(commands=(call,)), Activation()))
    assert decode_guest_frame(payload(act)) == act


def test_the_splitter_yields_frames_however_they_are_cut() -> None:
    stream = b"".join(encode_frame(HELLO, max_bytes=1_000) for _ in range(3))
    splitter = FrameSplitter(max_bytes=1_000)
    payloads = [found for byte in stream for found in splitter.feed(bytes([byte]))]
    assert payloads == [payload(HELLO)] * 3
    assert splitter.pending == 0


def test_the_splitter_tells_that_a_frame_was_cut() -> None:
    splitter = FrameSplitter(max_bytes=1_000)
    assert list(splitter.feed(encode_frame(HELLO, max_bytes=1_000)[:-1])) == []
    assert splitter.pending > 0


def test_the_splitter_refuses_a_length_above_its_cap_before_the_payload_arrives() -> None:
    splitter = FrameSplitter(max_bytes=10)
    with pytest.raises(FrameError) as caught:
        list(splitter.feed((11).to_bytes(4, "big")))
    assert caught.value.code == "frame_too_large"


def test_an_empty_payload_is_a_frame_that_is_refused_by_the_decoder() -> None:
    splitter = FrameSplitter(max_bytes=10)
    assert list(splitter.feed(bytes(4))) == [b""]


def test_an_error_shows_the_script_no_more_than_its_code() -> None:
    error = BasculeError("frame_too_large", "host detail /srv/secret")
    assert str(error) == "host detail /srv/secret"
    assert error.for_script() == "frame too large"
