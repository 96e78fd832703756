"""The account every answer carries: its numbers are those of the formulas, and no model sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bascule.bridge import Decision, approve_all
from bascule.bridge.memory_store import MemoryStore
from bascule.models import Agent, ToolSurface, build_prompt
from bascule.models.counting import ByteEstimate
from bascule.models.exchange import FRAMING_TOKENS
from bascule.models.run_account import account_journal, count_script
from tests.forks.backend import ForkBackend
from tests.models.apis import scripted
from tests.models.servers import WrittenCall, WrittenTurn
from tests.models.world import Shop, open_executor

pytestmark = pytest.mark.anyio

TWICE = {"code": "len(crm.orders(customer='Ann')) + len(crm.orders(customer='Bob'))"}
COUNTER = ByteEstimate()


async def test_a_script_tells_what_it_kept_out_and_what_direct_calls_would_cost(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop(), store=MemoryStore(keep_values=True)) as executor:
        surface = ToolSurface(executor)
        done = await surface.call("run_script", TWICE)
        journal = executor.store.journal(done.run_id or "")
        assert journal is not None
        counted = account_journal(done.run_id or "", journal.entries, COUNTER)
        prompt = build_prompt(surface).text
    tokens = done.tokens
    assert tokens is not None
    assert done.text == "80"
    assert tokens.returned == 1
    assert tokens.script == count_script(TWICE["code"], COUNTER)
    assert abs(tokens.results - counted.result_tokens) <= 2
    assert tokens.kept_out == tokens.results - 1
    assert tokens.definitions > COUNTER.count(prompt)
    assert tokens.input == 2 * tokens.definitions + tokens.script + tokens.returned + FRAMING_TOKENS
    added = tokens.direct_calls + tokens.results + 2 * FRAMING_TOKENS
    assert tokens.at_once == 2 * tokens.direct_definitions + added
    assert abs(tokens.one_by_one - (3 * tokens.direct_definitions + added * 3 // 2)) <= 2
    assert "tokens" not in msgspec.json.encode(done.data).decode()


async def test_a_direct_call_keeps_nothing_out(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        done = await ToolSurface(executor).call("crm.orders", {"customer": "Ann"})
    assert done.tokens is not None
    assert done.tokens.script == done.tokens.direct_calls <= 20
    assert abs(done.tokens.kept_out) < done.tokens.results / 20


async def test_a_run_that_waited_is_counted_when_it_comes_back(forks: ForkBackend) -> None:
    script = {"code": "rows = crm.orders(customer='Ann')\nrefund(order=1, amount=2.5)\nlen(rows)"}
    async with open_executor(forks, Shop(), store=MemoryStore(keep_values=True)) as executor:
        surface = ToolSurface(executor)
        waits = await surface.call("run_script", script)
        (record,) = executor.store.approvals.find(states=["pending"])
        executor.decide(record.id, Decision(verdict="approve", by="kim"), digest=record.digest)
        done = await surface.call("resume_run", {"run_id": waits.run_id})
        told = await surface.call("get_run", {"run_id": waits.run_id})
    assert waits.status == "suspended"
    assert waits.tokens is not None
    assert done.tokens is not None
    assert done.tokens.script == count_script(script["code"], COUNTER) == waits.tokens.script
    assert done.tokens.kept_out > waits.tokens.kept_out > 500
    assert told.tokens == done.tokens


async def test_the_count_of_the_model_is_taken_and_what_has_no_run_has_no_account(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop(), approver=approve_all) as executor:
        surface = ToolSurface(executor, count_tokens=len)
        done = await surface.call("run_script", {"code": "print('four')"})
        failed = await surface.call("run_script", {"code": "1 / 0"})
        found = await surface.call("search_tools", {"query": "orders"})
        told = await surface.call("get_run", {"run_id": done.run_id})
        refused = await surface.call("run_script", {"code": 3})
    assert done.tokens is not None
    assert done.tokens.returned == 4
    assert done.tokens.results == 0
    assert failed.tokens is not None
    assert failed.tokens.returned == len(failed.text)
    assert found.tokens is None
    assert told.text == "four"
    assert told.tokens == done.tokens
    assert refused.tokens is None


def asked(id: str, name: str, arguments: dict[str, Any]) -> WrittenTurn:
    """Write a turn that makes one call."""
    return WrittenTurn(
        calls=(WrittenCall(id=id, name=name, arguments=json.dumps(arguments)),), ending="calls"
    )


async def test_a_conversation_has_the_sum_over_its_runs_and_its_other_answers(
    forks: ForkBackend, tmp_path: Path
) -> None:
    path = tmp_path / "talk.jsonl"
    turns = [
        asked("a1", "run_script", TWICE),
        asked("a2", "search_tools", {"query": "refund"}),
        asked("a3", "run_script", {"code": "add(a=1, b=2)"}),
        WrittenTurn(text="80 and 3"),
    ]
    async with open_executor(forks, Shop()) as executor, scripted("chat", turns) as (client, server):
        result = await Agent(client, executor, transcript=path).run("go")
        surface = ToolSurface(executor)
        one = await surface.call("run_script", TWICE)
        other = await surface.call("run_script", {"code": "add(a=1, b=2)"})
    assert one.tokens is not None
    assert other.tokens is not None
    (search,) = (each["content"] for each in server.requests[2]["messages"][-1:])
    tokens = result.tokens
    assert tokens.runs == 2
    assert tokens.definitions == one.tokens.definitions
    assert tokens.results == one.tokens.results + other.tokens.results > 500
    assert tokens.returned == one.tokens.returned + other.tokens.returned + COUNTER.count(search)
    assert tokens.kept_out == tokens.results - tokens.returned
    assert tokens.one_by_one == one.tokens.one_by_one + other.tokens.one_by_one
    written = surface.meter.count_call("search_tools", {"query": "refund"})
    assert tokens.written == one.tokens.script + other.tokens.script + written
    around = tokens.definitions + FRAMING_TOKENS + written + COUNTER.count(search)
    assert tokens.input == one.tokens.input + other.tokens.input + around
    last = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    assert last["kind"] == "finished"
    assert last["tokens"] == tokens.to_data()


async def test_a_run_that_waited_is_counted_once_in_its_conversation(forks: ForkBackend) -> None:
    script = {"code": "rows = crm.orders(customer='Ann')\nrefund(order=1, amount=2.5)\nlen(rows)"}
    turns = [asked("a1", "run_script", script), WrittenTurn(text="done")]
    store = MemoryStore(keep_values=True)
    async with open_executor(forks, Shop(), store=store) as executor, scripted("chat", turns) as (client, _):
        agent = Agent(client, executor)
        waits = await agent.run("go")
        assert waits.status == "suspended"
        (record,) = store.approvals.find(states=["pending"])
        executor.decide(record.id, Decision(verdict="approve", by="kim"), digest=record.digest)
        done = await agent.resume(waits.state.to_json())
    assert waits.tokens.runs == done.tokens.runs == 1
    assert done.tokens.returned == 1
    assert done.tokens.results > waits.tokens.results > 500


async def test_reading_a_run_again_is_paid_again(forks: ForkBackend) -> None:
    store = MemoryStore(keep_values=True)
    async with open_executor(forks, Shop(), store=store) as executor:
        surface = ToolSurface(executor)
        run_id = (await surface.call("run_script", {"code": "'x' * 3300"})).run_id
        turns = [asked(f"a{n}", "get_run", {"run_id": run_id}) for n in range(2)]
        async with scripted("chat", turns) as (client, _):
            result = await Agent(client, executor).run("go")
    assert result.tokens.runs == 1
    assert 2_000 <= result.tokens.returned <= 2_010
