"""Budgets over several hosts on one store: what is charged by one is used up for all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bascule.bridge import Executor, Policy
from bascule.bridge.sqlite_store import SqliteStore
from bascule.tools import tool
from tests.unit.bridge.guests import GuestBackend, calls

pytestmark = pytest.mark.anyio

ALLOWED = 7
RULES = """
version: 1
rules:
  - id: few
    effect: allow
    match: {tool: put}
    budget: {calls_per_day: 7, sum: {arg: n, per: day, max: 100}, key: BY, on_exhausted: deny}
"""


@pytest.mark.parametrize("key", ["tool", "user"])
async def test_a_budget_per_day_holds_over_two_hosts_and_a_restart(key: str, tmp_path: Path) -> None:
    ran: list[float] = []

    @tool(effects="once")
    async def put(n: float) -> float:
        """Put."""
        ran.append(n)
        await asyncio.sleep(0)
        return n

    def host(store: SqliteStore) -> Executor:
        return Executor(
            [put],
            policy=Policy.parse(RULES.replace("BY", key)),
            backend=GuestBackend(calls(("put", {"n": 1}))),
            store=store,
            user="ada",
        )

    stores = [SqliteStore(tmp_path / "runs.db") for _ in range(2)]
    hosts = [host(store) for store in stores]
    results = await asyncio.gather(*(each.run("put(1)") for each in hosts * 8))
    states = [result.calls[0].state for result in results]
    assert (len(ran), states.count("done"), states.count("denied")) == (ALLOWED, ALLOWED, 16 - ALLOWED)
    for executor, store in zip(hosts, stores, strict=True):
        await executor.close()
        store.close()
    again = SqliteStore(tmp_path / "runs.db")
    async with host(again) as executor:
        assert (await executor.run("put(1)")).calls[0].state == "denied"
    again.close()
