"""Races about one approval: whatever happens at once, exactly one wins. Threads and processes on SQLite."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bascule.bridge.approval import Decision
from bascule.bridge.approval_card import ApprovalState, moved, read_card
from bascule.bridge.approvals_table import ApprovalConflict, ApprovalRecord
from bascule.bridge.decide import decide, expire
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.requirement import Demand
from bascule.bridge.sqlite_store import SqliteStore
from tests.unit.bridge.cards import make_record

ANYBODY = Demand(rule="r")


def race(*movers: Callable[[], bool]) -> list[bool]:
    """Run all at once and return which of them won."""
    start = threading.Barrier(len(movers))
    won = [False] * len(movers)

    def run(index: int) -> None:
        start.wait(30)
        won[index] = movers[index]()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(movers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won


def decider(store: SqliteStore, record: ApprovalRecord, decision: Decision) -> Callable[[], bool]:
    def move() -> bool:
        try:
            decide(store.approvals, record.id, decision, digest=record.digest, channel="test")
        except DecisionRefused as refused:
            return refused.code not in ("approval_closed", "digest_mismatch")
        return True

    return move


def test_of_a_hundred_concurrent_deciders_exactly_one_wins(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    record = make_record(ANYBODY)
    store.approvals.insert(record)
    decisions = [
        Decision(verdict="approve" if index % 2 else "reject", by=f"person-{index}") for index in range(100)
    ]
    won = race(*(decider(store, record, each) for each in decisions))
    assert won.count(True) == 1
    after = store.approvals.get(record.id)
    assert after is not None
    assert [voice.by for voice in read_card(after).voices] == [f"person-{won.index(True)}"]
    assert after.version == 2
    store.close()


PROGRAM = """
import sys
from bascule.bridge.approval import Decision
from bascule.bridge.decide import decide
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.sqlite_store import SqliteStore
path, approval, digest, by = sys.argv[1:]
store = SqliteStore(path)
print("ready", flush=True)
sys.stdin.readline()
try:
    decide(store.approvals, approval, Decision(verdict="approve", by=by), digest=digest, channel="test")
except DecisionRefused as refused:
    print(refused.code)
else:
    print("won")
store.close()
"""


def test_of_several_processes_exactly_one_wins(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    record = make_record(ANYBODY)
    store.approvals.insert(record)
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                PROGRAM,
                str(tmp_path / "store.db"),
                record.id,
                record.digest,
                f"p{index}",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    said: list[str] = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        out, _ = process.communicate(timeout=60)
        said.append(out.strip())
    assert sorted(said) == ["approval_closed"] * 3 + ["won"]
    store.close()


@pytest.mark.parametrize("attempt", range(5))
def test_a_decision_against_an_expiry_has_one_winner(tmp_path: Path, attempt: int) -> None:
    store = SqliteStore(tmp_path / "store.db")
    record = make_record(ANYBODY, expires_at=4e9)
    store.approvals.insert(record)
    won = race(
        decider(store, record, Decision(verdict="approve", by="ada")),
        lambda: expire(store.approvals, record),
    )
    after = store.approvals.get(record.id)
    assert after is not None
    assert won.count(True) == 1
    assert after.state == (ApprovalState.APPROVED if won[0] else ApprovalState.EXPIRED)
    store.close()


@pytest.mark.parametrize("attempt", range(5))
def test_an_edit_against_an_invalidation_has_one_winner(tmp_path: Path, attempt: int) -> None:
    store = SqliteStore(tmp_path / "store.db")
    record = make_record(ANYBODY, may=("edit",), editable=("body",))
    store.approvals.insert(record)

    def invalidate() -> bool:
        try:
            store.approvals.move(moved(record, ApprovalState.INVALIDATED))
        except ApprovalConflict:
            return False
        return True

    edit = Decision(verdict="edit", by="ada", arguments={"body": "new", "to": "x@example.com"})
    won = race(decider(store, record, edit), invalidate)
    after = store.approvals.get(record.id)
    assert after is not None
    assert won.count(True) == 1
    assert after.state == (ApprovalState.APPROVED if won[0] else ApprovalState.INVALIDATED)
    assert (read_card(after).original is None) == (not won[0])
    store.close()
