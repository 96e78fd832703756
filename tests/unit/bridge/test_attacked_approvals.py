"""Attacks on approvals from beside them: ids guessed or disguised, decisions replayed, look-alike arguments,
secrets typed in, clocks that jump. Nothing of it lets a call run that nobody approved.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bascule.bridge import ApprovalRequest, Decision, Executor, Limits, Policy, Result, ask_elsewhere
from bascule.bridge.approval import Approver
from bascule.bridge.approval_card import new_id, read_card
from bascule.bridge.approvals_table import ApprovalRecord, Reservation, ReservationRefused
from bascule.bridge.decide import decide
from bascule.bridge.errors import DecisionRefused, LeaseLost
from bascule.bridge.journal import EventKind
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.store import LEASE_S, RunRecord, Store
from bascule.tools import AnyTool, tool
from tests.unit.bridge.cards import make_record
from tests.unit.bridge.guests import GuestBackend, sequence

pytestmark = pytest.mark.anyio

SECRET = "sk-live-4f9a81c2"
RULES = """
version: 1
rules:
  - {id: r, effect: ask, match: {tool: put},
     approval: {may: [approve, edit, reject, respond], editable: [value], grantable: [args_in_run],
                self_approval: true, expires_in: 1h}}
"""


def putter(ran: list[Any]) -> AnyTool:
    @tool(effects="once")
    def put(value: Any) -> str:
        """Put."""
        ran.append(value)
        return "put"

    return put


def host(
    store: Store,
    ran: list[Any],
    *values: Any,
    approver: Approver = ask_elsewhere,
    user: str = "ada",
    **more: Any,
) -> Executor:
    """Return an executor whose guest puts one value after the other."""
    return Executor(
        [putter(ran)],
        policy=Policy.parse(RULES),
        approver=approver,
        store=store,
        user=user,
        limits=Limits(hold_warm_s=0.0),
        backend=GuestBackend(sequence(*(("put", {"value": value}) for value in values))),
        **more,
    )


async def suspend(store: Store, ran: list[Any], user: str = "ada") -> tuple[Result, ApprovalRecord]:
    async with host(store, ran, 1, user=user) as executor:
        result = await executor.run("put(1)", wait=False)
    (record,) = store.approvals.find(run_id=result.run_id, states=["pending"])
    return result, record


def yes(store: Store, record: ApprovalRecord, **more: Any) -> ApprovalRecord:
    decision = Decision(verdict="approve", by="olga", **more)
    return decide(
        store.approvals, record.id, decision, digest=record.digest, channel="test", now=lambda: time.time()
    )


# ------------------------------------------------------------ ids


def disguises(approval_id: str) -> list[str]:
    full_width = "".join(chr(ord(char) + 0xFEE0) for char in approval_id)
    return [
        approval_id[:-1],
        approval_id[:12],
        f"{approval_id}0",
        f" {approval_id}",
        f"{approval_id}\n",
        f"{approval_id}\0",
        approval_id.upper(),
        approval_id.replace("a", "\u0430", 1),
        approval_id.replace("-", "\u2010"),
        f"\u200b{approval_id}",
        full_width,
        "apr-%",
        "apr-" + "_" * 20,
        "' OR 1=1 --",
        "*",
        "",
        new_id(),
    ]


def test_an_id_is_matched_whole_and_byte_for_byte(store: Store) -> None:
    record = make_record()
    store.approvals.insert(record)
    for disguised in disguises(record.id):
        with pytest.raises(DecisionRefused) as refused:
            yes(store, replace(record, id=disguised))
        assert refused.value.code == "approval_not_found"
        assert store.approvals.find(ids=[disguised]) == []
    assert store.approvals.get(record.id) == record


def test_a_digest_is_matched_whole_and_byte_for_byte(store: Store) -> None:
    record = make_record()
    store.approvals.insert(record)
    full_width = "".join(chr(ord(char) + 0xFEE0) for char in record.digest)
    for digest in (record.digest[:16], record.digest.upper(), f"{record.digest} ", full_width, "", "0" * 64):
        with pytest.raises(DecisionRefused) as refused:
            decide(
                store.approvals,
                record.id,
                Decision(verdict="approve", by="olga"),
                digest=digest,
                channel="test",
            )
        assert refused.value.code == "digest_mismatch"


def test_ids_cannot_be_guessed() -> None:
    found = {new_id() for _ in range(2000)}
    assert len(found) == 2000
    assert {len(each) for each in found} == {len("apr-") + 20}  # 80 bits
    assert len({each[4:8] for each in found}) > 1000  # they do not count up


# ------------------------------------------------------------ replayed


async def test_an_approval_of_one_run_is_worth_nothing_in_another(store: Store) -> None:
    ran: list[Any] = []
    _, first = await suspend(store, ran, user="ada")
    second_run, second = await suspend(store, ran, user="bob")
    yes(store, first)
    with pytest.raises(DecisionRefused) as refused:  # the same call, shown on the other card
        yes(store, replace(second, digest=first.digest))
    assert refused.value.code == "digest_mismatch"
    async with host(store, ran, 1, user="bob") as executor:
        again = await executor.resume(second_run.run_id, wait=False)
    assert (again.status, ran) == ("suspended", [])


async def test_a_decision_that_is_sent_twice_counts_once(store: Store) -> None:
    ran: list[Any] = []
    result, record = await suspend(store, ran)
    yes(store, record)
    with pytest.raises(DecisionRefused) as refused:
        yes(store, record)
    assert refused.value.code == "approval_closed"
    async with host(store, ran, 1) as executor:
        done = await executor.resume(result.run_id)
    assert (done.status, ran) == ("ok", [1])
    with pytest.raises(DecisionRefused):
        yes(store, record)


@pytest.mark.parametrize("body", ["whole card", "only its run"])
async def test_an_approved_card_that_is_moved_to_another_run_is_worth_nothing(
    body: str, tmp_path: Path
) -> None:
    ran: list[Any] = []
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    _, first = await suspend(store, ran, user="ada")
    second_run, second = await suspend(store, ran, user="bob")
    yes(store, first)
    approved = store.approvals.get(first.id)
    assert approved is not None
    with sqlite3.connect(path) as connection:  # by somebody who has the file
        connection.execute("DELETE FROM approvals WHERE id = ?", (second.id,))
        connection.execute("UPDATE approvals SET run_id = ? WHERE id = ?", (second_run.run_id, first.id))
        if body == "whole card":
            card = replace(read_card(approved), requester="bob")
            connection.execute("UPDATE approvals SET body = ? WHERE id = ?", (card.encode(), first.id))
    connection.close()
    async with host(store, ran, 1, user="bob") as executor:
        again = await executor.resume(second_run.run_id, wait=False)
    assert (again.status, ran) == ("suspended", [])
    store.close()


# ------------------------------------------------------------ grants

GRANTED: Any = {"to": {"id": 1, "tags": ["a", "b"]}, "é": "x"}
SAME: dict[str, Any] = {
    "reordered": {"é": "x", "to": {"tags": ["a", "b"], "id": 1}},
    "a whole float, which runs as the same number": {"to": {"id": 1.0, "tags": ["a", "b"]}, "é": "x"},
}
OTHERS: dict[str, Any] = {
    "true for one": {"to": {"id": True, "tags": ["a", "b"]}, "é": "x"},
    "text for one": {"to": {"id": "1", "tags": ["a", "b"]}, "é": "x"},
    "almost one": {"to": {"id": 1.0000000000000002, "tags": ["a", "b"]}, "é": "x"},
    "another order of a list": {"to": {"id": 1, "tags": ["b", "a"]}, "é": "x"},
    "one more deep inside": {"to": {"id": 1, "tags": ["a", "b"], "cc": None}, "é": "x"},
    "one less": {"to": {"id": 1, "tags": ["a", "b"]}},
    "a list for an object": {"to": [{"id": 1, "tags": ["a", "b"]}], "é": "x"},
    "a name in another normal form": {"to": {"id": 1, "tags": ["a", "b"]}, "e\u0301": "x"},
    "a look-alike name": {"tо": {"id": 1, "tags": ["a", "b"]}, "é": "x"},  # that is the attack
}


async def grant_and_try(store: Store, ran: list[Any], value: Any) -> tuple[Result, list[bytes]]:
    asked: list[bytes] = []

    def approver(request: ApprovalRequest) -> Decision:
        asked.append(request.arguments)
        if len(asked) > 1:
            return Decision(verdict="reject", by="olga")
        return Decision(verdict="approve", by="olga", grant="args_in_run", grant_count=5)

    async with host(store, ran, GRANTED, value, approver=approver) as executor:
        return await executor.run("put(1)\nput(2)"), asked


@pytest.mark.parametrize("value", SAME.values(), ids=SAME.keys())
async def test_a_grant_for_these_arguments_covers_every_spelling_that_runs_as_the_same(
    store: Store, value: Any
) -> None:
    ran: list[Any] = []
    result, asked = await grant_and_try(store, ran, value)
    assert [call.state for call in result.calls] == ["done", "done"]
    assert len(asked) == 1
    assert repr(ran[1]["to"]["id"]) == repr(ran[0]["to"]["id"])
    assert ran[0] == ran[1]


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS.keys())
async def test_a_grant_for_these_arguments_covers_no_others(store: Store, value: Any) -> None:
    ran: list[Any] = []
    result, asked = await grant_and_try(store, ran, value)
    assert [call.state for call in result.calls] == ["done", "denied"]
    assert len(asked) == 2
    assert ran == [GRANTED]


# ------------------------------------------------------------ secrets


@pytest.mark.parametrize("how", ["callback", "elsewhere"])
async def test_an_edit_with_a_secret_runs_nothing_whoever_wrote_it(how: str, tmp_path: Path) -> None:
    ran: list[Any] = []
    store = SqliteStore(tmp_path / "runs.db")
    edit = Decision(verdict="edit", by="olga", arguments={"value": f"key {SECRET}"})
    if how == "callback":
        async with host(store, ran, 1, approver=lambda request: edit, secrets=[SECRET]) as executor:
            result = await executor.run("put(1)")
        assert [call.state for call in result.calls] == ["denied"]
        assert "hold a secret" in repr(result.calls[0].error)
    else:
        suspended, record = await suspend(store, ran)
        # A command line that does not know the secrets: the run finds it, asks again and keeps nothing of it.
        decide(store.approvals, record.id, edit, digest=record.digest, channel="command line")
        async with host(store, ran, 1, secrets=[SECRET]) as executor:
            result = await executor.resume(suspended.run_id, wait=False)
        assert result.status == "suspended"
        (again,) = store.approvals.find(states=["pending"])
        assert "holds a secret" in read_card(again).note
    assert ran == []
    assert all(SECRET.encode() not in each.body for each in store.approvals.find())
    journal = store.journal(result.run_id)
    assert journal is not None
    assert SECRET not in repr(journal.entries)
    store.close()


async def test_secrets_in_reasons_and_responses_are_not_kept(store: Store) -> None:
    ran: list[Any] = []
    async with host(store, ran, 1, 2, secrets=[SECRET]) as executor:
        suspended = await executor.run("put(1)\nput(2)", wait=False)
        (record,) = store.approvals.find(states=["pending"])
        answer = Decision(verdict="respond", by="olga", response=f"done {SECRET}", reason=f"with {SECRET}")
        executor.decide(record.id, answer, digest=record.digest)
        again = await executor.resume(suspended.run_id, wait=False)
        (record,) = store.approvals.find(states=["pending"])
        executor.decide(record.id, Decision(verdict="reject", by="olga", reason=SECRET), digest=record.digest)
        result = await executor.resume(again.run_id)
    assert [call.state for call in result.calls] == ["answered", "denied"]
    assert SECRET not in repr(result)
    assert all(SECRET.encode() not in each.body for each in store.approvals.find())
    assert SECRET not in repr(list(store.audit_entries()))


# ------------------------------------------------------------ clocks


class Clock:
    """Wall time that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.time()
        monkeypatch.setattr("time.time", lambda: self.now)


@pytest.mark.parametrize("jump_s", [3602.0, 86_400.0 * 400])
async def test_a_clock_that_jumps_ahead_expires_and_approves_nothing(
    store: Store, jump_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    ran: list[Any] = []
    result, record = await suspend(store, ran)
    clock.now += jump_s
    with pytest.raises(DecisionRefused, match="expired"):
        yes(store, record)
    clock.now -= jump_s  # and back: what has expired stays expired
    with pytest.raises(DecisionRefused, match="expired"):
        yes(store, record)
    async with host(store, ran, 1) as executor:
        done = await executor.resume(result.run_id)
    assert [call.state for call in done.calls] == ["denied"]
    assert ran == []


async def test_an_approval_that_expired_before_it_was_used_is_asked_for_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    ran: list[Any] = []
    result, record = await suspend(store, ran)
    yes(store, record)
    clock.now += 3602.0
    async with host(store, ran, 1) as executor:
        again = await executor.resume(result.run_id, wait=False)
    assert (again.status, ran) == ("suspended", [])


async def test_a_clock_that_goes_back_uses_an_approval_once_all_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    ran: list[Any] = []
    result, record = await suspend(store, ran)
    yes(store, record)
    clock.now -= 86_400.0
    async with host(store, ran, 1) as executor:
        done = await executor.resume(result.run_id)
        assert (done.status, ran) == ("ok", [1])
        assert await executor.resume_due() == []
    assert ran == [1]


def test_budgets_survive_a_clock_that_goes_back_and_forth(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)

    rule = Reservation(key="sum day", amount=7, maximum=10, expires_at=clock.now + 3 * 86_400)
    reserve(store, rule)
    for jump_s in (-86_400.0, 86_400.0, 5 * 86_400.0, -5 * 86_400.0):
        clock.now += jump_s
        if jump_s == 5 * 86_400.0:
            assert store.counter("sum day") == 0.0  # that day is long over
            continue
        assert store.counter("sum day") == 7.0
        with pytest.raises(ReservationRefused):
            reserve(store, rule)


def reserve(store: Store, reservation: Reservation) -> None:
    asyncio.run(store.open_journal(row_of(new_id())).commit(reserve=[reservation]))


def row_of(run_id: str) -> RunRecord:
    return RunRecord(
        run_id=run_id,
        status="running",
        created_at=0.0,
        updated_at=0.0,
        user=None,
        image="",
        script_sha256="",
        owner="here",
    )


async def test_a_clock_that_jumps_ahead_takes_a_lease_away_and_lets_nobody_write_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    first, second = (SqliteStore(tmp_path / "runs.db") for _ in range(2))
    held = first.open_journal(row_of("run-1"))
    await held.commit()
    assert "run-1" not in second.resumable()
    clock.now += LEASE_S + 1.0
    taken = second.take_lease("run-1")
    held.append(EventKind.RESUMED)
    with pytest.raises(LeaseLost):
        await held.commit()
    with pytest.raises(LeaseLost):
        first.renew(held)
    clock.now -= LEASE_S + 1.0
    with pytest.raises(LeaseLost):
        await held.commit()
    taken.append(EventKind.RESUMED)
    await taken.commit()
    assert first.resumable() == []
    first.close()
    second.close()
