"""A host under attack: guests, tools and policies that try to hang it, fill it, or end it by an exception."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import pytest
from pydantic import BaseModel, computed_field, field_validator

from bascule.bridge import ApprovalRequest, Decision, Executor, Limits, Result, approve_all
from bascule.bridge.approval import Approver
from bascule.bridge.failure import redact
from bascule.bridge.verdict import script_line
from bascule.sandbox import Ending, SandboxError
from bascule.tools import AnyTool, tool
from bascule.wire import Cancel, Output, Sleep
from tests.unit.bridge.guests import Guest, GuestBackend, GuestSandbox, Line, calls

pytestmark = pytest.mark.anyio

SCRIPT = "first()\nsecond()\n"


@tool(effects="read")
async def echo(text: Any = "x") -> Any:
    """Echo."""
    return text


@tool(effects="once")
async def danger(text: Any = "x") -> Any:
    """Do it."""
    return text


async def run(
    guest: Guest, *tools: AnyTool, limits: Limits | None = None, approver: Approver = approve_all
) -> Result:
    async with Executor(
        tools or (echo,), backend=GuestBackend(guest), limits=limits or Limits(), approver=approver
    ) as executor:
        return await executor.run(SCRIPT)


def kind_of(result: Result) -> str:
    assert result.error is not None
    return result.error.kind


# ------------------------------------------------------------------ hanging and filling


async def test_a_guest_that_reads_nothing_runs_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    send = GuestSandbox.send

    async def stuck(self: GuestSandbox, frame: bytes) -> None:
        if b'"done"' in frame[:40]:
            await asyncio.Event().wait()
        await send(self, frame)

    monkeypatch.setattr(GuestSandbox, "send", stuck)

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("echo")])
        await asyncio.Event().wait()

    result = await run(guest, limits=Limits(wall_s=30.0, run_s=0.3))
    assert (result.status, kind_of(result)) == ("limit", "run_limit")


async def test_sleeps_cancels_and_outputs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bascule.bridge.run.MAX_COMMANDS", 50)

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([Sleep(seq=1, seconds=0.0)])
        await line.done()
        line.act([*[Cancel(seq=1)] * 30, *[Output(text="")] * 30, Sleep(seq=2, seconds=0.0)])
        await asyncio.Event().wait()

    assert kind_of(await run(guest)) == "command_limit"


async def test_the_bytes_of_a_guest_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bascule.bridge.run.MAX_GUEST_BYTES", 5000)

    async def guest(line: Line) -> None:
        await line.greet()
        while True:
            line.act([line.call("echo", text="x" * 900)])
            await line.done()

    assert kind_of(await run(guest, limits=Limits(output_bytes=1024))) == "traffic_limit"


async def test_waiting_calls_may_not_hold_any_amount_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bascule.bridge.budget.MAX_HELD_BYTES", 5000)

    async def patient(request: ApprovalRequest) -> Decision:
        await asyncio.Event().wait()
        raise AssertionError

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("danger", text=f"{index}{'x' * 900}") for index in range(10)])
        await asyncio.Event().wait()

    result = await run(guest, danger, approver=patient)
    assert kind_of(result) == "waiting_limit"
    assert {call.state for call in result.calls} == {"not_started"}


async def test_arguments_of_calls_that_are_over_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bascule.bridge.budget.MAX_HELD_BYTES", 2000)

    async def guest(line: Line) -> None:
        await line.greet()
        for _ in range(10):
            line.act([line.call("echo", text="x" * 900)])
            await line.done()
        line.finish(1)

    result = await run(guest)
    assert result.status == "ok"
    assert all(call.arguments.startswith(b'{"text":"xxx') for call in result.calls)


async def test_completions_that_wait_can_be_cancelled_without_a_search() -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        sleeps = range(2, 500)
        line.act([Sleep(seq=1, seconds=0.0), *(Sleep(seq=seq, seconds=0.4) for seq in sleeps)])
        await line.done()
        await asyncio.sleep(1.0)  # all of them are ready by now
        line.act([*(Cancel(seq=seq) for seq in sleeps if seq != 77), Sleep(seq=500, seconds=0.0)])
        line.finish([delivery.seq for delivery in (await line.done()).deliveries])

    assert (await run(guest)).value == [77]


# ------------------------------------------------------------------ exceptions that are no failures of a call


class _Unreadable(BaseModel):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def text(self) -> str:
        raise RuntimeError("/etc/secret")


class _Refusing(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def refuse(cls, value: int) -> int:
        raise KeyError("/etc/secret")


class _SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("/etc/secret")


@tool(effects="once")
async def cancels_itself() -> None:
    """Cancel."""
    raise asyncio.CancelledError


@tool(effects="once")
async def leaves() -> None:
    """Leave."""
    raise SystemExit(3)


@tool(effects="once")
async def speechless() -> None:
    """Raise."""
    raise _SpeechlessError


@tool(effects="once")
async def system_error() -> None:
    """Raise."""
    raise OSError(2, b"bytes", "/etc/secret")


@tool(effects="once")
async def unreadable() -> Any:
    """Return."""
    return _Unreadable()


@tool(effects="once")
async def refusing(value: _Refusing) -> None:
    """Take."""


@pytest.mark.parametrize(
    ("attacked", "arguments", "state"),
    [
        (cancels_itself, {}, "failed"),
        (leaves, {}, "failed"),
        (speechless, {}, "failed"),
        (system_error, {}, "failed"),
        (unreadable, {}, "done"),
        (refusing, {"value": {"number": 3.0}}, "not_started"),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
async def test_whatever_a_tool_does_is_a_failure_of_its_call(
    attacked: AnyTool, arguments: dict[str, Any], state: str
) -> None:
    result = await asyncio.wait_for(run(calls((attacked.name, arguments)), attacked), 10.0)
    assert result.status == "ok"
    assert result.calls[0].state == state
    assert "secret" not in repr(result)


# ------------------------------------------------------------------ what a person is asked


async def test_one_denial_settles_all_identical_calls_that_wait() -> None:
    asked: list[int] = []

    async def refuse(request: ApprovalRequest) -> Decision:
        asked.append(request.seq)
        await asyncio.sleep(0.01)
        return Decision(verdict="reject")

    result = await run(calls(*[("danger", {"text": "same"})] * 20, ("danger", {})), danger, approver=refuse)
    assert asked == [1, 21]
    assert [call.state for call in result.calls] == ["denied"] * 21


@pytest.mark.parametrize("odd", ["\x0c", "\x0b", "\x1c", "\x85", "\u2028"])
def test_lines_are_counted_as_python_counts_them(odd: str) -> None:
    script = f"# harmless{odd}decoy()\nreal()\r\nthird()\rfourth()"
    assert [script_line(script, number) for number in range(6)] == [
        "", f"# harmless{odd}decoy()", "real()", "third()", "fourth()", "",
    ]  # fmt: skip


# ------------------------------------------------------------------ what a script is told


@pytest.mark.parametrize(
    "text",
    [
        "redis://:hunter2@host:6379/0",
        "https://hunter2@github.com/x",
        "postgresql://user:p@hunter2@host/db",
        "{'password': 'hunter2'}",
        '{"api_key": "hunter2"}',
        "AWS_SECRET_ACCESS_KEY=hunter2",
        "DB_PASSWORD=hunter2",
        "client_secret: hunter2",
        "Authorization: Bearer hunter2hunter2",
    ],
)
def test_credentials_do_not_reach_the_script(text: str) -> None:
    assert "hunter2" not in redact(text)
    assert "[redacted]" in redact(text)


def test_a_host_without_home_and_folder_can_redact(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise RuntimeError

    def gone() -> None:
        raise FileNotFoundError

    monkeypatch.setattr("bascule.bridge.failure.Path.home", fails)
    monkeypatch.setattr("bascule.bridge.failure.Path.cwd", gone)
    assert redact(f"{os.path.realpath('/tmp')}/x is full") == "[host path] is full"


# ------------------------------------------------------------------ the surroundings


async def test_an_engine_that_fails_at_the_end_takes_no_receipts_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(self: GuestSandbox) -> Ending:
        raise SandboxError("engine_unavailable", "gone")

    monkeypatch.setattr(GuestSandbox, "close", broken)
    result = await run(calls(("danger", {})), danger)
    assert result.status == "failed"
    assert [call.state for call in result.calls] == ["done"]
    assert result.happened


async def test_people_who_are_waited_for_keep_no_tool_from_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bascule.bridge.facilities.TOOL_THREADS", 2)
    monkeypatch.setattr("bascule.bridge.facilities.APPROVER_THREADS", 2)
    answered = threading.Event()

    def person(request: ApprovalRequest) -> Decision:
        answered.wait(10.0)
        return Decision(verdict="approve")

    @tool(effects="read")
    def look() -> str:
        """Look."""
        answered.set()
        return "seen"

    wanted = [("danger", {"text": str(index)}) for index in range(6)]
    result = await run(calls(*wanted, ("look", {})), danger, look, approver=person)
    assert [call.state for call in result.calls] == ["done"] * 7
    assert result.usage.wall_s < 5
