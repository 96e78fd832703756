"""What every store promises, and what the one in a file promises beyond it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bascule.bridge.approvals_table import (
    ApprovalConflict,
    ApprovalMove,
    ApprovalRecord,
    Reservation,
    ReservationRefused,
)
from bascule.bridge.errors import LeaseLost, ResumeError, RunBusy, RunNotFound, StoreError
from bascule.bridge.journal import EventKind
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.sqlite_schema import SCHEMA_VERSION
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.sqlite_writer import ROOM_AFTER, ROOM_BYTES
from bascule.bridge.store import Answer, RunRecord, Store
from tests.unit.bridge.cards import make_record

pytestmark = pytest.mark.anyio

GONE = "another-boot"
FAR = 4e9


def row(run_id: str = "run-1", **changes: object) -> RunRecord:
    record = RunRecord(
        run_id=run_id,
        status="running",
        created_at=1.0,
        updated_at=1.0,
        user="ann",
        image="0" * 64,
        script_sha256="1" * 64,
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def approval(approval_id: str = "a1", **changes: object) -> ApprovalRecord:
    record = ApprovalRecord(id=approval_id, run_id="run-1", seq=1, state="pending", digest="d", body=b"{}")
    return replace(record, **changes)  # type: ignore[arg-type]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


async def test_events_come_back_in_order_with_facts_and_payload(store: Store) -> None:
    journal = store.open_journal(row())
    journal.append(EventKind.RUN_STARTED, b"script", seed=1, now=1.5, user=None)
    await journal.flush()
    journal.append(EventKind.COMPLETED, b"x" * 100_000, seq=1)
    await journal.commit()
    journal.append(EventKind.OUTPUT, b"not yet written", act=0)
    read = journal.entries
    assert [entry.index for entry in read] == [0, 1, 2]
    assert (read[0].facts["seed"], read[0].facts["now"], read[0].facts["user"]) == (1, 1.5, None)
    assert [entry.payload for entry in read] == [b"script", b"x" * 100_000, b"not yet written"]
    other = store.journal("run-1")
    assert other is not None
    assert len(other.entries) == 2


async def test_the_row_of_a_run_tells_how_it_was_left(store: Store) -> None:
    journal = store.open_journal(row())
    await journal.flush()
    await store.release(journal, row(status="suspended", reason="waits for ops", wake_at=5.0))
    left = store.run("run-1")
    assert left is not None
    assert (left.status, left.reason, left.wake_at, left.owner) == ("suspended", "waits for ops", 5.0, "")
    assert store.resumable() == ["run-1"]
    assert [each.run_id for each in store.runs(status="suspended")] == ["run-1"]
    assert store.runs(status="finished") == []


async def test_a_lease_is_given_once_and_fences_whoever_had_it_before(store: Store) -> None:
    first = store.open_journal(row())
    await first.flush()
    await store.release(first, row(status="suspended"))
    second = store.take_lease("run-1")
    with pytest.raises(RunBusy, match="worked on"):
        store.take_lease("run-1")
    first.append(EventKind.DISPATCHED, seq=1)
    with pytest.raises(LeaseLost):
        await first.commit()
    with pytest.raises(LeaseLost):
        store.renew(first)
    second.append(EventKind.RESUMED)
    await second.commit()
    await store.release(second, row(status="finished", outcome="ok"))
    with pytest.raises(RunBusy, match="finished"):
        store.take_lease("run-1")
    with pytest.raises(RunNotFound):
        store.take_lease("run-2")


async def test_an_approval_is_moved_from_its_current_version_only(store: Store) -> None:
    journal = store.open_journal(row())
    journal.append(EventKind.APPROVAL_REQUESTED, seq=1)
    await journal.commit(insert=[approval(expires_at=9.0)])
    store.approvals.move(
        ApprovalMove(id="a1", version=1, state="approved", body=b"[]"), audit={"action": "approval.decided"}
    )
    with pytest.raises(ApprovalConflict):
        store.approvals.move(ApprovalMove(id="a1", version=1, state="rejected"))
    found = store.approvals.get("a1")
    assert found is not None
    assert (found.state, found.version, found.body, found.expires_at) == ("approved", 2, b"[]", 9.0)
    assert [each.id for each in store.approvals.find(run_id="run-1", seq=1, states=["approved"])] == ["a1"]
    assert store.approvals.find(states=["pending"]) == []
    assert store.approvals.get("a2") is None
    assert [entry.action for entry in store.audit_entries()] == ["approval.decided"]


async def test_approvals_are_found_by_their_ids(store: Store) -> None:
    store.approvals.insert(
        approval("b", created_at=2.0), approval("a'1", created_at=1.0), approval("c", run_id="run-2")
    )
    assert [each.id for each in store.approvals.find(ids=["b", "unknown", "a'1", "b"])] == ["a'1", "b"]
    assert [each.id for each in store.approvals.find(ids=["b", "c"], run_id="run-2")] == ["c"]
    assert [each.id for each in store.approvals.find(ids=["b", "c"], limit=1)] == ["c"]
    assert store.approvals.find(ids=()) == []


async def test_a_dispatch_and_what_it_needs_happen_together_or_not_at_all(store: Store) -> None:
    journal = store.open_journal(row())
    await journal.commit(insert=[approval()])
    journal.append(EventKind.DECIDED, seq=1)
    consume = ApprovalMove(id="a1", version=1, state="consumed")
    spend = Reservation(key="day", amount=60, maximum=100, expires_at=FAR)
    event = (EventKind.DISPATCHED, {"seq": 1}, None)
    await journal.commit(move=[consume], reserve=[spend], event=event)
    assert store.counter("day") == 60
    with pytest.raises(ApprovalConflict):
        await journal.commit(move=[consume], reserve=[spend], event=event)
    journal.append(EventKind.DECIDED, seq=2)
    with pytest.raises(ReservationRefused) as refused:
        await journal.commit(
            move=[ApprovalMove(id="a1", version=2, state="pending")], reserve=[spend], event=event
        )
    assert refused.value.used == 60
    assert store.counter("day") == 60
    record = store.approvals.get("a1")
    assert record is not None
    assert record.state == "consumed"
    kinds = [entry.kind for entry in journal.entries]
    assert kinds == [EventKind.DECIDED, EventKind.DISPATCHED, EventKind.DECIDED]


async def test_a_counter_is_forgotten_when_it_expires_and_may_be_given_back(store: Store) -> None:
    journal = store.open_journal(row())
    await journal.commit(reserve=[Reservation(key="k", amount=5, maximum=9, expires_at=FAR)])
    await journal.commit(reserve=[Reservation(key="k", amount=-2, maximum=9, expires_at=FAR)])
    assert store.counter("k") == 3
    await journal.commit(reserve=[Reservation(key="k", amount=0, maximum=9, expires_at=1.0)])
    assert store.counter("k") == 0


async def test_the_first_answer_of_an_operator_counts(store: Store) -> None:
    await store.open_journal(row()).flush()
    assert store.answer("run-1", 3, 1, Answer(kind="happened", value=b"7", by="ops"))
    assert not store.answer("run-1", 3, 1, Answer(kind="did_not_happen"))
    assert store.find_answer("run-1", 3, 1) == Answer(kind="happened", value=b"7", by="ops")
    assert store.find_answer("run-1", 3, 2) is None


async def test_a_cancellation_reaches_whoever_works_on_the_run(store: Store) -> None:
    journal = store.open_journal(row())
    await journal.flush()
    assert not store.renew(journal)
    assert store.request_cancel("run-1")
    assert store.renew(journal)
    assert not store.request_cancel("run-2")


async def test_audit_entries_are_chained(store: Store) -> None:
    journal = store.open_journal(row())
    journal.audit("call.dispatched", seq=1)
    await journal.commit()
    store.append_audit("policy.loaded", {"digest": "d"})
    first, second = store.audit_entries()
    assert (first.index, first.action, first.run_id) == (0, "call.dispatched", "run-1")
    assert (second.index, second.previous, second.run_id) == (1, first.hash, None)
    assert [entry.index for entry in store.audit_entries(after=0)] == [1]


async def test_who_waits_for_a_change_is_woken_from_any_thread(store: Store) -> None:
    await store.open_journal(row()).flush()
    waiting = asyncio.create_task(store.changed(30.0))
    await asyncio.sleep(0)
    if isinstance(store, SqliteStore):
        thread = threading.Thread(target=store.request_cancel, args=("run-1",))
        thread.start()
        await waiting
        thread.join()
    else:
        store.request_cancel("run-1")
        await waiting
    await store.changed(0.0)


def _execute(statement: str, connection: sqlite3.Connection) -> None:
    connection.execute(statement)


# ---------------------------------------------------------------- in memory


async def test_memory_drops_values_of_finished_runs_and_the_oldest_runs() -> None:
    store = MemoryStore(kept_runs=2)
    for number in range(3):
        journal = store.open_journal(row(f"run-{number}"))
        journal.append(EventKind.COMPLETED, b"value", seq=1)
        await store.release(journal, row(f"run-{number}", status="finished", outcome="ok"))
    assert store.journal("run-0") is None
    kept = store.journal("run-2")
    assert kept is not None
    assert [entry.payload for entry in kept.entries] == [None]


# ---------------------------------------------------------------- in a file


def test_the_file_is_for_its_owner_only(file: Path) -> None:
    file.touch(mode=0o666)
    store = SqliteStore(file)
    for each in file.parent.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) == 0o600, each
    store.close()


async def test_a_process_of_the_past_does_not_hold_its_lease(file: Path) -> None:
    store = SqliteStore(file)
    mine = store.owner
    host, _, _ = mine.partition(":")
    store.owner = f"{host}:4194000:1"
    left = store.open_journal(row())
    await left.flush()
    store.owner = mine
    assert store.resumable() == ["run-1"]
    taken = store.take_lease("run-1")
    assert taken.epoch == 2
    assert store.resumable() == []
    store.close()


async def test_a_newer_file_and_a_foreign_one_are_refused(file: Path, tmp_path: Path) -> None:
    SqliteStore(file).close()
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(StoreError, match="newer version") as refused:
        SqliteStore(file)
    assert refused.value.code == "store_newer"
    foreign = tmp_path / "other.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StoreError, match="not a store"):
        SqliteStore(foreign)
    text = tmp_path / "text.db"
    text.write_text("hello " * 1000)
    with pytest.raises(StoreError, match="not a store"):
        SqliteStore(text)
    with pytest.raises(StoreError, match="cannot be used"):
        SqliteStore(tmp_path / "missing" / "runs.db")


async def test_events_and_audit_can_only_be_added(file: Path) -> None:
    store = SqliteStore(file)
    journal = store.open_journal(row())
    journal.append(EventKind.OUTPUT, b"text", act=0)
    journal.audit("call.dispatched")
    await journal.commit()
    for statement in (
        "UPDATE events SET facts = '{}'",
        "UPDATE events SET payload = 'other'",
        "DELETE FROM events",
        "UPDATE audit SET action = 'other'",
        "DELETE FROM audit",
    ):
        with pytest.raises(StoreError, match="append-only"):
            store.write(partial(_execute, statement))
    store.close()


async def test_a_journal_that_was_tampered_with_is_not_read(file: Path) -> None:
    store = SqliteStore(file)
    journal = store.open_journal(row())
    journal.append(EventKind.OUTPUT, b"text", act=0)
    await journal.commit()
    store.close()
    connection = sqlite3.connect(file)
    connection.execute("DROP TRIGGER events_payload")
    connection.execute("UPDATE events SET payload = 'other'")
    connection.commit()
    connection.close()
    store = SqliteStore(file)
    found = store.journal("run-1")
    assert found is not None
    with pytest.raises(ResumeError, match="does not hold together"):
        _ = found.entries
    store.close()


async def test_retention_drops_values_and_keeps_what_proves_them(file: Path) -> None:
    store = SqliteStore(file)
    journal = store.open_journal(row())
    journal.append(EventKind.COMPLETED, b"v" * 50_000, seq=1)
    journal.append(EventKind.OUTPUT, b"text", act=0)
    await store.release(journal, row(status="finished", outcome="ok"))
    assert store.prune(before=1.0) == 0
    assert store.prune(before=time.time() + 1) == 1
    entries = journal.entries
    assert [entry.payload for entry in entries] == [None, None]
    assert len(str(entries[0].facts["payload_sha256"])) == 64
    store.close()


async def test_reads_cost_no_flush_to_disk_and_commits_exactly_one(file: Path) -> None:
    store = SqliteStore(file)
    journal = store.open_journal(row())
    for number in range(10):
        journal.append(EventKind.CALL_ISSUED, b"{}", seq=number)
        await journal.flush()
    assert store.writer.flushes == 0
    journal.append(EventKind.DISPATCHED, seq=1)
    await journal.commit()
    assert store.writer.flushes == 1
    store.close()


async def test_two_processes_can_write_the_same_file(file: Path) -> None:
    here, there = SqliteStore(file), SqliteStore(file)
    journal = here.open_journal(row())
    await journal.commit(insert=[approval()])
    waiting = asyncio.create_task(here.changed(30.0))
    await asyncio.sleep(0)
    await asyncio.to_thread(there.approvals.move, ApprovalMove(id="a1", version=1, state="approved"))
    await waiting
    found = here.approvals.get("a1")
    assert found is not None
    assert found.state == "approved"
    here.close()
    there.close()


async def test_a_busy_file_is_waited_for_off_the_event_loop(file: Path) -> None:
    store = SqliteStore(file)
    other = sqlite3.connect(file, isolation_level=None)
    journal = store.open_journal(row())
    await journal.flush()
    other.execute("BEGIN IMMEDIATE")
    journal.append(EventKind.OUTPUT, b"1", act=0)
    first = asyncio.create_task(journal.flush())
    await asyncio.sleep(0)
    journal.append(EventKind.OUTPUT, b"2", act=0)
    second = asyncio.create_task(journal.flush())
    await asyncio.sleep(0)
    assert not first.done()
    other.execute("COMMIT")
    other.close()
    await asyncio.gather(first, second)
    assert [entry.payload for entry in journal.entries] == [b"1", b"2"]
    store.close()


async def test_a_store_that_cannot_be_written_says_so_and_writes_nothing(file: Path) -> None:
    store = SqliteStore(file)
    journal = store.open_journal(row())
    await journal.flush()
    store.write(lambda connection: connection.execute("SELECT 1"))
    store.writer.run_now(lambda connection: connection.execute("PRAGMA max_page_count=1"), False)
    journal.append(EventKind.COMPLETED, os.urandom(1 << 20), seq=1)
    with pytest.raises(StoreError, match="full") as refused:
        await journal.commit()
    assert refused.value.code == "store_unavailable"
    store.close()


def test_versions_tell_what_changed_of_what_is_in_a_state(store: Store) -> None:
    records = [replace(make_record(created_at=float(number)), id=f"a{number}") for number in range(4)]
    store.approvals.insert(*records)
    store.approvals.move(ApprovalMove(id="a1", version=1, state="approved"))
    store.approvals.move(ApprovalMove(id="a2", version=1, state="pending"))
    assert store.approvals.versions("pending", limit=10) == {"a0": 1, "a2": 2, "a3": 1}
    assert store.approvals.versions("pending", limit=2) == {"a0": 1, "a2": 2}
    assert store.approvals.versions("expired", limit=10) == {}


def test_what_is_asked_of_some_approvals_costs_nothing_for_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every change in a store has the runs that wait look at theirs: no history may be read for that."""
    store = SqliteStore(tmp_path / "x.db")
    read, plans = store.read, list[str]()

    def explain(statement: str, *values: object) -> list[tuple[Any, ...]]:
        plans.extend(str(row[3]) for row in read(f"EXPLAIN QUERY PLAN {statement}", *values))
        return read(statement, *values)

    monkeypatch.setattr(store, "read", explain)
    store.approvals.find(ids=["a"], states=["approved", "rejected"])
    store.close()
    assert "SEARCH approvals USING INDEX sqlite_autoindex_approvals_1 (id=?)" in plans
    assert not any("approvals_by_state" in plan for plan in plans)


async def test_a_log_that_was_given_room_ahead_holds_what_was_written_and_does_not_grow(
    file: Path, tmp_path: Path
) -> None:
    store = SqliteStore(file)
    journal = store.open_journal(row())
    log = file.with_name(f"{file.name}-wal")
    sizes: list[int] = []
    for number in range(3 * ROOM_AFTER):
        journal.append(EventKind.DISPATCHED, seq=number)
        await journal.commit()  # one after the other on the writer's thread, as is what gives room
        sizes.append(log.stat().st_size)
    assert sizes[0] < ROOM_BYTES
    assert set(sizes[ROOM_AFTER:]) == {ROOM_BYTES}
    left = tmp_path / "left"  # by a host that dies now
    left.mkdir()
    for each in (file, log):
        shutil.copy(each, left / each.name)
    found = SqliteStore(left / file.name)
    again = found.journal("run-1")
    assert again is not None
    assert [entry.facts["seq"] for entry in again.entries] == list(range(3 * ROOM_AFTER))
    found.close()
    store.close()
