"""One call over the bridge: every stage, with real tools and a guest that only speaks frames."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Literal

import pytest

from bascule.bridge import ApprovalRequest, Decision, Executor, Limits, Policy, Result, approve_all, deny_all
from bascule.bridge.approval import Approver
from bascule.tools import AnyTool, tool
from tests.unit.bridge.guests import Guest, GuestBackend, calls, sequence

pytestmark = pytest.mark.anyio


@tool(effects="read")
def add(left: int, right: int = 2) -> int:
    """Add two numbers."""
    return left + right


@tool(effects="read")
async def greet(name: Literal["Ada", "Bob"]) -> str:
    """Greet."""
    return f"Hello {name}"


async def run(
    guest: Guest,
    *tools: AnyTool,
    approver: Approver = deny_all,
    policy: str | None = None,
    limits: Limits | None = None,
    script: str = "",
) -> Result:
    backend = GuestBackend(guest)
    loaded = None if policy is None else Policy.parse(policy)
    async with Executor(
        tools, approver=approver, policy=loaded, limits=limits or Limits(), backend=backend
    ) as executor:
        result = await executor.run(script)
    assert all(sandbox.closed for sandbox in backend.sandboxes)
    return result


async def test_a_sync_and_an_async_tool_give_their_results_as_json() -> None:
    result = await run(calls(("add", {"left": 1}), ("greet", {"name": "Ada"})), add, greet)
    assert result.status == "ok"
    assert result.value == {"1": "3", "2": '"Hello Ada"'}


async def test_a_receipt_carries_canonical_arguments_with_defaults_filled() -> None:
    result = await run(calls(("add", {"left": 1})), add)
    receipt = result.calls[0]
    assert (receipt.seq, receipt.tool, receipt.state, receipt.line) == (1, "add", "done", 1)
    assert receipt.arguments == b'{"left":1,"right":2}'
    assert receipt.result_bytes == 1


async def test_an_unknown_tool_names_the_nearest_one() -> None:
    result = await run(calls(("ad", {})), add)
    assert isinstance(result.value, dict)
    assert result.value["1"] == ["unknown_tool", "there is no tool named 'ad'"]
    assert result.calls[0].state == "not_started"
    assert result.calls[0].effects is None


async def test_all_wrong_arguments_are_reported_at_once() -> None:
    result = await run(calls(("add", {"left": "x", "middle": 1})), add)
    error = result.calls[0].error
    assert error is not None
    assert error.kind == "invalid_arguments"
    assert "left" in error.message
    assert "middle" in error.message


@pytest.mark.parametrize(
    ("error", "kind", "shown"),
    [
        (ValueError("no such quarter"), "failed", "no such quarter"),
        (KeyError("E7"), "failed", "E7"),
        (ConnectionError("refused"), "unavailable", "refused"),
        (TimeoutError("slow"), "timeout", "slow"),
        (AttributeError("'Host' object"), "failed", "internal error in the tool (AttributeError)"),
        (ValueError("token=abcdefgh rejected"), "failed", "token=[redacted] rejected"),
        (OSError(2, "No such file or directory", "/srv/secret"), "failed", "No such file or directory"),
    ],
)
async def test_an_exception_of_a_tool_becomes_a_failure_without_internals(
    error: Exception, kind: str, shown: str
) -> None:
    @tool(effects="read")
    def broken() -> int:
        """Fail."""
        raise error

    result = await run(calls(("broken", {})), broken)
    assert result.status == "ok"
    receipt = result.calls[0]
    assert receipt.state == "failed"
    assert receipt.error is not None
    assert receipt.error.kind == kind
    assert shown in receipt.error.message


async def test_a_read_that_takes_too_long_is_a_timeout() -> None:
    never = asyncio.Event()

    @tool(effects="read", timeout_s=0.05)
    async def stuck() -> int:
        """Wait."""
        await never.wait()
        return 1

    result = await run(calls(("stuck", {})), stuck)
    assert result.calls[0].error is not None
    assert result.calls[0].error.kind == "timeout"
    assert result.calls[0].state == "failed"


async def test_an_effect_that_takes_too_long_has_an_unknown_outcome() -> None:
    release = threading.Event()

    @tool(effects="once", timeout_s=0.05)
    def stuck() -> int:
        """Wait."""
        release.wait(10)
        return 1

    result = await run(calls(("stuck", {})), stuck, approver=approve_all)
    release.set()
    assert result.calls[0].state == "unknown"
    assert result.calls[0].error is not None
    assert result.calls[0].error.kind == "unknown_outcome"


async def test_a_result_of_the_wrong_type_is_a_bug_of_the_tool_and_the_call_counts_as_done() -> None:
    @tool(effects="read")
    def wrong() -> int:
        """Lie."""
        return "text"  # type: ignore[return-value]  # the very bug

    result = await run(calls(("wrong", {})), wrong)
    assert result.calls[0].state == "done"
    assert result.calls[0].error is not None
    assert "a bug in the tool" in result.calls[0].error.message


async def test_a_result_that_is_too_large_is_an_error_of_that_call() -> None:
    @tool(effects="read")
    def large() -> str:
        """Give much."""
        return "x" * 5000

    result = await run(calls(("large", {})), large, limits=Limits(result_bytes=1024))
    assert result.status == "ok"
    assert result.calls[0].error is not None
    assert result.calls[0].error.kind == "result_limit"


async def test_results_that_are_too_large_together_end_the_run_at_the_line() -> None:
    @tool(effects="read")
    def large() -> str:
        """Give much."""
        return "x" * 900

    guest = sequence(("large", {}), ("large", {}))
    result = await run(
        guest, large, limits=Limits(result_bytes=1024, results_bytes=1024), script="a\nlarge()"
    )
    assert result.status == "limit"
    assert result.error is not None
    assert (result.error.kind, result.error.line, result.error.source) == ("result_bytes_limit", 2, "large()")


async def test_one_call_too_many_ends_the_run_with_the_number_and_the_line() -> None:
    guest = sequence(*[("add", {"left": 1})] * 4)
    result = await run(guest, add, limits=Limits(calls=3))
    assert result.status == "limit"
    assert result.error is not None
    assert result.error.kind == "call_limit"
    assert "line 4" in result.error.message
    assert "3 tool calls" in result.error.message
    assert [call.state for call in result.calls] == ["done", "done", "done", "not_started"]


@tool(effects="once")
def send(text: str) -> str:
    """Send a text.

    More about it.
    """
    return text.upper()


async def test_an_effect_without_an_approver_is_denied() -> None:
    result = await run(calls(("send", {"text": "hi"})), send)
    assert result.calls[0].state == "denied"
    assert result.calls[0].error is not None
    assert "nobody may approve calls" in result.calls[0].error.message


async def test_an_approver_sees_what_will_run_and_where_it_stands() -> None:
    seen: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> Decision:
        seen.append(request)
        return Decision(verdict="approve", by="Ada")

    result = await run(calls(("send", {"text": "hi"})), send, approver=approver, script="  send('hi')\n")
    assert result.value == {"1": '"HI"'}
    assert result.calls[0].approved_by == "Ada"
    request = seen[0]
    assert request.arguments == b'{"text":"hi"}'
    assert request.source == "send('hi')"
    assert request.why == ("default:effect",)
    assert len(request.digest) == 64


async def test_a_denied_call_is_not_asked_about_again() -> None:
    asked: list[int] = []

    async def approver(request: ApprovalRequest) -> Decision:
        asked.append(request.seq)
        return Decision(verdict="reject", reason="wrong customer")

    same = ("send", {"text": "hi"})
    result = await run(sequence(same, same, ("send", {"text": "ho"})), send, approver=approver)
    assert asked == [1, 3]
    assert [call.state for call in result.calls] == ["denied"] * 3
    assert result.calls[1].error is not None
    assert "denied before in this run: wrong customer" in result.calls[1].error.message


def _raising(request: ApprovalRequest) -> Decision:
    raise RuntimeError("approver is broken")


def _answering_yes(request: ApprovalRequest) -> Any:
    return True


@pytest.mark.parametrize("approver", [_raising, _answering_yes])
async def test_an_approver_that_fails_or_answers_nonsense_has_denied(approver: Approver) -> None:
    result = await run(calls(("send", {"text": "hi"})), send, approver=approver)
    assert result.calls[0].state == "denied"


async def test_a_deny_rule_beats_an_approver_that_approves_everything() -> None:
    policy = "version: 1\nrules: [{id: stop, effect: deny, match: {tool: send, args: {text: {eq: hi}}}}]"
    guest = calls(("send", {"text": "hi"}), ("send", {"text": "ho"}))
    result = await run(guest, send, approver=approve_all, policy=policy)
    assert [call.state for call in result.calls] == ["denied", "done"]


async def test_a_repeated_once_call_is_flagged_and_not_dropped() -> None:
    same = ("send", {"text": "hi"})
    result = await run(sequence(same, same), send, approver=approve_all)
    assert [(call.state, call.duplicate) for call in result.calls] == [("done", False), ("done", True)]


async def test_effects_run_one_at_a_time_in_issue_order_and_reads_at_once() -> None:
    order: list[str] = []
    both = asyncio.Barrier(2)

    @tool(effects="once")
    async def effect(name: str) -> None:
        """Note begin and end."""
        order.append(f"begin {name}")
        await asyncio.sleep(0)
        order.append(f"end {name}")

    @tool(effects="read")
    async def meet() -> None:
        """Return only when called twice at once."""
        await both.wait()

    guest = calls(("effect", {"name": "a"}), ("meet", {}), ("effect", {"name": "b"}), ("meet", {}))
    result = await run(guest, effect, meet, approver=approve_all)
    assert result.status == "ok"
    assert order == ["begin a", "end a", "begin b", "end b"]


async def test_effects_keep_their_order_when_the_later_one_is_approved_first() -> None:
    order: list[str] = []
    first_asked = asyncio.Event()
    second_approved = asyncio.Event()

    @tool(effects="once")
    async def effect(name: str) -> None:
        """Note."""
        order.append(name)

    async def approver(request: ApprovalRequest) -> Decision:
        if request.seq == 1:
            first_asked.set()
            await second_approved.wait()
        else:
            await first_asked.wait()
            second_approved.set()
        return Decision(verdict="approve")

    result = await run(calls(("effect", {"name": "a"}), ("effect", {"name": "b"})), effect, approver=approver)
    assert result.status == "ok"
    assert order == ["a", "b"]


async def test_parallel_safe_effects_overlap_and_calls_of_one_resource_do_not() -> None:
    both = asyncio.Barrier(2)
    inside = 0
    most = 0

    @tool(effects="once", parallel_safe=True)
    async def safe() -> None:
        """Return only when called twice at once."""
        await both.wait()

    @tool(effects="read", resource="printer")
    async def shared() -> None:
        """Count."""
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    guest = calls(("safe", {}), ("safe", {}), ("shared", {}), ("shared", {}), ("shared", {}))
    result = await run(guest, safe, shared, approver=approve_all)
    assert result.status == "ok"
    assert most == 1


async def test_no_more_calls_run_at_once_than_the_limit_says() -> None:
    inside = 0
    most = 0

    @tool(effects="read")
    async def count() -> None:
        """Count."""
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    wanted: tuple[str, dict[str, Any]] = ("count", {})
    result = await run(calls(*[wanted] * 10), count, limits=Limits(in_flight=3))
    assert result.status == "ok"
    assert most == 3
