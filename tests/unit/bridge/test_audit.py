"""The audit table: what it says, what it finds, and what it tells of tools."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from bascule.bridge import Executor, Policy, approve_all, deny_all
from bascule.bridge.audit_check import append_checkpoint, export_entry, read_checkpoints, sign, verify
from bascule.bridge.audit_key import AuditKey
from bascule.bridge.errors import StoreError
from bascule.bridge.matching import User
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.tool_stats import collect_stats, percentile
from bascule.tools import tool
from tests.unit.bridge.guests import GuestBackend, sequence

pytestmark = pytest.mark.anyio

SECRET = "a-very-secret-argument"


@tool(effects="once")
async def put(name: str) -> str:
    """Put."""
    return name


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "runs.db")
    yield opened
    opened.close()


async def run(store: SqliteStore, *, approve: bool = True) -> str:
    guest = sequence(("put", {"name": SECRET}), ("put", {"wrong": 1}), ("nothing", {}))
    approver = approve_all if approve else deny_all
    async with Executor(
        [put], backend=GuestBackend(guest), store=store, approver=approver, user="ann"
    ) as executor:
        return (await executor.run("x")).run_id


def tamper(store: SqliteStore, *statements: str) -> None:
    """Change the audit table as somebody with the file could."""
    connection = sqlite3.connect(store.path)
    with connection:
        for trigger in ("audit_keep", "audit_stay"):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for statement in statements:
            connection.execute(statement)
    connection.close()


async def test_it_tells_who_did_what_and_how_it_ended_without_the_values(store: SqliteStore) -> None:
    run_id = await run(store)
    entries = list(store.audit_entries())
    assert {entry.run_id for entry in entries} == {run_id}
    assert entries[0].action == "run.started"
    assert entries[0].facts["user"] == "ann"
    assert entries[-1].action == "run.finished"
    ended = [entry.facts for entry in entries if entry.action == "call.ended"]
    assert [(facts["tool"], facts["state"], facts["error"]) for facts in ended] == [
        ("put", "done", None),
        ("put", "not_started", "invalid_arguments"),
        ("nothing", "not_started", "unknown_tool"),
    ]
    assert ended[0]["approved_by"] == "approve_all"
    exported = b"".join(map(export_entry, entries)).decode()
    assert SECRET not in exported
    assert ended[0]["arguments_hmac"] == store.keyed_hash(
        json.dumps({"name": SECRET}, separators=(",", ":")).encode()
    )
    assert [json.loads(line)["index"] for line in exported.splitlines()] == list(range(len(entries)))


async def test_an_untouched_table_holds(store: SqliteStore, tmp_path: Path) -> None:
    await run(store)
    last = store.last_audit()
    assert last is not None
    path = tmp_path / "checkpoints"
    append_checkpoint(sign(last, store.key), path)
    await run(store)
    assert verify(store.audit_entries(), read_checkpoints(path), store.key) == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE audit SET action = 'other' WHERE idx = 1", "entry 1 was changed"),
        ("UPDATE audit SET facts = '{}' WHERE idx = 2", "entry 2 was changed"),
        ("UPDATE audit SET at = 0 WHERE idx = 2", "entry 2 was changed"),
        ("DELETE FROM audit WHERE idx = 1", "entries 1 to 1 are missing"),
        ("DELETE FROM audit WHERE idx = 0", "entries 0 to 0 are missing"),
        ("DELETE FROM audit WHERE idx > 1", "the end is cut off: 2 entries are left"),
    ],
)
async def test_changes_gaps_and_a_cut_off_end_are_found(
    store: SqliteStore, statement: str, said: str
) -> None:
    await run(store)
    last = store.last_audit()
    assert last is not None
    checkpoint = sign(last, store.key)
    tamper(store, statement)
    problems = verify(store.audit_entries(), [checkpoint], store.key)
    assert any(said in problem for problem in problems), problems


async def test_a_chain_written_anew_does_not_fit_its_checkpoint(store: SqliteStore, tmp_path: Path) -> None:
    await run(store)
    last = store.last_audit()
    assert last is not None
    checkpoint = sign(last, store.key)
    other = SqliteStore(tmp_path / "other.db")
    await run(other)
    problems = verify(other.audit_entries(), [checkpoint], store.key)
    assert any("written anew" in problem for problem in problems)
    assert any("not signed with this key" in each for each in verify([], [checkpoint], other.key))
    other.close()


def test_a_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    first = AuditKey.beside(path)
    assert first.hash(b"x") == AuditKey.beside(path).hash(b"x")
    key = tmp_path / "runs.db.key"
    assert key.stat().st_mode & 0o077 == 0
    key.write_bytes(b"short")
    with pytest.raises(StoreError, match="not an audit key"):
        AuditKey.beside(path)
    with pytest.raises(StoreError, match="cannot be used"):
        AuditKey.beside(tmp_path / "missing" / "runs.db")


async def test_statistics_show_what_is_never_called_misnamed_or_refused(store: SqliteStore) -> None:
    await run(store)
    await run(store, approve=False)
    found = {
        row["tool"]: row
        for row in (each.summary() for each in collect_stats(store.audit_entries(), ["other"]))
    }
    assert found["put"]["calls"] == 4
    assert found["put"]["done"] == 1
    assert found["put"]["denied"] == 1
    assert found["put"]["arguments_refused"] == 2
    assert found["nothing"]["misnamed"] == 2
    assert found["other"]["calls"] == 0


async def test_an_effect_that_did_not_end_in_time_counts_as_a_timeout(store: SqliteStore) -> None:
    @tool(effects="once", timeout_s=0.01)
    async def stuck() -> None:
        """Never end."""
        await asyncio.get_running_loop().create_future()

    async with Executor(
        [stuck], backend=GuestBackend(sequence(("stuck", {}))), store=store, approver=approve_all
    ) as executor:
        await executor.run("x")
    (found,) = (each.summary() for each in collect_stats(store.audit_entries()))
    assert (found["timeouts"], found["unknown"], found["failed"]) == (1, 1, 0)


async def test_it_tells_for_whom_under_which_rule_and_what_exactly_ran(store: SqliteStore) -> None:
    policy = Policy.parse("version: 1\nrules: [{id: names, effect: allow, match: {tool: put}}]")
    user = User(name="ann", tenant="acme")
    guest = sequence(("put", {"name": "x"}), ("nothing", {}))
    async with Executor(
        [put], backend=GuestBackend(guest), store=store, policy=policy, user=user
    ) as executor:
        await executor.run("x")
    started, known, unknown = (
        entry.facts for entry in store.audit_entries() if entry.action in ("run.started", "call.ended")
    )
    assert (started["user"], started["tenant"]) == ("ann", "acme")
    assert (known["rules"], known["tool_digest"]) == (["names"], put.digest)
    assert (unknown["rules"], unknown["tool_digest"]) == ([], None)


def test_percentiles_are_values_that_occurred() -> None:
    assert percentile([], 95) == 0
    assert percentile([3, 1, 2], 50) == 2
    assert percentile(list(range(1, 101)), 95) == 95
