"""The lockstep with a guest: honest guests get their completions, hostile ones a clean Result."""

from __future__ import annotations

import asyncio
import signal
import threading
from dataclasses import replace

import pytest

from bascule.bridge import ApprovalRequest, Decision, Executor, HandshakeError, Limits, Result, approve_all
from bascule.bridge.journal import EventKind
from bascule.sandbox import Ending, SandboxError
from bascule.tools import AnyTool, tool
from bascule.wire import (
    Act,
    Activation,
    Call,
    Cancel,
    Finish,
    Hello,
    Note,
    Output,
    ScriptError,
    Sleep,
)
from tests.unit.bridge.guests import EXITED, IMAGE, USAGE, Guest, GuestBackend, Line

pytestmark = pytest.mark.anyio

SCRIPT = "first()\nsecond()\nthird()\n"


@tool(effects="read")
async def echo(text: str = "x") -> str:
    """Echo."""
    return text


async def run(guest: Guest, *tools: AnyTool, limits: Limits | None = None) -> Result:
    backend = GuestBackend(guest)
    async with Executor(
        tools or (echo,), backend=backend, limits=limits or Limits(), approver=approve_all
    ) as executor:
        result = await executor.run(SCRIPT)
    assert [sandbox.closed for sandbox in backend.sandboxes] == [True]
    return result


# ---------------------------------------------------------------- honest guests


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


# ---------------------------------------------------------------- limits and endings


async def test_a_guest_that_never_comes_back_is_killed_and_its_last_line_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bascule.bridge.clock.GUEST_GRACE_S", 0.0)
    never = asyncio.Event()

    async def guest(line: Line) -> Ending:
        await line.greet()
        try:
            await never.wait()
        except asyncio.CancelledError:
            tail = 'Timeout (0:00:30)!\n  File "<script>", line 2 in <script>\n'
            return replace(EXITED, exit_code=137, signal=9, killed=True, stderr_tail=tail)
        return EXITED

    result = await run(guest, limits=Limits(wall_s=0.1))
    assert result.status == "limit"
    assert result.error is not None
    assert (result.error.kind, result.error.line, result.error.source) == ("wall_limit", 2, "second()")
    assert result.error.message == "stopped at line 2 after 0.1 s of running"


async def test_a_run_whose_tools_take_too_long_ends_at_the_runs_limit() -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        line.act([Sleep(seq=1, seconds=100.0)])
        await line.done()

    result = await run(guest, limits=Limits(run_s=0.1))
    assert result.status == "limit"
    assert result.error is not None
    assert result.error.kind == "run_limit"


async def test_a_flood_of_output_ends_the_run_with_what_fits() -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        for _ in range(3):
            line.act([Output(text="x" * 600)], blocked=False)
        await asyncio.Event().wait()

    result = await run(guest, limits=Limits(output_bytes=1024))
    assert result.status == "limit"
    assert result.error is not None
    assert result.error.kind == "output_limit"
    assert result.output == "x" * 1024


@pytest.mark.parametrize(
    ("ending", "status", "kind"),
    [
        (replace(EXITED, oom_killed=True, exit_code=137, signal=9), "limit", "memory_limit"),
        (replace(EXITED, exit_code=152, signal=signal.SIGXCPU), "limit", "cpu_limit"),
        (replace(EXITED, exit_code=139, signal=signal.SIGSEGV), "failed", "guest_crashed"),
        (replace(EXITED, exit_code=1, stderr_tail="Timeout (0:00:30)!\n"), "limit", "wall_limit"),
        (replace(EXITED, exit_code=3), "failed", "guest_crashed"),
        (replace(EXITED, exit_code=0), "failed", "guest_crashed"),
        (replace(EXITED, exit_code=None), "failed", "guest_crashed"),
    ],
)
async def test_a_guest_that_ends_before_it_finished_never_succeeds(
    ending: Ending, status: str, kind: str
) -> None:
    async def guest(line: Line) -> Ending:
        await line.greet()
        return ending

    result = await run(guest)
    assert result.error is not None
    assert (result.status, result.error.kind) == (status, kind)


@pytest.mark.parametrize(
    "ending",
    [
        replace(EXITED, exit_code=1),
        replace(EXITED, exit_code=137, signal=9, killed=True),
        replace(EXITED, exit_code=None),
        replace(EXITED, oom_killed=True),
    ],
)
async def test_a_finish_without_a_clean_exit_is_no_success(ending: Ending) -> None:
    async def guest(line: Line) -> Ending:
        await line.greet()
        line.finish("forged")
        return ending

    result = await run(guest)
    assert result.status != "ok"
    assert result.value is None


# ---------------------------------------------------------------- hostile guests


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


# ---------------------------------------------------------------- handshakes


@pytest.mark.parametrize(
    ("hello", "code"),
    [
        (Hello(protocol=2, image=IMAGE, python="3.11"), "protocol_mismatch"),
        (Hello(protocol=1, image="f" * 64, python="3.11"), "image_mismatch"),
        (Finish(status="ok", activations=(), usage=USAGE), "protocol_mismatch"),
    ],
)
async def test_a_guest_from_elsewhere_is_refused_before_it_sees_the_script(
    hello: Hello | Finish, code: str
) -> None:
    async def guest(line: Line) -> None:
        line.send(hello)
        await line.receive()
        raise AssertionError("the host sent something")

    with pytest.raises((HandshakeError, SandboxError)) as caught:
        await run(guest)
    assert caught.value.code == code


async def test_a_guest_that_dies_before_hello_is_an_error_with_its_last_words() -> None:
    async def guest(line: Line) -> Ending:
        return replace(EXITED, exit_code=1, stderr_tail="ModuleNotFoundError: msgspec")

    with pytest.raises(HandshakeError, match="ModuleNotFoundError: msgspec"):
        await run(guest)


async def test_a_silent_guest_is_given_up_at_the_start_limit() -> None:
    async def guest(line: Line) -> None:
        await asyncio.Event().wait()

    with pytest.raises(HandshakeError, match=r"said nothing within 0\.1 s"):
        await run(guest, limits=Limits(start_s=0.1))


async def test_a_cancelled_run_leaves_no_sandbox() -> None:
    started = asyncio.Event()

    async def guest(line: Line) -> None:
        await line.greet()
        started.set()
        await asyncio.Event().wait()

    backend = GuestBackend(guest)
    async with Executor([echo], backend=backend) as executor:
        running = asyncio.ensure_future(executor.run(SCRIPT))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert [(sandbox.killed, sandbox.closed) for sandbox in backend.sandboxes] == [(True, True)]
