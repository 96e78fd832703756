"""Guests that break the protocol: whatever they send, the run ends in a clean failure."""

from __future__ import annotations

import asyncio

import pytest

from bascule.wire import (
    Act,
    Activation,
    Call,
    Cancel,
    Finish,
    Hello,
    Output,
    Sleep,
)
from tests.unit.bridge.guests import IMAGE, USAGE, Guest, Line
from tests.unit.bridge.runs import run

pytestmark = pytest.mark.anyio


async def _nothing_outstanding(line: Line) -> None:
    line.act([])


async def _wrong_number_of_activations(line: Line) -> None:
    line.act([], [line.call("echo")])


async def _duplicate_seq(line: Line) -> None:
    call = line.call("echo")
    line.act([call, call])


async def _seq_that_falls(line: Line) -> None:
    line.act([Call(seq=5, tool="echo", args={}, line=1), Call(seq=4, tool="echo", args={}, line=1)])


async def _seq_out_of_range(line: Line) -> None:
    line.act([Call(seq=2**31 + 1, tool="echo", args={}, line=1)])


async def _seq_zero(line: Line) -> None:
    line.act([Call(seq=0, tool="echo", args={}, line=1)])


async def _cancel_of_nothing(line: Line) -> None:
    line.act([Cancel(seq=7)])


async def _second_hello(line: Line) -> None:
    line.send(Hello(protocol=1, image=IMAGE, python="3.11"))


async def _frame_while_blocked(line: Line) -> None:
    line.act([Sleep(seq=1, seconds=50.0)])
    line.act([])


async def _frame_after_finish(line: Line) -> None:
    line.finish("first")
    line.finish("second")


async def _too_many_activations_in_finish(line: Line) -> None:
    line.send(Finish(status="ok", activations=(Activation(), Activation()), usage=USAGE))


async def _unblocked_call(line: Line) -> None:
    line.act([line.call("echo")], blocked=False)


async def _unblocked_nothing(line: Line) -> None:
    line.send(Act(activations=(), blocked=False))


async def _empty_output(line: Line) -> None:
    line.act([Output(text="")], blocked=False)


async def _negative_sleep(line: Line) -> None:
    line.act([Sleep(seq=1, seconds=-1.0)])


async def _endless_sleep(line: Line) -> None:
    line.act([Sleep(seq=1, seconds=1e300)])


async def _frame_of_the_host(line: Line) -> None:
    line.send_bytes(b'{"type":"done","deliveries":[]}')


async def _not_json(line: Line) -> None:
    line.send_bytes(b"\xff\xfe\x00")


async def _nothing_at_all(line: Line) -> None:
    line.send_bytes(b"")


async def _too_deep(line: Line) -> None:
    line.send_bytes(b"[" * 5000)


async def _duplicate_keys(line: Line) -> None:
    line.send_bytes(b'{"type":"act","activations":[],"blocked":true,"blocked":true}')


@pytest.mark.parametrize(
    "attack",
    [
        _nothing_outstanding,
        _wrong_number_of_activations,
        _duplicate_seq,
        _seq_that_falls,
        _seq_out_of_range,
        _seq_zero,
        _cancel_of_nothing,
        _second_hello,
        _frame_while_blocked,
        _frame_after_finish,
        _too_many_activations_in_finish,
        _unblocked_call,
        _unblocked_nothing,
        _empty_output,
        _negative_sleep,
        _endless_sleep,
        _frame_of_the_host,
        _not_json,
        _nothing_at_all,
        _too_deep,
        _duplicate_keys,
    ],
)
async def test_a_guest_that_breaks_the_protocol_gets_a_clean_failure(attack: Guest) -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        await attack(line)
        if attack is not _frame_after_finish:
            await asyncio.Event().wait()

    result = await run(guest)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.kind == "protocol_violation"
    assert result.value is None
