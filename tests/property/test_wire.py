"""Whatever bytes arrive, the host's decoder gives a frame or a FrameError; what it takes is canonical."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bascule.wire import (
    Act,
    Activation,
    Call,
    Cancel,
    Finish,
    FrameError,
    FrameSplitter,
    GuestUsage,
    Hello,
    Note,
    Output,
    ScriptError,
    Sleep,
    decode_guest_frame,
    encode_frame,
)
from bascule.wire.codec import MAX_GUEST_FRAME_BYTES
from bascule.wire.frames import GuestFrame

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
sequence = st.integers(1, 2**31 - 1)
commands = st.one_of(
    st.builds(
        Call,
        seq=sequence,
        tool=texts,
        args=st.dictionaries(texts, values, max_size=3),
        line=st.integers(1, 999),
    ),
    st.builds(Cancel, seq=sequence),
    st.builds(Sleep, seq=sequence, seconds=st.floats(0, 1e9)),
    st.builds(Output, text=texts),
)
activations = st.lists(
    st.lists(commands, max_size=4).map(lambda found: Activation(commands=tuple(found))), max_size=3
).map(tuple)
errors = st.builds(
    ScriptError, kind=texts, message=texts, exception=st.none() | texts, line=st.none() | sequence
)
frames: st.SearchStrategy[GuestFrame] = st.one_of(
    st.builds(Hello, protocol=st.integers(0, 9), image=texts, python=texts),
    st.builds(Act, activations=activations, blocked=st.booleans()),
    st.builds(
        Finish,
        status=st.sampled_from(["ok", "failed", "refused", "limit"]),
        activations=activations,
        value=values,
        value_source=st.sampled_from(["return", "last_expression", "last_assignment", "none"]),
        errors=st.lists(errors, max_size=2).map(tuple),
        notes=st.lists(st.builds(Note, code=texts, message=texts), max_size=2).map(tuple),
        usage=st.builds(GuestUsage, cpu_s=st.floats(0, 1e6), peak_memory_bytes=st.integers(0, 2**40)),
    ),
)


def accepted(payload: bytes) -> GuestFrame | None:
    """Return the frame, or None when the payload is refused; anything else is a failure of the decoder."""
    try:
        return decode_guest_frame(payload)
    except FrameError:
        return None


@given(st.binary(max_size=400))
def test_any_bytes_give_a_frame_or_a_frame_error(payload: bytes) -> None:
    accepted(payload)


@given(values)
def test_any_json_gives_a_frame_or_a_frame_error(value: Any) -> None:
    accepted(msgspec.json.encode(value))


@settings(max_examples=40, deadline=None)
@given(frames, st.data())
def test_a_damaged_frame_gives_a_frame_or_a_frame_error(frame: GuestFrame, data: st.DataObject) -> None:
    payload = bytearray(encode_frame(frame, max_bytes=MAX_GUEST_FRAME_BYTES)[4:])
    at = data.draw(st.integers(0, len(payload) - 1))
    payload[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    found = accepted(bytes(payload))
    if found is not None:
        # What is accepted has exactly one spelling.
        assert encode_frame(found, max_bytes=MAX_GUEST_FRAME_BYTES)[4:] == bytes(payload)


@settings(max_examples=40, deadline=None)
@given(frames)
def test_every_frame_survives_the_round_trip(frame: GuestFrame) -> None:
    payload = encode_frame(frame, max_bytes=MAX_GUEST_FRAME_BYTES)[4:]
    assert decode_guest_frame(payload) == frame
    assert accepted(payload + b" ") is None
    assert accepted(b" " + payload) is None


@settings(max_examples=40, deadline=None)
@given(st.lists(frames, max_size=4), st.data())
def test_the_splitter_finds_the_frames_in_any_chunks(sent: list[GuestFrame], data: st.DataObject) -> None:
    stream = b"".join(encode_frame(frame, max_bytes=MAX_GUEST_FRAME_BYTES) for frame in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    splitter = FrameSplitter(max_bytes=MAX_GUEST_FRAME_BYTES)
    found: list[GuestFrame] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += map(decode_guest_frame, splitter.feed(stream[start:end]))
    assert found == sent
    assert splitter.pending == 0


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_the_splitter_holds_no_more_than_one_frame(chunks: list[bytes]) -> None:
    splitter = FrameSplitter(max_bytes=64)
    for chunk in chunks:
        try:
            payloads = list(splitter.feed(chunk))
        except FrameError:
            return
        assert all(len(payload) <= 64 for payload in payloads)
        assert splitter.pending <= 64 + 4
