"""How a run waits for decisions: each is seen, and many of them do not cost a look at all of them each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bascule.bridge.approvals_table import ApprovalMove, ApprovalRecord
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.store import Store
from bascule.bridge.watch import Watch

pytestmark = pytest.mark.anyio

MANY = 300


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "runs.db")
    yield made
    made.close()


def pending(name: str, *, run_id: str = "run-1", expires_at: float | None = None) -> ApprovalRecord:
    return ApprovalRecord(
        id=name, run_id=run_id, seq=1, state="pending", digest="d", body=b"{}", created_at=time.time(),
        expires_at=expires_at,
    )  # fmt: skip


async def test_every_decision_is_seen_and_many_are_seen_together(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()  # no flush to disk, so that decisions come faster than looks may
    names = [f"a{number}" for number in range(MANY)]
    store.approvals.insert(*map(pending, names))
    watch = Watch(store, remind=lambda _: None)
    looks: list[int] = []
    looked = asyncio.Event()
    find = store.approvals.find

    def counted(**asked: object) -> list[ApprovalRecord]:
        found = find(**asked)  # type: ignore[arg-type]
        looks.append(len(found))
        looked.set()
        return found

    monkeypatch.setattr(store.approvals, "find", counted)
    waiting = [asyncio.create_task(watch.decided(name)) for name in names]
    await looked.wait()
    for name in names:
        store.approvals.move(ApprovalMove(id=name, version=1, state="approved"))
        await asyncio.sleep(0.001)
    async with asyncio.timeout(30):
        seen = await asyncio.gather(*waiting)
    assert [(each.id, each.state) for each in seen] == [(name, "approved") for name in names]
    assert sum(looks) < MANY * MANY / 4, "one look at everything per decision reads about MANY² / 2 records"


async def test_only_what_is_waited_for_is_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.approvals.insert(
        *(pending(f"other{number}", run_id=f"run-{number % 3}") for number in range(100)), pending("mine")
    )
    found: list[str] = []
    looked = asyncio.Event()
    find = store.approvals.find

    def noted(**asked: object) -> list[ApprovalRecord]:
        records = find(**asked)  # type: ignore[arg-type]
        found.extend(each.id for each in records)
        looked.set()
        return records

    monkeypatch.setattr(store.approvals, "find", noted)
    waiting = asyncio.create_task(Watch(store, remind=lambda _: None).decided("mine"))
    await looked.wait()
    store.approvals.move(ApprovalMove(id="mine", version=1, state="rejected"))
    async with asyncio.timeout(30):
        assert (await waiting).state == "rejected"
    assert set(found) == {"mine"}


async def test_one_that_is_over_expires_while_others_are_waited_for(store: Store) -> None:
    store.approvals.insert(pending("soon", expires_at=time.time() + 0.1), pending("never"))
    watch = Watch(store, remind=lambda _: None)
    never = asyncio.create_task(watch.decided("never"))
    async with asyncio.timeout(30):
        assert (await watch.decided("soon")).state == "expired"
    assert not never.done()
    never.cancel()
