"""Approvals forged beside `decide`, or by one person who pretends to be two: nothing of it lets a call run.

The store is trusted, so this is a second line: whoever can write the file finds that a changed card is worth
nothing, not that it cannot be changed.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bascule.bridge import ApprovalRequest, Decision, Executor, Limits, Policy, Result, ask_elsewhere
from bascule.bridge.approval_card import Card, Voice, read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.decide import decide, person
from bascule.bridge.errors import DecisionRefused, ResumeError, StoreError
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.terminal import whoami
from bascule.tools import tool
from tests.unit.bridge.guests import GuestBackend, calls

pytestmark = pytest.mark.anyio

RULES = """
version: 1
rules:
  - {id: two, effect: ask, match: {tool: put},
     approval: {quorum: 2, may: [approve, edit, respond], editable: [n]}}
"""
ONE = RULES.replace("quorum: 2", "quorum: 1")


def executor_of(store: SqliteStore, ran: list[float], rules: str = RULES) -> Executor:
    @tool(effects="once")
    def put(n: float) -> float:
        """Put."""
        ran.append(n)
        return n

    return Executor(
        [put],
        policy=Policy.parse(rules),
        approver=ask_elsewhere,
        backend=GuestBackend(calls(("put", {"n": 1}))),
        store=store,
        limits=Limits(hold_warm_s=0.0),
        user="ada",
    )


async def ask(store: SqliteStore, ran: list[float], rules: str = RULES) -> tuple[str, ApprovalRecord]:
    """Suspend a run at its question."""
    async with executor_of(store, ran, rules) as executor:
        result = await executor.run("put(1)", wait=False)
    (record,) = store.approvals.find(states=["pending"])
    return result.run_id, record


async def go_on(store: SqliteStore, ran: list[float], run_id: str, rules: str = RULES) -> Result:
    async with executor_of(store, ran, rules) as executor:
        return await executor.resume(run_id, wait=False)


def write(path: Path, record: ApprovalRecord, state: str, card: Card) -> None:
    """Change a row as somebody does who has the file."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE approvals SET state = ?, version = version + 1, body = ? WHERE id = ?",
            (state, card.encode(), record.id),
        )
    connection.close()


def voices(*names: str) -> tuple[Voice, ...]:
    return tuple(
        Voice(by=name, groups=(), channel="forged", verdict="approve", reason="", at=1.0) for name in names
    )


FORGED: dict[str, tuple[str, Callable[[Card], Card]]] = {
    "only the state": ("approved", lambda card: card),
    "one voice of two": ("approved", lambda card: replace(card, voices=voices("olga"))),
    "one person twice": ("approved", lambda card: replace(card, voices=voices("olga", "olga"))),
    "one person in two spellings": ("approved", lambda card: replace(card, voices=voices("olga", "Olga "))),
    "the requester among them": ("approved", lambda card: replace(card, voices=voices("olga", "ADA"))),
    "a lower quorum": (
        "approved",
        lambda card: replace(
            card,
            voices=voices("olga"),
            requirement=replace(
                card.requirement, demands=tuple(replace(each, quorum=1) for each in card.requirement.demands)
            ),
        ),
    ),
    "other arguments": (
        "approved",
        lambda card: replace(
            card, voices=voices("olga", "otto"), original=card.arguments, arguments='{"n":1000}'
        ),
    ),
    "an answer on another card": (
        "responded",
        lambda card: replace(card, voices=voices("olga"), response="5", tool_digest="0" * 64),
    ),
}


@pytest.mark.parametrize(("state", "forge"), FORGED.values(), ids=FORGED.keys())
async def test_a_forged_card_lets_nothing_run(
    state: str, forge: Callable[[Card], Card], tmp_path: Path
) -> None:
    path, ran = tmp_path / "runs.db", list[float]()
    store = SqliteStore(path)
    run_id, record = await ask(store, ran)
    write(path, record, state, forge(read_card(record)))
    result = await go_on(store, ran, run_id)
    assert ran == []
    assert result.status == "suspended"  # it is asked about anew
    (again,) = store.approvals.find(states=["pending"])
    assert again.id != record.id
    store.close()


async def test_events_that_were_changed_are_noticed_before_anything_runs(tmp_path: Path) -> None:
    path, ran = tmp_path / "runs.db", list[float]()
    store = SqliteStore(path)
    run_id, _ = await ask(store, ran)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER events_keep")
        connection.execute("UPDATE events SET facts = replace(facts, '\"ask\"', '\"allow\"')")
    connection.close()
    with pytest.raises(ResumeError) as refused:
        await go_on(store, ran, run_id)
    assert refused.value.code == "journal_damaged"
    assert ran == []
    store.close()


@pytest.mark.parametrize("name", ["olga", "Olga", "OLGA", " olga ", "\uff4f\uff4c\uff47\uff41", "ol\u200bga"])
async def test_one_person_under_two_names_is_no_quorum(name: str, tmp_path: Path) -> None:
    store, ran = SqliteStore(tmp_path / "runs.db"), list[float]()
    _, record = await ask(store, ran)
    yes = Decision(verdict="approve", by="olga")
    assert decide(store.approvals, record.id, yes, digest=record.digest, channel="a").state == "pending"
    with pytest.raises(DecisionRefused) as refused:
        decide(store.approvals, record.id, replace(yes, by=name), digest=record.digest, channel="b")
    assert refused.value.code == "already_decided"
    other = replace(yes, by="otto")
    assert decide(store.approvals, record.id, other, digest=record.digest, channel="b").state == "approved"
    store.close()


@pytest.mark.parametrize("name", ["ada", "Ada", "ada ", "\uff41da"])
async def test_nobody_approves_an_own_run_in_another_spelling(name: str, tmp_path: Path) -> None:
    store, ran = SqliteStore(tmp_path / "runs.db"), list[float]()
    _, record = await ask(store, ran, ONE)
    with pytest.raises(DecisionRefused) as refused:
        decide(
            store.approvals,
            record.id,
            Decision(verdict="approve", by=name),
            digest=record.digest,
            channel="a",
        )
    assert refused.value.code == "self_approval"
    store.close()


@pytest.mark.parametrize("name", ["", " ", "\u200b", "\u202e"])
async def test_a_name_that_says_nobody_decides_nothing(name: str, tmp_path: Path) -> None:
    store, ran = SqliteStore(tmp_path / "runs.db"), list[float]()
    _, record = await ask(store, ran, ONE)
    with pytest.raises(DecisionRefused):
        decide(
            store.approvals,
            record.id,
            Decision(verdict="approve", by=name),
            digest=record.digest,
            channel="a",
        )
    store.close()


def test_different_people_stay_different() -> None:
    names = ["a.b", "ab", "a-b", "a_b", "a@x.org", "ax.org", "李", "王", "olga2", "olga"]
    assert len({person(name) for name in names}) == len(names)


def test_the_environment_does_not_say_who_somebody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    before = whoami()
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(variable, "somebody-else")
    assert whoami() == before


@pytest.mark.parametrize("n", [1.0, 1, True, "1", 1e400, None, [1]])
async def test_an_edit_to_another_type_or_to_the_same_runs_nothing(n: object, tmp_path: Path) -> None:
    store, ran = SqliteStore(tmp_path / "runs.db"), list[float]()
    run_id, record = await ask(store, ran, ONE)
    edit = Decision(verdict="edit", by="olga", arguments={"n": n})  # type: ignore[dict-item]
    try:
        decide(store.approvals, record.id, edit, digest=record.digest, channel="a")
    except DecisionRefused:
        assert store.approvals.find(states=["pending"]) == [record]
    else:
        result = await go_on(store, ran, run_id, ONE)
        assert result.status == "suspended"
    assert ran == []
    store.close()


async def test_a_store_that_dies_under_an_answer_leaves_no_task_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, ran = SqliteStore(tmp_path / "runs.db"), list[float]()
    run_id, _ = await ask(store, ran, ONE)
    gone = asyncio.Event()

    async def approver(request: ApprovalRequest) -> Decision:
        store.approvals.move = broken  # type: ignore[method-assign]
        return Decision(verdict="approve", by="olga")

    def broken(*moves: object, audit: object = None) -> None:
        gone.set()
        raise StoreError("store_unavailable", "the disk is full")

    executor = executor_of(store, ran, ONE)
    executor._approver = approver  # pyright: ignore[reportPrivateUsage]
    with caplog.at_level(logging.ERROR, "bascule.bridge"):
        resuming = asyncio.create_task(executor.resume(run_id, wait=False))
        await gone.wait()
        resuming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await resuming
    await executor.close()
    assert "an answer was not taken: the disk is full" in caplog.text
    assert ran == []
    store.close()
