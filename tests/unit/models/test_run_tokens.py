"""The account every answer carries: its numbers are those of the formulas, and no model sees it."""

from __future__ import annotations

import msgspec
import pytest

from bascule.bridge import Decision, approve_all
from bascule.bridge.memory_store import MemoryStore
from bascule.models import ToolSurface, build_prompt
from bascule.models.counting import ByteEstimate
from bascule.models.exchange import FRAMING_TOKENS
from bascule.models.run_account import account_journal, count_script
from tests.forks.backend import ForkBackend
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
