"""Inline tools: called on the event loop, through the same pipeline, in the order of their issue."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from bascule.bridge import Decision, Limits, approve_all, deny_all
from bascule.tools import ToolContext, ToolDefinitionError, tool
from tests.unit.bridge.guests import Line, calls
from tests.unit.bridge.test_pipeline import run

pytestmark = pytest.mark.anyio

SEEN: contextvars.ContextVar[str] = contextvars.ContextVar("SEEN", default="nothing")

ASK = "version: 1\nrules: [{id: ask, effect: ask, match: {tool: where}}]"


@tool(effects="read", inline=True)
def where(n: int) -> str:
    """Say which thread runs this."""
    SEEN.set("something")
    return threading.current_thread().name


async def test_an_inline_tool_runs_on_the_event_loop_and_leaves_no_context_behind() -> None:
    result = await run(calls(("where", {"n": 1}), ("where", {"n": 2})), where)
    assert result.value == {"1": '"MainThread"', "2": '"MainThread"'}
    assert [receipt.state for receipt in result.calls] == ["done", "done"]
    assert SEEN.get() == "nothing"


async def test_its_arguments_are_validated_and_policy_asks_people_about_it_like_any_other() -> None:
    wrong = await run(calls(("where", {"n": "x"})), where)
    assert wrong.calls[0].state == "not_started"
    denied = await run(calls(("where", {"n": 1})), where, policy=ASK, approver=deny_all)
    assert denied.calls[0].state == "denied"
    approved = await run(calls(("where", {"n": 1})), where, policy=ASK, approver=approve_all)
    assert approved.value == {"1": '"MainThread"'}


async def test_a_person_who_takes_their_time_holds_up_that_call_only() -> None:
    asked = asyncio.Event()

    async def slowly(request: object) -> Decision:
        asked.set()
        await asyncio.sleep(0)
        return Decision(verdict="approve")

    result = await run(calls(("where", {"n": 1}), ("where", {"n": 2})), where, policy=ASK, approver=slowly)
    assert asked.is_set()
    assert result.value == {"1": '"MainThread"', "2": '"MainThread"'}


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), StopIteration("x"), GeneratorExit()])
async def test_what_it_raises_is_the_failure_of_that_call_and_the_host_goes_on(error: BaseException) -> None:
    @tool(effects="read", inline=True)
    def broken() -> int:
        """Break."""
        raise error

    result = await run(calls(("broken", {})), broken)
    assert result.status == "ok"
    assert result.calls[0].state == "failed"


async def test_a_call_behind_one_that_waits_begins_after_it() -> None:
    begun: list[str] = []

    @tool(effects="read")
    async def waits() -> None:
        """Wait a turn of the loop."""
        begun.append("waits")
        await asyncio.sleep(0)

    @tool(effects="read", inline=True)
    def quick() -> None:
        """Be quick."""
        begun.append("quick")

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("quick"), line.call("waits"), line.call("quick")])
        answered = 0
        while answered < 3:
            done = await line.done()
            answered += len(done.deliveries)
            if answered < 3:
                line.act_for(done)
        line.finish()

    assert (await run(guest, waits, quick)).status == "ok"
    assert begun == ["quick", "waits", "quick"]


async def test_a_limit_that_one_reaches_ends_the_run() -> None:
    result = await run(calls(("where", {"n": 1}), ("where", {"n": 2})), where, limits=Limits(calls=1))
    assert result.status == "limit"
    assert len(result.calls) == 2


async def test_one_with_effects_is_journaled_and_asked_about_before_it_runs() -> None:
    @tool(effects="once", inline=True)
    def send(text: str, context: ToolContext) -> str:
        """Send."""
        return f"{text} {context.seq}"

    assert (await run(calls(("send", {"text": "a"})), send)).calls[0].state == "denied"
    sent = await run(calls(("send", {"text": "a"})), send, approver=approve_all)
    assert sent.value == {"1": '"a 1"'}


def test_an_async_function_cannot_be_inline() -> None:
    with pytest.raises(ToolDefinitionError) as caught:

        @tool(inline=True)
        async def wrong() -> None:
            """Be wrong."""

    assert caught.value.code == "tool_option_invalid"
    assert "leave it out" in caught.value.message
