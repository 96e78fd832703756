"""Retention: what runs of the past held is gone, from the rows and from the file; what proves them stays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bascule.bridge import ApprovalRequest, Decision, Executor, Policy
from bascule.bridge.approval_card import DROPPED, read_card
from bascule.bridge.audit_check import verify
from bascule.bridge.sqlite_store import SqliteStore
from bascule.tools import tool
from tests.unit.bridge.guests import GuestBackend, calls

pytestmark = pytest.mark.anyio

RULES = """
version: 1
rules:
  - {id: r, effect: ask, match: {tool: put},
     approval: {may: [approve, edit, reject, respond], editable: [value], grantable: [args_in_run]}}
"""
ASKED, EDITED, ANSWERED, RETURNED = "asked-for-this", "edited-to-that", "answered-so", "returned-it"


@tool(effects="once")
def put(value: str) -> str:
    """Put."""
    return RETURNED


def approver(request: ApprovalRequest) -> Decision:
    if request.seq == 1:
        return Decision(verdict="edit", by="olga", arguments={"value": EDITED})
    if request.seq == 2:
        return Decision(verdict="respond", by="olga", response=ANSWERED)
    return Decision(verdict="approve", by="olga", grant="args_in_run")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "runs.db")
    yield opened
    opened.close()


async def run(store: SqliteStore) -> str:
    guest = calls(*(("put", {"value": f"{ASKED} {number}"}) for number in range(3)))
    async with Executor(
        [put], store=store, policy=Policy.parse(RULES), approver=approver, backend=GuestBackend(guest)
    ) as executor:
        return (await executor.run("put('a secret of the script')")).run_id


def what_is_left(folder: Path) -> list[str]:
    """Return the values that still stand anywhere in the store's files."""
    data = b"".join(file.read_bytes() for file in folder.iterdir())
    values = (ASKED, EDITED, ANSWERED, RETURNED, "a secret of the script")
    return [value for value in values if value.encode() in data]


async def test_no_value_of_an_old_run_stands_in_the_files_any_more(
    store: SqliteStore, tmp_path: Path
) -> None:
    run_id = await run(store)
    assert len(what_is_left(tmp_path)) == 5
    before = [(each.id, each.digest, each.state) for each in store.approvals.find(run_id=run_id)]
    assert store.prune(before=time.time() + 1) == 1
    assert what_is_left(tmp_path) == []
    records = store.approvals.find(run_id=run_id)
    assert [(each.id, each.digest, each.state) for each in records] == before
    for card in map(read_card, records):
        assert card.arguments == DROPPED
        assert [voice.by for voice in card.voices] == ["olga"]
    journal = store.journal(run_id)
    assert journal is not None
    assert all(entry.payload is None for entry in journal.entries)
    assert verify(store.audit_entries(), (), store.key) == []


async def test_it_is_said_in_the_audit_table_and_done_once(store: SqliteStore) -> None:
    await run(store)
    until = time.time() + 1
    assert store.prune(before=until) == 1
    assert store.prune(before=until) == 0
    entries = [entry for entry in store.audit_entries() if entry.action == "runs.pruned"]
    assert [entry.facts for entry in entries] == [{"runs": 1, "before": until}]


async def test_runs_that_are_younger_or_not_finished_keep_everything(
    store: SqliteStore, tmp_path: Path
) -> None:
    began = time.time()
    await run(store)
    assert store.prune(before=began) == 0
    assert len(what_is_left(tmp_path)) == 5
