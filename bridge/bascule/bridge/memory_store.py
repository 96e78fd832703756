"""The store of an executor that was given none: everything in memory, nothing outlives the process.

The newest finished runs are kept with script and result, without the values of their calls; unfinished ones
are kept whole, so that a suspended run can be resumed within the process.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bascule.bridge.approvals_table import (
    Reservation,
    ReservationRefused,
)
from bascule.bridge.audit_chain import AuditChain
from bascule.bridge.errors import LeaseLost, RunBusy, RunNotFound
from bascule.bridge.history import StartedRun, read_started
from bascule.bridge.journal import EventKind, Fact, Journal, JournalEntry
from bascule.bridge.memory_approvals import MemoryApprovals
from bascule.bridge.memory_artifacts import MemoryArtifacts
from bascule.bridge.memory_journal import MemoryJournal
from bascule.bridge.noted import Batch, NotedAudit, NotedEvent
from bascule.bridge.rates import MemoryRates, RateTable
from bascule.bridge.store import Answer, AuditEntry, RunRecord, RunStatus, Store
from bascule.bridge.waiters import Waiters

KEPT_RUNS: Final = 32
"""Journals of finished runs that are kept, the newest ones."""

KEPT_AUDIT_ENTRIES: Final = 10_000
"""Audit entries that are kept, the newest ones."""


class MemoryStore:
    """See `bascule.bridge.store.Store`. Use it from one thread or one event loop at a time.

    Args:
        kept_runs: finished runs that are kept.
        keep_values: keep the values of their calls, too, so that they can be recorded.
        counted_by: the store that counts budgets and starts of rate-limited tools, where that is another one.
    """

    durable = False

    def __init__(
        self, *, kept_runs: int = KEPT_RUNS, keep_values: bool = False, counted_by: Store | None = None
    ) -> None:
        self._keep_values = keep_values
        self._kept_runs = kept_runs
        self._rows: dict[str, RunRecord] = {}
        self._events: dict[str, list[NotedEvent]] = {}
        self._finished: dict[str, None] = {}
        self._answers: dict[tuple[str, int, int], Answer] = {}
        self._counters: dict[str, tuple[float, float]] = {}
        self._audit: list[AuditEntry] = []
        self._chain = AuditChain()
        self._waiters = Waiters()
        self._key = secrets.token_bytes(32)
        self.approvals = MemoryApprovals(self)
        self.artifacts = MemoryArtifacts()
        self._counted_by = counted_by
        self.rates: RateTable = MemoryRates() if counted_by is None else counted_by.rates

    def open_journal(self, record: RunRecord) -> MemoryJournal:
        """See `Store.open_journal`."""
        if record.run_id in self._rows:
            raise RunBusy(
                "run_exists", f"there is a run {record.run_id} already; a new one needs a name of its own"
            )
        events: list[NotedEvent] = []
        self._rows[record.run_id] = replace(record, epoch=1)
        self._events[record.run_id] = events
        return MemoryJournal(self, record.run_id, 1, events)

    def take_lease(self, run_id: str) -> MemoryJournal:
        """See `Store.take_lease`."""
        row = self._row(run_id)
        if row.status == "finished":
            raise RunBusy("run_finished", f"{run_id} is finished: {row.outcome}")
        if row.status == "running" and row.owner:
            raise RunBusy("run_busy", f"{run_id} is being worked on in this process")
        self._rows[run_id] = replace(
            row, status="running", owner="here", epoch=row.epoch + 1, wake_at=None, waits=()
        )
        return MemoryJournal(self, run_id, row.epoch + 1, self._events[run_id])

    def renew(self, journal: Journal) -> bool:
        """See `Store.renew`."""
        row = self._rows.get(journal.run_id)
        if row is None or not isinstance(journal, MemoryJournal) or row.epoch != journal.epoch:
            raise LeaseLost(journal.run_id)
        return row.cancel_requested

    async def release(self, journal: Journal, record: RunRecord) -> None:
        """See `Store.release`."""
        assert isinstance(journal, MemoryJournal)
        batch = journal.take()
        batch.row = record
        self.write(journal, batch)

    def write(self, journal: MemoryJournal, batch: Batch) -> None:
        """Make one transaction."""
        row = self._rows.get(journal.run_id)
        if row is None or row.epoch != journal.epoch:
            raise LeaseLost(journal.run_id)
        journal.written.extend(batch.events)
        for audit in batch.audits:
            self._add_audit(audit)
        self.approvals.check(batch.move)
        totals = self._total(batch.reserve)
        self.rates.take(batch.rates)
        self._raise(batch.reserve, totals)
        self.approvals.apply(batch.move)
        if batch.insert:
            self.approvals.insert(*batch.insert)
        if batch.event is not None:
            journal.written.append(batch.event)
        if batch.row is not None:
            self._leave(batch.row, row)
        if batch.tells_others:
            self.tell()

    def journal(self, run_id: str) -> MemoryJournal | None:
        """See `Store.journal`."""
        events = self._events.get(run_id)
        return None if events is None else MemoryJournal(self, run_id, 0, events)

    def run(self, run_id: str) -> RunRecord | None:
        """See `Store.run`."""
        return self._rows.get(run_id)

    def runs(
        self,
        *,
        status: RunStatus | None = None,
        session: str | None = None,
        limit: int = 100,
        user: str | None = None,
        before: str | None = None,
    ) -> list[RunRecord]:
        """See `Store.runs`."""
        known = list(self._rows.values())
        if before is not None:
            ids = list(self._rows)
            known = known[: ids.index(before)] if before in ids else []
        rows = [
            row
            for row in known
            if (status is None or row.status == status) and (user is None or row.user == user)
        ]
        if session is not None:
            return sorted((row for row in rows if row.session == session), key=lambda row: row.ordinal)
        return rows[::-1][:limit]

    def started(self, run_id: str) -> StartedRun | None:
        """See `Store.started`."""
        events = self._events.get(run_id)
        return read_started(events[0].payload) if events else None

    def resumable(self) -> list[str]:
        """See `Store.resumable`."""
        return [row.run_id for row in self._rows.values() if row.status == "suspended"]

    def request_cancel(self, run_id: str) -> bool:
        """See `Store.request_cancel`."""
        row = self._rows.get(run_id)
        if row is None or row.status == "finished":
            return False
        self._rows[run_id] = replace(row, cancel_requested=True)
        self.tell()
        return True

    def answer(self, run_id: str, seq: int, attempt: int, answer: Answer) -> bool:
        """See `Store.answer`."""
        if (run_id, seq, attempt) in self._answers:
            return False
        self._answers[run_id, seq, attempt] = answer
        self.append_audit("run.resolved", {"seq": seq, "answer": answer.kind, "by": answer.by}, run_id=run_id)
        self.tell()
        return True

    def find_answer(self, run_id: str, seq: int, attempt: int) -> Answer | None:
        """See `Store.find_answer`."""
        return self._answers.get((run_id, seq, attempt))

    def counter(self, key: str) -> float:
        """See `Store.counter`."""
        if self._counted_by is not None:
            return self._counted_by.counter(key)
        used, until = self._counters.get(key, (0.0, 0.0))
        return used if until > time.time() else 0.0

    def reserve(self, reservations: Sequence[Reservation]) -> None:
        """See `Store.reserve`."""
        self._raise(reservations, self._total(reservations))

    def append_audit(self, action: str, facts: Mapping[str, Fact], *, run_id: str | None = None) -> None:
        """See `Store.append_audit`."""
        self._add_audit(NotedAudit(action, time.time(), run_id, facts))

    def audit_entries(self, *, after: int = -1) -> Iterable[AuditEntry]:
        """See `Store.audit_entries`."""
        return [entry for entry in self._audit if entry.index > after]

    def keyed_hash(self, data: bytes) -> str:
        """See `Store.keyed_hash`; the key ends with the process."""
        return hashlib.blake2b(data, digest_size=32, key=self._key).hexdigest()

    def import_run(self, record: RunRecord, entries: Iterable[JournalEntry]) -> None:
        """See `Store.import_run`."""
        self._rows[record.run_id] = record
        self._events[record.run_id] = [
            NotedEvent(entry.kind, entry.at, entry.facts, entry.payload) for entry in entries
        ]

    def prune(self, *, before: float) -> int:
        """See `Store.prune`: of finished runs little more than the result is kept here, and not long."""
        return 0

    async def changed(self, timeout_s: float) -> None:
        """See `Store.changed`."""
        await self._waiters.wait(timeout_s)

    def close(self) -> None:
        """Do nothing: the memory goes with the object."""

    def tell(self) -> None:
        """Wake whoever waits for a change."""
        self._waiters.wake()

    def _row(self, run_id: str) -> RunRecord:
        row = self._rows.get(run_id)
        if row is None:
            raise RunNotFound(run_id)
        return row

    def _total(self, reservations: Sequence[Reservation]) -> dict[str, float]:
        totals: dict[str, float] = {}
        for each in reservations:
            total = totals.get(each.key, self.counter(each.key)) + each.amount
            if each.amount > 0 and total > each.maximum:
                raise ReservationRefused(each.key, total - each.amount)
            totals[each.key] = total
        return totals

    def _raise(self, reservations: Sequence[Reservation], totals: Mapping[str, float]) -> None:
        if self._counted_by is not None:
            self._counted_by.reserve(reservations)
            return
        for each in reservations:
            self._counters[each.key] = (totals[each.key], each.expires_at)

    def _leave(self, left: RunRecord, row: RunRecord) -> None:
        self._rows[left.run_id] = replace(
            left, epoch=row.epoch, owner="", cancel_requested=row.cancel_requested
        )
        if left.status != "finished":
            return
        if not self._keep_values and left.session is None:
            for event in self._events[left.run_id]:
                if event.kind not in (EventKind.RUN_STARTED, EventKind.FINISHED):
                    event.payload = None
        self._finished[left.run_id] = None
        while len(self._finished) > self._kept_runs:
            oldest = next(iter(self._finished))
            del self._finished[oldest], self._rows[oldest], self._events[oldest]
            self.approvals.forget(oldest)

    def _add_audit(self, audit: NotedAudit) -> None:
        self._audit.append(self._chain.link(audit))
        if len(self._audit) > 2 * KEPT_AUDIT_ENTRIES:
            del self._audit[:-KEPT_AUDIT_ENTRIES]
