"""Rate limits of tools: over runs, executors and processes that share a store, whatever the clock does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bascule.bridge import Executor, Policy, Result, approve_all
from bascule.bridge.matching import User
from bascule.bridge.rates import Rate, RateFull
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.store import Store
from bascule.tools import AnyTool, tool
from bascule.wire import Cancel
from tests.unit.bridge.guests import Guest, GuestBackend, Line, calls, sequence

pytestmark = pytest.mark.anyio

PUT: tuple[str, dict[str, Any]] = ("put", {})


def putter(ran: list[int], *, rate: str | None, effects: Any = "once") -> AnyTool:
    @tool(effects=effects, rate=rate, timeout_s=3600)
    async def put() -> int:
        """Put."""
        ran.append(1)
        return len(ran)

    return put


async def run(guest: Guest, made: AnyTool, store: Store) -> Result:
    executor = Executor([made], approver=approve_all, backend=GuestBackend(guest), store=store)
    async with executor, asyncio.timeout(60):
        return await executor.run("put()\n" * 9)


def states(*results: Result) -> list[str]:
    return sorted(call.state for result in results for call in result.calls)


async def test_a_rate_that_is_used_up_is_told_with_the_time_to_wait(store: Store) -> None:
    ran: list[int] = []
    result = await run(sequence(PUT, PUT, PUT), putter(ran, rate="2/hour", effects="read"), store)
    assert [call.state for call in result.calls] == ["done", "done", "not_started"]
    error = result.calls[2].error
    assert error is not None
    assert (error.kind, error.message) == ("budget_exceeded", "put may be called 2/hour, which is used up")
    assert len(ran) == 2


async def test_a_place_that_is_free_soon_is_waited_for(store: Store) -> None:
    ran: list[int] = []
    result = await run(calls(*[PUT] * 3), putter(ran, rate="2/second"), store)
    assert states(result) == ["done"] * 3


@pytest.mark.parametrize("effects", ["read", "once"])
async def test_a_rate_holds_over_two_hosts_at_once_and_a_restart(effects: str, tmp_path: Path) -> None:
    ran: list[int] = []
    made = putter(ran, rate="5/hour", effects=effects)
    stores = [SqliteStore(tmp_path / "runs.db") for _ in range(2)]
    results = await asyncio.gather(*(run(calls(PUT, PUT), made, each) for each in stores * 2))
    assert states(*results) == ["done"] * 5 + ["not_started"] * 3
    for each in stores:
        each.close()
    again = SqliteStore(tmp_path / "runs.db")
    assert states(await run(calls(PUT), made, again)) == ["not_started"]
    assert len(ran) == 5
    again.close()


async def test_a_rehearsal_counts_as_what_it_is_reads_that_are_made(store: Store) -> None:
    ran: list[int] = []
    made = putter(ran, rate="1/hour", effects="read")
    executor = Executor([made], backend=GuestBackend(calls(PUT)), store=store)
    async with executor:
        await executor.rehearse("put()")
        assert states(await executor.run("put()")) == ["not_started"]
    assert len(ran) == 1


async def test_a_call_without_a_place_uses_up_no_approval_and_can_still_be_cancelled(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bascule.bridge.rates.MAX_RATE_WAIT_S", 3600.0)
    ran: list[int] = []

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("put"), line.call("put")])
        await line.done()
        line.act([Cancel(seq=2), line.call("look")])
        await line.done()
        line.finish()

    @tool(effects="read")
    async def look() -> int:
        """Look."""
        return 1

    made = putter(ran, rate="1/hour")
    executor = Executor([made, look], approver=approve_all, backend=GuestBackend(guest), store=store)
    async with executor, asyncio.timeout(60):
        result = await executor.run("put()\n" * 9)
    assert [(call.state, call.cancelled) for call in result.calls[:2]] == [
        ("done", False),
        ("not_started", True),
    ]
    assert ran == [1]
    assert [each.state for each in store.approvals.find()].count("consumed") == 1


def test_the_window_slides_over_single_starts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    rate = Rate("put", 3, 60.0)
    for _ in range(3):
        store.rates.take([rate])
        now += 20.0
    now -= 20.0
    with pytest.raises(RateFull) as full:
        store.rates.take([rate])
    assert full.value.left_s == pytest.approx(20.0)
    now = 1_000_060.0
    store.rates.take([rate])
    with pytest.raises(RateFull):
        store.rates.take([rate])
    store.rates.take([Rate("other", 1, 60.0)])


def test_a_place_is_taken_under_all_rates_or_none(store: Store) -> None:
    store.rates.take([Rate("full", 1, 60.0)])
    with pytest.raises(RateFull):
        store.rates.take([Rate("put", 1, 60.0), Rate("full", 1, 60.0)])
    store.rates.take([Rate("put", 1, 60.0)])


def test_a_clock_that_goes_back_blocks_no_tool_and_one_that_jumps_ahead_opens_the_window(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    rate = Rate("put", 2, 60.0)
    store.rates.take([rate])
    store.rates.take([rate])
    now -= 86_400.0
    store.rates.take([rate])
    store.rates.take([rate])
    with pytest.raises(RateFull) as full:
        store.rates.take([rate])
    assert full.value.left_s == pytest.approx(60.0)
    now += 2 * 86_400.0
    store.rates.take([rate])


async def test_a_rehearsal_is_counted_by_budgets_and_leaves_one_audit_entry(store: Store) -> None:
    ran: list[int] = []
    made = putter(ran, rate=None, effects="read")
    rule = "{id: few, effect: allow, match: {tool: put}, budget: {calls_per_day: 2}}"
    executor = Executor(
        [made],
        backend=GuestBackend(calls(PUT)),
        store=store,
        policy=Policy.parse(f"version: 1\nrules: [{rule}]"),
        user=User(name="ann", tenant="acme"),
    )
    async with executor:
        await executor.rehearse("put()")
        assert states(await executor.run("put()")) == ["done"]
        await executor.rehearse("put()")
        assert states(await executor.run("put()")) == ["denied"]
    assert len(ran) == 2
    told = [entry.facts for entry in store.audit_entries() if entry.action == "run.rehearsed"]
    assert [(facts["user"], facts["tenant"], facts["read"]) for facts in told] == [
        ("ann", "acme", {"put": 1}),
        ("ann", "acme", {}),
    ]
