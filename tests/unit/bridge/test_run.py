"""The lockstep with an honest guest: it gets its completions, in order, and nothing is lost."""

from __future__ import annotations

import asyncio
import threading

import pytest

from bascule.bridge import (
    ApprovalRequest,
    Decision,
    Executor,
    Limits,
    Result,
)
from bascule.bridge.journal import EventKind
from bascule.tools import tool
from bascule.wire import (
    Act,
    Activation,
    Call,
    Cancel,
    Finish,
    Note,
    Output,
    ScriptError,
    Sleep,
)
from tests.unit.bridge.guests import USAGE, GuestBackend, Line
from tests.unit.bridge.runs import SCRIPT, echo, run

pytestmark = pytest.mark.anyio


async def test_value_output_notes_and_usage_come_back() -> None:
    async def guest(line: Line) -> None:
        start = await line.greet()
        assert start.script == SCRIPT
        assert [stub.name for stub in start.tools] == ["echo"]
        line.act([Output(text="half ")], blocked=False)
        note = Note(code="fence", message="a fence was stripped")
        line.finish([1, None], Output(text="done\n"), notes=(note,))

    result = await run(guest)
    assert (result.status, result.value, result.value_source) == ("ok", [1, None], "return")
    assert result.output == "half done\n"
    assert [note.code for note in result.notes] == ["fence"]
    assert result.usage.cpu_s == 0.5
    assert result.usage.returned_bytes == len("half done\n") + len("[1,null]")


async def test_every_delivery_is_answered_by_one_activation_and_time_never_goes_back() -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("echo"), line.call("echo"), Sleep(seq=3, seconds=0.0)])
        seen: list[int] = []
        times: list[float] = []
        while len(seen) < 3:
            done = await line.done()
            seen += [delivery.seq for delivery in done.deliveries]
            times += [delivery.now for delivery in done.deliveries]
            if len(seen) < 3:
                line.act_for(done)
        assert times == sorted(times)
        line.finish(sorted(seen))

    result = await run(guest)
    assert result.value == [1, 2, 3]


async def test_a_cancelled_call_that_was_not_dispatched_never_runs() -> None:
    begun: list[str] = []
    release = asyncio.Event()

    @tool(effects="once")
    async def effect(name: str) -> None:
        """Note and wait."""
        begun.append(name)
        await release.wait()

    async def guest(line: Line) -> None:
        await line.greet()
        first, second = line.call("effect", name="a"), line.call("effect", name="b")
        line.act([first, second, Sleep(seq=3, seconds=0.0)])
        await line.done()
        line.act([Cancel(seq=2), Sleep(seq=4, seconds=0.0)])
        await line.done()
        release.set()
        line.act([])
        done = await line.done()
        line.finish([delivery.seq for delivery in done.deliveries])

    result = await run(guest, effect)
    assert result.value == [1]
    assert begun == ["a"]
    assert [(call.state, call.cancelled) for call in result.calls] == [
        ("done", False),
        ("not_started", True),
    ]


async def test_a_cancelled_call_that_runs_goes_on_and_its_result_is_dropped() -> None:
    release = asyncio.Event()
    begun = asyncio.Event()

    @tool(effects="once")
    async def effect() -> str:
        """Wait."""
        begun.set()
        await release.wait()
        return "done"

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("effect"), Sleep(seq=2, seconds=0.0)])
        await line.done()
        await begun.wait()
        line.act([Cancel(seq=1), Sleep(seq=3, seconds=0.0)])
        done = await line.done()
        assert [delivery.seq for delivery in done.deliveries] == [3]
        release.set()
        line.finish("ended")

    result = await run(guest, effect)
    assert result.value == "ended"
    assert [(call.state, call.cancelled) for call in result.calls] == [("done", True)]


async def test_a_call_that_comes_with_the_finish_is_never_started() -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        line.finish(None, line.call("echo"))

    result = await run(guest)
    assert result.status == "ok"
    assert [call.state for call in result.calls] == ["not_started"]


async def test_the_journal_tells_the_run_in_order() -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("echo")])
        await line.done()
        line.finish(1)

    async with Executor([echo], backend=GuestBackend(guest)) as executor:
        result = await executor.run(SCRIPT)
        journal = executor.journal(result.run_id)
    assert journal is not None
    assert [entry.kind for entry in journal.entries] == [
        EventKind.RUN_STARTED,
        EventKind.CALL_ISSUED,
        EventKind.DECIDED,
        EventKind.DISPATCHED,
        EventKind.COMPLETED,
        EventKind.DELIVERED,
        EventKind.FINISHED,
    ]
    assert [entry.index for entry in journal.entries] == list(range(7))


async def test_errors_of_the_guest_are_bounded_and_what_happened_is_listed() -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("send")])
        await line.done()
        error = ScriptError(kind="uncaught_exception", message="m" * 9000, exception="ValueError", line=2)
        line.send(Finish(status="failed", activations=(), errors=(error,) * 60, usage=USAGE))

    @tool(effects="once")
    async def send() -> None:
        """Send."""

    result = await run(guest, send)
    assert result.status == "failed"
    assert len(result.errors) == 50
    assert result.error is not None
    assert len(result.error.message) < 4100
    assert result.happened == ("call 1 send (line 1): done",)
    assert "do not repeat what is done" in result.for_model()


async def test_a_wait_for_a_person_counts_against_no_limit() -> None:
    asked = asyncio.Event()
    decide = asyncio.Event()

    @tool(effects="once")
    async def send() -> str:
        """Send."""
        return "sent"

    async def approver(request: ApprovalRequest) -> Decision:
        asked.set()
        await decide.wait()
        return Decision(verdict="approve")

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("send")])
        await line.done()
        line.finish("ok")

    async with Executor(
        [send], backend=GuestBackend(guest), approver=approver, limits=Limits(run_s=0.1)
    ) as executor:
        running = asyncio.ensure_future(executor.run(SCRIPT))
        await asked.wait()
        await asyncio.wait({running}, timeout=0.3)
        assert not running.done()
        decide.set()
        result = await running
    assert result.status == "ok"


async def test_many_runs_at_once_do_not_mix() -> None:
    async def guest(line: Line) -> None:
        start = await line.greet()
        line.act([line.call("echo", text=start.script)])
        done = await line.done()
        line.finish(bytes(done.deliveries[0].value).decode())

    async with Executor([echo], backend=GuestBackend(guest)) as executor:
        results = await asyncio.gather(*(executor.run(str(number)) for number in range(20)))
    assert [result.value for result in results] == [f'"{number}"' for number in range(20)]
    assert len({result.run_id for result in results}) == 20


def test_the_blocking_twin_works_from_several_threads() -> None:
    async def guest(line: Line) -> None:
        start = await line.greet()
        line.finish(start.script)

    values: list[object] = []

    def append_value(script: str) -> None:
        values.append(executor.run_sync(script).value)

    with Executor([echo], backend=GuestBackend(guest)) as executor:
        threads = [threading.Thread(target=append_value, args=(str(number),)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(map(str, values)) == ["0", "1", "2"]


async def test_a_cancel_of_what_is_ready_or_delivered_already_is_no_violation() -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("echo"), line.call("echo"), Sleep(seq=3, seconds=0.0)])
        done = await line.done()
        first = done.deliveries[0].seq
        rest = [Cancel(seq=seq) for seq in (1, 2, 3)]
        line.send(
            Act(
                activations=(
                    Activation(commands=(*rest, Sleep(seq=4, seconds=0.0))),
                    *(Activation() for _ in done.deliveries[1:]),
                )
            )
        )
        last = await line.done()
        line.finish([first in (1, 2, 3), [delivery.seq for delivery in last.deliveries]])

    result = await run(guest)
    assert (result.status, result.value) == ("ok", [True, [4]])


async def test_a_cancelled_effect_that_waits_for_a_place_gives_back_what_it_holds() -> None:
    release = asyncio.Event()

    @tool(effects="read")
    async def hold() -> None:
        """Wait."""
        await release.wait()

    @tool(effects="read", resource="printer")
    async def use() -> str:
        """Use the printer."""
        return "printed"

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("hold"), line.call("use"), Sleep(seq=3, seconds=0.0)])
        await line.done()
        line.act([Cancel(seq=2), Call(seq=4, tool="use", args={}, line=1), Sleep(seq=5, seconds=0.0)])
        await line.done()
        release.set()
        outcomes: list[int] = []
        line.act([])
        while len(outcomes) < 2:
            done = await line.done()
            outcomes += [delivery.seq for delivery in done.deliveries]
            if len(outcomes) < 2:
                line.act_for(done)
        line.finish(sorted(outcomes))

    result = await run(guest, hold, use, limits=Limits(in_flight=1))
    assert (result.status, result.value) == ("ok", [1, 4]), result.errors


async def test_large_results_travel_in_several_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bascule.bridge.completions.MAX_BATCH_BYTES", 100)

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("echo", text="x" * 80) for _ in range(4)])
        batches: list[int] = []
        while sum(batches) < 4:
            done = await line.done()
            batches.append(len(done.deliveries))
            if sum(batches) < 4:
                line.act_for(done)
        line.finish(batches)

    result = await run(guest)
    assert result.value == [1, 1, 1, 1]


def test_a_result_in_words_is_output_value_notes_and_errors() -> None:
    note = Note(code="fence", message="a fence was stripped")
    good = Result(run_id="r", status="ok", value=[1], value_source="return", output="hi\n", notes=(note,))
    assert good.for_model() == "hi\n[1]\nnote: a fence was stripped"
    error = ScriptError(
        kind="syntax_error", message="wrong", line=1, source="if x\n    ^", suggestion="add a colon"
    )
    bad = Result(run_id="r", status="refused", errors=(error,))
    assert bad.for_model() == "syntax_error (line 1): wrong\nif x\n    ^\nhint: add a colon"
