"""Rehearsals of real scripts in a real guest: reads happen, effects are listed, nothing else does."""

from __future__ import annotations

import asyncio

from bascule.bridge import Executor, Policy
from bascule.bridge.rehearsal import Rehearsal
from bascule.tools import tool


def rehearse(script: str, ran: list[str], policy: str | None = None) -> Rehearsal:
    @tool(effects="read")
    def stock(sku: str) -> int:
        """Return the stock of an article."""
        ran.append(f"stock {sku}")
        return 3

    @tool(effects="once")
    def order(sku: str, count: int = 1) -> dict[str, int]:
        """Order an article."""
        ran.append(f"order {sku}")
        return {"id": 1}

    @tool(effects="idempotent")
    def log(text: str) -> None:
        """Log."""
        ran.append(f"log {text}")

    async def run() -> Rehearsal:
        loaded = None if policy is None else Policy.parse(policy)
        async with Executor([stock, order, log], isolation="process", policy=loaded) as executor:
            return await executor.rehearse(script, seed=1)

    return asyncio.run(run())


def test_reads_are_made_and_effects_are_listed_as_they_would_run() -> None:
    ran: list[str] = []
    script = """
for sku in ("a", "b"):
    if stock(sku) < 5 and log(sku) is None:
        order(sku)
return "done"
"""
    found = rehearse(script, ran)
    assert ran == ["stock a", "stock b"]
    assert found.complete
    assert [(each.tool, each.arguments, each.verdict) for each in found.effects] == [
        ("log", b'{"text":"a"}', "ask"),
        ("order", b'{"count":1,"sku":"a"}', "ask"),
        ("log", b'{"text":"b"}', "ask"),
        ("order", b'{"count":1,"sku":"b"}', "ask"),
    ]
    assert [call.state for call in found.result.calls if call.tool != "stock"] == ["withheld"] * 4
    assert '[3] line 4: order (once) {"count":1,"sku":"a"}' in found.describe()


def test_using_a_withheld_result_ends_it_at_that_line() -> None:
    ran: list[str] = []
    script = "r = order('a')\ntry:\n    n = r['id']\nexcept Exception:\n    n = 0\norder(str(n))"
    found = rehearse(script, ran)
    assert ran == []
    assert not found.complete
    assert len(found.effects) == 1
    assert found.result.error is not None
    assert (found.result.error.kind, found.result.error.line) == ("rehearsal_end", 3)
    assert "There may be more: the rehearsal ends here" in found.describe()


def test_asking_whether_a_withheld_result_is_none_ends_it_and_asking_that_of_a_read_does_not() -> None:
    ran: list[str] = []
    script = "n = stock('a')\nif n is not None:\n    r = order('a')\nif r is None:\n    order('b')\nlog('c')"
    found = rehearse(script, ran)
    assert ran == ["stock a"]
    assert [each.arguments for each in found.effects] == [b'{"count":1,"sku":"a"}']
    assert not found.complete
    assert "There may be more: the rehearsal ends here" in found.describe()
    assert found.result.error is not None
    assert found.result.error.line == 4


def test_a_read_that_asks_is_withheld_and_a_denied_call_is_denied() -> None:
    ran: list[str] = []
    policy = """
version: 1
rules:
  - {id: careful, effect: ask, match: {tool: stock}}
  - {id: never, effect: deny, match: {tool: order}}
"""
    found = rehearse("stock('a')\ntry:\n    order('a')\nexcept ToolDenied:\n    log('x')", ran, policy)
    assert ran == []
    assert [each.tool for each in found.effects] == ["stock", "log"]
