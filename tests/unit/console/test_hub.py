"""What streams are told of approvals that are not pending any more."""

from __future__ import annotations

import pytest

from bascule.bridge.approvals_table import ApprovalMove
from bascule.bridge.memory_store import MemoryStore
from bascule.console.hub import Hub
from tests.unit.bridge.cards import make_record

pytestmark = pytest.mark.anyio


async def test_a_stream_learns_what_left_since_it_last_looked() -> None:
    store = MemoryStore()
    records = [make_record() for _ in range(5)]
    store.approvals.insert(*records)
    hub = Hub(store, subscribers=1)
    await hub.look()
    seen = hub.looks
    assert hub.left_since(seen) == frozenset()
    for record in records[:2]:
        store.approvals.move(ApprovalMove(id=record.id, version=1, state="approved"))
        await hub.look()
    await hub.look()
    assert hub.left_since(seen) == frozenset(record.id for record in records[:2])
    assert hub.left_since(seen + 1) == frozenset({records[1].id})
    assert hub.left_since(hub.looks) == frozenset()
    assert hub.pending_ids == {record.id for record in records[2:]}


async def test_a_stream_that_slept_for_too_long_is_told_to_compare_by_itself() -> None:
    hub = Hub(MemoryStore(), subscribers=1)
    await hub.look()
    seen = hub.looks
    while hub.left_since(seen) is not None:
        assert hub.looks < 1000
        await hub.look()
    assert hub.left_since(hub.looks - 1) == frozenset()
