"""When a suspended run can go on: its timer is due, somebody decided or answered, or asked for its end."""

from __future__ import annotations

import time
from typing import Final

from bascule.bridge.store import LEASE_S, RunRecord, Store

PENDING: Final = "pending"
"""State of an approval that nobody has decided yet."""


def is_due(store: Store, record: RunRecord) -> bool:
    """Return whether a suspended run has something to go on with."""
    if record.cancel_requested or not (record.waits or record.wake_at):
        return True
    if record.wake_at is not None and record.wake_at <= time.time():
        return True
    return any(_has_ended(store, record.run_id, wait) for wait in record.waits)


async def wait_until_due(store: Store, run_id: str) -> None:
    """Return once a suspended run can go on, or is not suspended any more."""
    while True:
        record = store.run(run_id)
        if record is None or record.status != "suspended" or is_due(store, record):
            return
        left_s = LEASE_S if record.wake_at is None else record.wake_at - time.time()
        await store.changed(min(max(left_s, 0.0), LEASE_S))


def due_runs(store: Store) -> list[str]:
    """Return the runs that can go on now and that nobody works on, dead workers' runs among them."""
    found: list[str] = []
    for run_id in store.resumable():
        record = store.run(run_id)
        if record is not None and (record.status == "running" or is_due(store, record)):
            found.append(run_id)
    return found


def _has_ended(store: Store, run_id: str, wait: str) -> bool:
    kind, _, what = wait.partition(":")
    if kind == "answer":
        seq, _, attempt = what.partition(".")
        return store.find_answer(run_id, int(seq), int(attempt)) is not None
    approval = store.approvals.get(what)
    return approval is None or approval.state != PENDING
