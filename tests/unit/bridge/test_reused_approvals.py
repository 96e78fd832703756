"""Attempts to use an approval twice, for another call or for another run: nothing runs unapproved."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bascule.bridge import Decision, Executor, Limits, Policy, ask_elsewhere
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.decide import decide
from bascule.bridge.errors import DecisionRefused, RunBusy
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.recording import make_recording, rerun
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.store import Store
from bascule.sandbox import open_backend
from bascule.tools import AnyTool, tool
from bascule.wire import Cancel
from tests.unit.bridge.guests import Guest, GuestBackend, Line, calls, sequence

pytestmark = pytest.mark.anyio

RULES = """
version: 1
rules:
  - {id: r, effect: ask, match: {tool: put},
     approval: {may: [approve, edit, reject], editable: [value, to.name], grantable: [args_in_run, script]}}
"""


def putter(ran: list[Any]) -> AnyTool:
    @tool(effects="once")
    async def put(value: Any, to: dict[str, Any] | None = None) -> str:
        """Put."""
        ran.append(value)
        return "put"

    return put


@tool(effects="read", labels={"private"})
async def look() -> str:
    """Look."""
    return "looked"


def host(store: Store, ran: list[Any], guest: Guest, **more: Any) -> Executor:
    more.setdefault("policy", Policy.parse(RULES))
    return Executor(
        [putter(ran), look],
        approver=ask_elsewhere,
        store=store,
        limits=Limits(hold_warm_s=0.0),
        backend=GuestBackend(guest),
        **more,
    )


def pending(store: Store) -> list[ApprovalRecord]:
    return store.approvals.find(states=["pending"])


def approve(store: Store, record: ApprovalRecord, **more: Any) -> ApprovalRecord:
    decision = replace(Decision(verdict="approve", by="olga"), **more)
    return decide(store.approvals, record.id, decision, digest=record.digest, channel="test")


PUT = ("put", {"value": 1})


async def test_two_hosts_that_resume_at_once_use_an_approval_once(tmp_path: Path) -> None:
    ran: list[Any] = []
    stores = [SqliteStore(tmp_path / "runs.db") for _ in range(4)]
    hosts = [host(store, ran, sequence(PUT)) for store in stores]
    waits = await hosts[0].run("x", wait=False)
    approve(stores[0], pending(stores[0])[0])
    outcomes = await asyncio.gather(
        *(each.resume(waits.run_id, wait=False) for each in hosts), return_exceptions=True
    )
    assert ran == [1]
    assert sum(isinstance(each, RunBusy) for each in outcomes) == 3
    for each in hosts:
        await each.close()
    for store in stores:
        store.close()


async def test_a_run_of_the_same_name_does_not_get_the_approval_of_the_first(store: Store) -> None:
    ran: list[Any] = []
    async with host(store, ran, sequence(PUT)) as executor:
        await executor.run("x", wait=False, run_id="run-mine")
        approve(store, pending(store)[0])
        with pytest.raises(RunBusy) as refused:
            await executor.run("x", wait=False, run_id="run-mine")
        assert refused.value.code == "run_exists"
        assert ran == []
        assert (await executor.resume("run-mine", wait=False)).status == "ok"
    assert ran == [1]


async def test_a_call_that_is_given_up_leaves_no_question_and_no_answer_for_the_next_one_like_it(
    store: Store,
) -> None:
    ran: list[Any] = []
    asked = asyncio.Event()

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("put", value=1), line.call("look")])
        await line.done()
        await asked.wait()
        line.act([Cancel(seq=1), line.call("put", value=1)])
        await line.done()
        line.finish()

    async with host(store, ran, guest) as executor:
        running = asyncio.create_task(executor.run("x", wait=False))
        async with asyncio.timeout(60):
            while not pending(store):
                await store.changed(1.0)
            asked.set()
            result = await running
    assert (result.status, ran) == ("suspended", [])
    assert [(each.seq, each.state) for each in store.approvals.find()] == [(1, "cancelled"), (3, "pending")]


async def test_an_approved_call_that_is_given_up_before_its_turn_approves_no_other(store: Store) -> None:
    ran: list[Any] = []
    approved, over = asyncio.Event(), asyncio.Event()

    @tool(effects="once")
    async def slow() -> None:
        """Take long."""
        await over.wait()

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("slow"), line.call("put", value=1), line.call("look")])
        await line.done()
        await approved.wait()
        line.act([Cancel(seq=2), line.call("put", value=1), line.call("look")])
        await line.done()
        over.set()
        line.act([])
        line.act_for(await line.done())
        await line.done()

    rules = RULES + "  - {id: s, effect: allow, match: {tool: slow}}\n"
    executor = Executor(
        [putter(ran), look, slow], approver=ask_elsewhere, store=store, policy=Policy.parse(rules),
        limits=Limits(hold_warm_s=0.0), backend=GuestBackend(guest),
    )  # fmt: skip
    async with executor:
        running = asyncio.create_task(executor.run("x", wait=False))
        async with asyncio.timeout(60):
            while not pending(store):
                await store.changed(1.0)
            approve(store, pending(store)[0])
            approved.set()
            result = await running
    assert (result.status, ran) == ("suspended", [])
    assert [each.seq for each in pending(store)] == [4]


async def test_a_member_of_a_batch_is_approved_by_its_own_digest_only(store: Store) -> None:
    ran: list[Any] = []
    async with host(store, ran, calls(PUT, ("put", {"value": 2}), PUT)) as executor:
        waits = await executor.run("x", wait=False)
        first, second, third = pending(store)
        assert len({first.batch, second.batch, third.batch}) == 1
        for one, other in ((first, second), (second, third), (first, third)):
            with pytest.raises(DecisionRefused, match="show it again"):
                approve(store, replace(one, digest=other.digest))
        approve(store, first)
        await executor.resume(waits.run_id, wait=False)
        # The third is the same call as the first, and still waits for its own decision.
        assert (ran, [each.id for each in pending(store)]) == ([1], [second.id, third.id])


async def test_an_edited_member_of_a_batch_changes_no_other(store: Store) -> None:
    ran: list[Any] = []
    async with host(store, ran, calls(PUT, PUT)) as executor:
        waits = await executor.run("x", wait=False)
        first, second = pending(store)
        approve(store, first, verdict="edit", arguments={"value": 9, "to": None})
        approve(store, second)
        assert (await executor.resume(waits.run_id, wait=False)).status == "ok"
    assert ran == [9, 1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"value": 1, "to": {"name": "x", "iban": "DE2"}},
        {"value": 1, "to": {"name": "x"}},
        {"value": 1, "to": {"name": "x", "iban": "DE1", "cc": 1}},
        {"value": 1, "to": None},
        {"value": 1},
        {"value": 1, "to": {"name": "x", "iban": "DE1"}, "extra": 1},
        {"value": 1, "to": {"name": "x", "iban": "DE1"}, "to.name": "y"},
        {"value": 1, "to": [["name", "x"], ["iban", "DE1"]]},
        {"value": 1, "to": {"name": "x", "iban": "DE1", "name\u200b": 1}},
    ],
)
async def test_an_edit_reaches_the_editable_arguments_and_nothing_beside_them(
    store: Store, arguments: dict[str, Any]
) -> None:
    ran: list[Any] = []
    asked = ("put", {"value": 1, "to": {"name": "ann", "iban": "DE1"}})
    async with host(store, ran, sequence(asked)) as executor:
        await executor.run("x", wait=False)
        (record,) = pending(store)
        with pytest.raises(DecisionRefused) as refused:
            approve(store, record, verdict="edit", arguments=arguments)
        assert refused.value.code == "edit_not_allowed"
        after = store.approvals.get(record.id)
        assert after == record


async def test_a_recording_with_an_approval_in_it_starts_nothing(tmp_path: Path) -> None:
    """Cut off after its approval, as an attacker would, so that the call is still to be made."""
    ran: list[Any] = []
    store = SqliteStore(tmp_path / "runs.db")
    async with host(store, ran, sequence(PUT)) as executor:
        waits = await executor.run("x", wait=False)
        approve(store, pending(store)[0])
        result = await executor.resume(waits.run_id, wait=False)
    journal = store.journal(result.run_id)
    assert journal is not None
    kept = [each for each in journal.entries if each.kind not in ("dispatched", "completed", "delivered")]
    recording = make_recording(result.run_id, kept)
    done = await rerun(recording, GuestBackend(sequence(PUT)))
    assert done.problems
    assert ran == [1]
    store.close()


async def test_a_tool_that_a_session_keeps_in_a_variable_asks_again_in_the_next_script() -> None:
    ran: list[Any] = []
    backend, store = open_backend("process"), MemoryStore()
    executor = Executor(
        [putter(ran)], policy=Policy.parse(RULES), approver=ask_elsewhere, store=store,
        limits=Limits(hold_warm_s=0.0), backend=backend,
    )  # fmt: skip
    async with executor, executor.session() as session:
        await session.run("kept = lambda: put(1)\nkept()", wait=False)
        approve(store, pending(store)[0], grant="script")
        assert (await session.resume(wait=False)).status == "ok"
        assert (await session.run("kept()", wait=False)).status == "suspended"
        assert (ran, len(pending(store))) == ([1], 1)
    await backend.close()


LABELLED = """
version: 1
rules:
  - {id: quiet, effect: allow, match: {tool: put}}
  - {id: r, effect: ask, match: {tool: put, run_labels: {any: [private]}}}
"""


async def test_what_a_script_of_a_session_read_before_it_met_a_limit_is_known_to_the_next(
    store: Store,
) -> None:
    ran: list[Any] = []
    backend, store = open_backend("process"), MemoryStore()
    executor = Executor(
        [putter(ran), look], policy=Policy.parse(LABELLED), approver=ask_elsewhere, store=store,
        limits=Limits(hold_warm_s=0.0, output_bytes=1024), backend=backend,
    )  # fmt: skip
    async with executor, executor.session() as session:
        first = await session.run("print(look())\nprint('x' * 2000)", wait=False)
        assert first.status == "limit"
        assert (await session.run("put(1)", wait=False)).status == "suspended"
    assert ran == []
    await backend.close()
