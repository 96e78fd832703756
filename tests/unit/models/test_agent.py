"""The loop, over the four real SDKs and servers that check their protocols strictly."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bascule.bridge import Decision, Event, Executor, approve_all
from bascule.bridge.memory_store import MemoryStore
from bascule.models import Agent, AgentEvent, AgentState, Budget, Price, StateInvalid, ToolSurface
from tests.forks.backend import ForkBackend
from tests.models.apis import APIS, scripted
from tests.models.servers import WrittenCall, WrittenTurn
from tests.models.world import Shop, open_executor
from tests.unit.models.test_surface import decide_all

pytestmark = pytest.mark.anyio

SCRIPT = "orders = crm.orders(customer='Ann')\nlen([o for o in orders if o['status'] == 'open'])"


def call(id: str, name: str, /, **arguments: Any) -> WrittenCall:
    """Write a call with good arguments."""
    return WrittenCall(id=id, name=name, arguments=json.dumps(arguments))


def calls(*made: WrittenCall, text: str = "") -> WrittenTurn:
    """Write a turn that asks for calls."""
    return WrittenTurn(text=text, calls=made, ending="calls")


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_runs_a_script_and_answers(forks: ForkBackend, api: str, stream: bool) -> None:
    turns = [
        calls(call("a1", "run_script", code=SCRIPT), text="Let me look."),
        WrittenTurn(text="20 are open."),
    ]
    heard: list[AgentEvent] = []
    async with (
        open_executor(forks, Shop()) as executor,
        scripted(api, turns, stream=stream) as (client, server),
    ):
        result = await Agent(client, executor, on_event=heard.append).run("How many of Ann's are open?")
    assert (result.status, result.text, result.rounds) == ("done", "20 are open.", 2)
    assert (result.usage.input, result.usage.output, result.usage.estimated) == (200, 40, False)
    assert len(result.state.runs) == 1
    assert '"20"' in json.dumps(server.requests[1])
    names = [event.name for event in heard if event.name != "text"]
    assert names == [
        "turn.started", "turn.completed", "call.started", "call.completed", "turn.started", "turn.completed",
        "finished",
    ]  # fmt: skip
    said = "".join(event.text for event in heard if event.name == "text")
    assert said == ("Let me look.20 are open." if stream else "")


@pytest.mark.parametrize("stream", [False, True])
async def test_every_call_is_answered_in_order_whatever_it_is(
    forks: ForkBackend, api: str, stream: bool
) -> None:
    bad = "{}"  # an argument is missing; broken JSON is among the properties
    turn = calls(
        call("a1", "crm-orders", customer="Ann", status="paid"),
        WrittenCall(id="a2", name="add", arguments=bad),
        call("a3", "no such tool!", x=1),
        call("a4", "crm.orders", customer="Bob", status=None),
        call("a5", "mail-send", to="ann", text="hi"),
        call("a6", "add", a=1, b=2),
    )
    shop = Shop()
    async with (
        open_executor(forks, shop, approver=approve_all) as executor,
        scripted(api, [turn], stream=stream) as (client, server),
    ):
        result = await Agent(client, executor).run("go")
    assert result.status == "done"
    assert shop.sent == ["ann: hi"]
    said = json.dumps(server.requests[1])
    for text in ("there is no tool named", "no such tool!", "sent to ann", "is missing"):
        assert text in said


async def test_nothing_of_a_turn_that_was_cut_off_is_called(forks: ForkBackend, api: str) -> None:
    cut = WrittenTurn(calls=(call("a1", "mail-send", to="ann", text="hi"),), ending="length")
    shop = Shop()
    async with (
        open_executor(forks, shop, approver=approve_all) as executor,
        scripted(api, [cut, WrittenTurn(text="sorry")]) as (client, server),
    ):
        result = await Agent(client, executor).run("go")
    assert (result.status, shop.sent) == ("done", [])
    assert "cut off at the output limit" in json.dumps(server.requests[1])


async def test_turns_that_are_cut_off_again_and_again_end_the_loop(forks: ForkBackend, api: str) -> None:
    cut = [WrittenTurn(calls=(call(f"a{n}", "add", a=1),), ending="length") for n in range(9)]
    async with open_executor(forks, Shop()) as executor, scripted(api, cut) as (client, server):
        result = await Agent(client, executor).run("go")
    assert (result.status, len(server.requests)) == ("length", 3)


@pytest.mark.parametrize(
    ("turn", "status"),
    [
        (WrittenTurn(text="I will not.", ending="refusal"), "refused"),
        (WrittenTurn(text="half", ending="length"), "length"),
    ],
)
async def test_a_refusal_and_a_cut_answer_end_the_loop(
    forks: ForkBackend, api: str, turn: WrittenTurn, status: str
) -> None:
    async with open_executor(forks, Shop()) as executor, scripted(api, [turn]) as (client, server):
        agent = Agent(client, executor)
        result = await agent.run("go")
        assert result.status == status
        if turn.text:
            assert result.text == turn.text
        again = await agent.resume(result.state, say="Please.")
    assert again.status == "done"
    assert len(server.requests) == 2


@pytest.mark.parametrize("api", [each for each in APIS if each != "responses"], indirect=True)
async def test_calls_in_a_refusal_are_not_made(forks: ForkBackend, api: str) -> None:
    """A response of the Responses API with calls is never a refusal."""
    shop = Shop()
    turn = WrittenTurn(calls=(call("a", "add", a=1, b=2),), ending="refusal")
    async with open_executor(forks, shop) as executor, scripted(api, [turn]) as (client, server):
        agent = Agent(client, executor)
        result = await agent.run("go")
        assert result.status == "refused"
        again = await agent.resume(result.state, say="Please.")
    assert again.status == "done"
    assert len(server.requests) == 2


async def test_empty_turns_are_asked_again_and_then_end_the_loop(forks: ForkBackend, api: str) -> None:
    async with (
        open_executor(forks, Shop()) as executor,
        scripted(api, [WrittenTurn()] * 5) as (client, server),
    ):
        result = await Agent(client, executor).run("go")
    assert (result.status, len(server.requests)) == ("empty", 3)


async def test_a_paused_turn_goes_on(forks: ForkBackend) -> None:
    paused = WrittenTurn(text="searching", ending="pause")
    async with (
        open_executor(forks, Shop()) as executor,
        scripted("anthropic", [paused, WrittenTurn(text="found")]) as (client, server),
    ):
        result = await Agent(client, executor).run("go")
    assert (result.status, result.text) == ("done", "found")
    assert server.requests[1]["messages"][-1]["role"] == "assistant"


async def test_a_full_context_ends_the_loop(forks: ForkBackend) -> None:
    full = WrittenTurn(text="so far", ending="context_full")
    async with open_executor(forks, Shop()) as executor, scripted("anthropic", [full]) as (client, _):
        result = await Agent(client, executor).run("go")
    assert (result.status, result.text) == ("context_full", "so far")


async def test_a_call_that_gemini_could_not_read_is_asked_for_again(forks: ForkBackend) -> None:
    turns = [WrittenTurn(ending="malformed"), WrittenTurn(text="now")]
    async with open_executor(forks, Shop()) as executor, scripted("gemini", turns) as (client, server):
        result = await Agent(client, executor).run("go")
    assert result.status == "done"
    assert "could not be read" in json.dumps(server.requests[1])


async def test_a_run_that_waits_for_people_suspends_the_conversation(forks: ForkBackend, api: str) -> None:
    shop, store = Shop(), MemoryStore()
    turn = calls(
        call("a1", "add", a=1),
        call("a2", "mail-send", to="ann", text="hi"),
        call("a3", "refund", order=1, amount=2),
        call("a4", "add", a=2),
    )
    async with scripted(api, [turn]) as (client, server):
        async with open_executor(forks, shop, store=store) as executor:
            waiting = await Agent(client, executor).run("go")
            assert waiting.status == "suspended"
            assert len(waiting.waiting) == 1
            assert (shop.sent, shop.refunds, len(server.requests)) == ([], [], 1)
        saved = waiting.state.to_json()
        async with open_executor(forks, shop, store=store) as executor:  # another worker, from the JSON alone
            agent = Agent(client, executor)
            still = await agent.resume(saved)
            assert (still.status, still.waiting) == ("suspended", waiting.waiting)
            with pytest.raises(StateInvalid):
                await agent.resume(saved, say="hurry")
            decide_all(executor, Decision(verdict="approve", by="kim"))
            second = await agent.resume(still.state.to_json())
            assert second.status == "suspended"
            assert shop.sent == ["ann: hi"]
            decide_all(executor, Decision(verdict="reject", by="kim", reason="no refunds"))
            done = await agent.resume(second.state.to_json())
    assert done.status == "done"
    assert (shop.sent, shop.refunds) == (["ann: hi"], [])
    said = json.dumps(server.requests[1])
    assert "sent to ann" in said
    assert "no refunds" in said


async def test_a_cancelled_conversation_can_be_sent_on(forks: ForkBackend, api: str) -> None:
    turn = calls(
        call("a1", "add", a=1),
        call("a2", "run_script", code="import time\nrefund(order=1, amount=1)\ntime.sleep(60)"),
        call("a3", "add", a=2),
    )
    started, loop = asyncio.Event(), asyncio.get_running_loop()

    def listen(event: Event) -> None:
        if (event.name, event.tool) == ("call.completed", "refund"):
            loop.call_soon_threadsafe(started.set)

    async with (
        open_executor(forks, Shop(), approver=approve_all) as executor,
        scripted(api, [turn]) as (client, server),
    ):
        executor.subscribe(listen)
        conversation = Agent(client, executor).start("go")
        task = asyncio.ensure_future(conversation.run())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert conversation.state.pending == []
        conversation.say("Go on.")
        result = await conversation.run()
    assert result.status == "done"
    said = json.dumps(server.requests[1])
    assert "may or may not have happened" in said
    assert "was not made: the conversation was interrupted" in said


async def test_a_host_that_fails_leaves_a_conversation_that_can_be_sent_on(forks: ForkBackend) -> None:
    from bascule.bridge import ExecutorClosedError

    turn = calls(call("a1", "add", a=1), call("a2", "refund", order=1, amount=1))
    async with scripted("chat", [turn]) as (client, _):
        executor = Executor(Shop().tools, backend=forks)
        conversation = Agent(client, executor).start("go")
        await executor.close()
        with pytest.raises(ExecutorClosedError):
            await conversation.run()
        assert conversation.state.pending == []
        result = await conversation.run()
    assert result.status == "done"


async def test_a_model_that_repeats_itself_is_told_then_stopped(forks: ForkBackend, api: str) -> None:
    turns = [calls(call(f"a{n}", "refund", order=1, amount=1)) for n in range(30)]
    shop = Shop()
    async with (
        open_executor(forks, shop, approver=approve_all) as executor,
        scripted(api, turns) as (client, server),
    ):
        result = await Agent(client, executor).run("go")
    assert result.status == "repeating"
    assert len(shop.refunds) == 5
    assert "same call 3 times" in json.dumps(server.requests[3])
    assert "was not made" in json.dumps(server.requests[6])


async def test_a_call_that_gives_something_new_each_time_is_no_repetition(forks: ForkBackend) -> None:
    turns = [calls(call(f"a{n}", "run_script", code="import random\nrandom.random()")) for n in range(12)]
    async with open_executor(forks, Shop()) as executor, scripted("chat", turns) as (client, _):
        result = await Agent(client, executor).run("go")
    assert result.status == "done"


async def test_rounds_are_limited_and_the_last_calls_are_not_made(forks: ForkBackend, api: str) -> None:
    turns = [calls(call(f"a{n}", "mail-send", to=str(n), text="x")) for n in range(9)]
    shop = Shop()
    async with (
        open_executor(forks, shop, approver=approve_all) as executor,
        scripted(api, turns) as (client, server),
    ):
        agent = Agent(client, executor, budget=Budget(max_rounds=3))
        result = await agent.run("go")
        assert (result.status, len(server.requests), len(shop.sent)) == ("rounds", 3, 2)
        assert result.state.pending == []


async def test_tokens_and_money_are_limited(forks: ForkBackend, api: str) -> None:
    turns = [calls(call(f"a{n}", "add", a=n)) for n in range(9)]
    price = Price(input=10.0, output=100.0)  # 100 and 20 tokens a turn: 0.003
    async with open_executor(forks, Shop()) as executor:
        async with scripted(api, turns) as (client, server):
            spent = await Agent(client, executor, budget=Budget(max_tokens=300)).run("go")
            assert (spent.status, len(server.requests)) == ("budget", 3)
        async with scripted(api, turns) as (client, server):
            result = await Agent(client, executor, budget=Budget(max_cost=0.005, price=price)).run("go")
    assert (result.status, len(server.requests)) == ("budget", 2)
    assert result.cost == pytest.approx(0.006)


async def test_a_server_that_says_nothing_of_tokens_does_not_escape_the_budget(
    forks: ForkBackend, api: str
) -> None:
    turns = [WrittenTurn(calls=(call(f"a{n}", "add", a=n),), ending="calls", usage=None) for n in range(50)]
    async with open_executor(forks, Shop()) as executor, scripted(api, turns) as (client, _):
        result = await Agent(client, executor, budget=Budget(max_tokens=20_000)).run("go")
    assert result.status == "budget"
    assert result.usage.estimated


def test_a_budget_is_finite() -> None:
    with pytest.raises(ValueError):
        Budget(max_rounds=0)
    with pytest.raises(ValueError):
        Budget(max_cost=1.0)


async def test_a_state_of_another_api_is_refused(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor, scripted("chat", []) as (client, _):
        agent = Agent(client, executor)
        with pytest.raises(StateInvalid):
            await agent.resume(AgentState(api="gemini"))
        for text in ("", "{", "[]", '{"api":"openai.chat","version":99}', '{"api":3}', "[" * 100_000):
            with pytest.raises(StateInvalid):
                await agent.resume(text)


async def test_a_transcript_tells_everything_and_no_secret(forks: ForkBackend, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    turns = [
        calls(call("a1", "run_script", code="'x' * 100_000"), text="my key is hunter2hunter2"),
        WrittenTurn(text="ok"),
    ]
    async with (
        open_executor(forks, Shop(), secrets=["hunter2hunter2"]) as executor,
        scripted("chat", turns) as (client, _),
    ):
        await Agent(client, executor, transcript=path).run("hunter2hunter2?")
    text = path.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["kind"] for line in lines] == ["started", "turn", "answer", "turn", "finished"]
    assert "hunter2" not in text
    assert lines[1]["input_tokens"] == 100
    assert lines[2]["returned_bytes"] > 100_000
    assert lines[2]["tokens"]["returned"] > 4_000
    assert lines[2]["tokens"]["definitions"] > 500
    assert lines[2]["tokens"]["estimated"] is True
    assert path.stat().st_mode & 0o777 == 0o600


async def test_what_was_read_before_a_suspension_counts_after_it(forks: ForkBackend) -> None:
    turns = [calls(call("a1", "crm-orders", customer="Ann")), WrittenTurn(text="done")]
    async with open_executor(forks, Shop()) as executor, scripted("chat", turns) as (client, _):
        result = await Agent(client, executor).run("go")
        assert result.state.labels == ["private"]
        again = await Agent(client, executor).resume(result.state.to_json(), say="and?")
    assert again.state.labels == ["private"]


def test_callers_without_an_event_loop_have_the_same() -> None:
    from tests.models.apis import make_adapter
    from tests.models.chat_server import ChatProtocol
    from tests.models.servers import ScriptedServer

    turns = [calls(call("a1", "run_script", code=SCRIPT)), WrittenTurn(text="20")]
    with (
        ScriptedServer(ChatProtocol(), turns) as server,
        Executor(Shop().tools, isolation="process") as executor,
    ):
        client = make_adapter("chat", server.url)
        agent = Agent(client, executor, surface=partial(ToolSurface, direct="none"))
        result = agent.run_sync("go")
        more = agent.resume_sync(result.state.to_json(), say="And now?")
        executor.wait_for(client.close())
    assert (result.text, more.text) == ("20", "done")
    assert server.violations == []
