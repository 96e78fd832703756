"""How runs end that do not end well: limits, crashes, cancellation, and guests from elsewhere."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace

import pytest

from bascule.bridge import (
    Executor,
    ExecutorClosedError,
    HandshakeError,
    Limits,
)
from bascule.sandbox import Ending, SandboxError
from bascule.tools import AnyTool, tool
from bascule.wire import (
    Call,
    Finish,
    Hello,
    Output,
    Sleep,
)
from tests.unit.bridge.guests import EXITED, IMAGE, USAGE, GuestBackend, Line
from tests.unit.bridge.runs import SCRIPT, echo, run

pytestmark = pytest.mark.anyio


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
    @tool(effects="read")
    async def stuck() -> None:
        """Never answer."""
        await asyncio.Event().wait()

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("stuck"), Sleep(seq=2, seconds=100.0, line=2)])
        await line.done()

    result = await run(guest, stuck, limits=Limits(run_s=0.1))
    assert result.status == "limit"
    assert result.error is not None
    assert result.error.kind == "run_limit"


async def test_a_sleep_past_the_runs_limit_ends_the_run_at_once_and_names_its_line() -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        line.act([Sleep(seq=1, seconds=900.0, line=3), Sleep(seq=2, seconds=700.0, line=2)])
        await line.done()

    async with asyncio.timeout(300):  # were it waited for, ten minutes would pass
        result = await run(guest, limits=Limits(run_s=600.0, hold_warm_s=600.0))
    assert result.status == "limit"
    assert result.error is not None
    assert (result.error.kind, result.error.line, result.error.source) == ("run_limit", 2, "second()")
    assert result.error.message == (
        "stopped at line 2, waiting for 700 s: the run with its tools may take 600 s"
    )


async def test_a_sleep_past_the_runs_limit_goes_on_where_something_else_may_end_first() -> None:
    seen: list[list[int]] = []

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("echo"), Sleep(seq=2, seconds=900.0, line=2)])
        seen.append([each.seq for each in (await line.done()).deliveries])
        line.act([Sleep(seq=3, seconds=0.0, line=2)])
        seen.append([each.seq for each in (await line.done()).deliveries])
        line.finish()

    result = await run(guest, limits=Limits(run_s=600.0, hold_warm_s=600.0))
    assert (result.status, seen) == ("ok", [[1], [3]])


async def test_a_sleep_in_which_the_run_is_suspended_before_its_limit_counts_for_nothing() -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        line.act([Sleep(seq=1, seconds=900.0, line=2)])
        await line.done()

    limits = Limits(run_s=600.0, hold_warm_s=0.0)
    async with Executor((echo,), backend=GuestBackend(guest), limits=limits) as executor:
        result = await executor.run(SCRIPT, wait=False)
    assert result.status == "suspended"


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
        (
            # What the watchdog writes, written by the script before its interpreter crashed.
            replace(EXITED, exit_code=139, signal=signal.SIGSEGV, stderr_tail="Timeout (0:00:30)!\n"),
            "failed",
            "guest_crashed",
        ),
        (replace(EXITED, exit_code=3), "failed", "guest_crashed"),
        (replace(EXITED, exit_code=0), "failed", "guest_crashed"),
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


async def test_a_script_that_waits_for_too_much_at_once_ends_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bascule.bridge.outstanding.MAX_OUTSTANDING", 3)

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([Sleep(seq=seq, seconds=50.0) for seq in range(1, 6)])
        await line.done()

    result = await run(guest)
    assert result.status == "limit"
    assert result.error is not None
    assert result.error.kind == "waiting_limit"


async def test_a_bug_of_the_host_ends_the_run_and_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(tool: AnyTool, call: Call) -> None:
        raise AssertionError("a bug")

    monkeypatch.setattr("bascule.bridge.pipeline.validate_arguments", broken)

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("echo")])
        await line.done()

    backend = GuestBackend(guest)
    async with Executor([echo], backend=backend) as executor:
        with pytest.raises(AssertionError, match="a bug"):
            await executor.run(SCRIPT)
    assert backend.sandboxes[0].closed


async def test_effects_that_outlast_the_script_are_left_after_the_last_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bascule.bridge.outstanding.LAST_CALLS_S", 0.05)

    @tool(effects="once")
    async def stuck() -> None:
        """Wait."""
        await asyncio.Event().wait()

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("stuck"), Sleep(seq=2, seconds=0.0)])
        await line.done()
        line.finish("ended")

    result = await run(guest, stuck)
    assert (result.status, result.calls[0].state) == ("ok", "running")


async def test_a_closed_executor_runs_nothing() -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        line.finish(1)

    executor = Executor([echo], backend=GuestBackend(guest))
    await executor.close()
    with pytest.raises(ExecutorClosedError):
        await executor.run(SCRIPT)


@pytest.mark.parametrize(
    ("ending", "started"),
    [
        (replace(EXITED, exit_code=137, signal=9), 2),
        (replace(EXITED, exit_code=143, signal=15), 2),
        (replace(EXITED, exit_code=None), 2),  # the engine was restarted and knows nothing of it
        (replace(EXITED, exit_code=139, signal=11), 1),
        (replace(EXITED, exit_code=3), 1),
    ],
)
async def test_a_guest_that_somebody_else_ended_is_replaced_and_one_that_crashed_is_not(
    ending: Ending, started: int
) -> None:
    lives = 0

    async def guest(line: Line) -> Ending:
        nonlocal lives
        lives += 1
        await line.greet()
        line.act([line.call("echo")])
        if lives == 1:
            return ending
        await line.done()
        line.finish("well")
        return EXITED

    backend = GuestBackend(guest)
    async with Executor([echo], backend=backend) as executor:
        result = await executor.run(SCRIPT)
    assert len(backend.sandboxes) == started
    expected = ("ok", None) if started == 2 else ("failed", "guest_crashed")
    assert (result.status, result.error and result.error.kind) == expected
