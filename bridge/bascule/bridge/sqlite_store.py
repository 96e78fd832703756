"""The store in one SQLite file: for runs that outlive a process, on one machine.

Several processes may use the file at once: one works on a run while a command line lists it or decides about
it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from bascule.bridge.approvals_table import Reservation
from bascule.bridge.audit_key import AuditKey
from bascule.bridge.errors import LeaseLost, RunBusy, RunNotFound
from bascule.bridge.history import StartedRun, read_started
from bascule.bridge.journal import PAYLOAD_DIGEST, Fact, Journal, JournalEntry
from bascule.bridge.noted import NotedAudit, NotedEvent
from bascule.bridge.rates import RateTable
from bascule.bridge.sqlite_approvals import SqliteApprovals
from bascule.bridge.sqlite_artifacts import SqliteArtifacts
from bascule.bridge.sqlite_audit import append_audits
from bascule.bridge.sqlite_budgets import reserve_all
from bascule.bridge.sqlite_entries import read_entries
from bascule.bridge.sqlite_file import SqliteFile
from bascule.bridge.sqlite_journal import SqliteJournal
from bascule.bridge.sqlite_rates import SqliteRates
from bascule.bridge.sqlite_retention import prune_runs
from bascule.bridge.sqlite_rows import (
    RUN_COLUMNS,
    read_audit,
    read_run,
)
from bascule.bridge.store import LEASE_S, Answer, AuditEntry, RunRecord, RunStatus
from bascule.sandbox.owner import is_gone, own_name


class SqliteStore(SqliteFile):
    """See `bascule.bridge.store.Store`.

    Args:
        path: the file; created, readable for its owner only, when it is missing.

    Raises:
        StoreError: the file cannot be used.
    """

    durable = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self.owner = own_name()
        self.key = AuditKey.beside(self.path)
        self.approvals = SqliteApprovals(self)
        self.artifacts = SqliteArtifacts(self)
        self.rates: RateTable = SqliteRates(self)

    # ------------------------------------------------------------ runs

    def open_journal(self, record: RunRecord) -> SqliteJournal:
        """See `Store.open_journal`; the row is added by the journal's first transaction."""
        return SqliteJournal(self, record.run_id, epoch=1, new=record)

    def take_lease(self, run_id: str) -> SqliteJournal:
        """See `Store.take_lease`."""

        def work(connection: sqlite3.Connection) -> int:
            row = connection.execute(f"SELECT {RUN_COLUMNS} FROM runs WHERE run_id = ?", (run_id,)).fetchone()
            if row is None:
                raise RunNotFound(run_id)
            record = read_run(row)
            if record.status == "finished":
                raise RunBusy("run_finished", f"{run_id} is finished: {record.outcome}")
            if self._is_held(record):
                raise RunBusy("run_busy", f"{run_id} is being worked on by {record.owner}")
            connection.execute(
                "UPDATE runs SET status = 'running', owner = ?, epoch = ?, lease_until = ?, updated_at = ?,"
                " wake_at = NULL, reason = '', waits = '' WHERE run_id = ?",
                (self.owner, record.epoch + 1, time.time() + LEASE_S, time.time(), run_id),
            )
            return record.epoch + 1

        return SqliteJournal(self, run_id, epoch=self.write(work))

    def renew(self, journal: Journal) -> bool:
        """See `Store.renew`."""
        assert isinstance(journal, SqliteJournal)

        def work(connection: sqlite3.Connection) -> bool:
            row = connection.execute(
                "UPDATE runs SET lease_until = ? WHERE run_id = ? AND epoch = ? RETURNING cancel_requested",
                (time.time() + LEASE_S, journal.run_id, journal.epoch),
            ).fetchone()
            if row is None:
                raise LeaseLost(journal.run_id)
            return bool(row[0])

        return self.writer.run_now(work, False)

    async def release(self, journal: Journal, record: RunRecord) -> None:
        """See `Store.release`."""
        assert isinstance(journal, SqliteJournal)
        await journal.leave(record)

    def journal(self, run_id: str) -> SqliteJournal | None:
        """See `Store.journal`."""
        return None if self.run(run_id) is None else SqliteJournal(self, run_id, epoch=0)

    def run(self, run_id: str) -> RunRecord | None:
        """See `Store.run`."""
        rows = self.read(f"SELECT {RUN_COLUMNS} FROM runs WHERE run_id = ?", run_id)
        return read_run(rows[0]) if rows else None

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
        wanted: list[tuple[str, object]] = [
            ("status = ?", status),
            ("user = ?", user),
            ("session = ?", session),
            ("id < (SELECT id FROM runs WHERE run_id = ?)", before),
        ]
        given = [(condition, value) for condition, value in wanted if value is not None]
        where = f" WHERE {' AND '.join(condition for condition, _ in given)}" if given else ""
        order = "ordinal" if session is not None else f"id DESC LIMIT {int(limit)}"
        values = [value for _, value in given]
        rows = self.read(f"SELECT {RUN_COLUMNS} FROM runs{where} ORDER BY {order}", *values)
        return [read_run(row) for row in rows]

    def started(self, run_id: str) -> StartedRun | None:
        """See `Store.started`."""
        rows = self.read(
            "SELECT coalesce(payload, (SELECT value FROM blobs WHERE blobs.run = runs.id"
            f" AND sha256 = json_extract(CAST(facts AS TEXT), '$.{PAYLOAD_DIGEST}')))"
            " FROM events JOIN runs ON events.run = runs.id WHERE run_id = ? AND idx = 0",
            run_id,
        )
        return read_started(rows[0][0]) if rows else None

    def resumable(self) -> list[str]:
        """See `Store.resumable`."""
        rows = self.read(f"SELECT {RUN_COLUMNS} FROM runs WHERE status != 'finished' ORDER BY id")
        return [record.run_id for record in map(read_run, rows) if not self._is_held(record)]

    def request_cancel(self, run_id: str) -> bool:
        """See `Store.request_cancel`."""

        def work(connection: sqlite3.Connection) -> bool:
            done = connection.execute(
                "UPDATE runs SET cancel_requested = 1 WHERE run_id = ? AND status != 'finished'", (run_id,)
            )
            if done.rowcount:
                append_audits(connection, [NotedAudit("run.cancel_requested", time.time(), run_id, {})])
            return done.rowcount == 1

        asked = self.write(work)
        self.tell()
        return asked

    def answer(self, run_id: str, seq: int, attempt: int, answer: Answer) -> bool:
        """See `Store.answer`."""

        def work(connection: sqlite3.Connection) -> bool:
            done = connection.execute(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?)",
                (run_id, seq, attempt, answer.kind, answer.value, answer.by),
            )
            if done.rowcount == 1:
                facts: dict[str, Fact] = {"seq": seq, "answer": answer.kind, "by": answer.by}
                append_audits(connection, [NotedAudit("run.resolved", time.time(), run_id, facts)])
            return done.rowcount == 1

        first = self.write(work)
        self.tell()
        return first

    def find_answer(self, run_id: str, seq: int, attempt: int) -> Answer | None:
        """See `Store.find_answer`."""
        rows = self.read(
            "SELECT kind, value, by FROM answers WHERE run_id = ? AND seq = ? AND attempt = ?",
            *(run_id, seq, attempt),
        )
        return Answer(kind=rows[0][0], value=rows[0][1], by=rows[0][2]) if rows else None

    def counter(self, key: str) -> float:
        """See `Store.counter`."""
        rows = self.read("SELECT amount FROM counters WHERE key = ? AND expires_at > ?", *(key, time.time()))
        return float(rows[0][0]) if rows else 0.0

    def reserve(self, reservations: Sequence[Reservation]) -> None:
        """See `Store.reserve`."""
        self.write(lambda connection: reserve_all(connection, reservations))

    # ------------------------------------------------------------ audit and retention

    def append_audit(self, action: str, facts: Mapping[str, Fact], *, run_id: str | None = None) -> None:
        """See `Store.append_audit`."""
        audit = NotedAudit(action, time.time(), run_id, facts)
        self.write(lambda connection: append_audits(connection, [audit]))

    def audit_entries(self, *, after: int = -1) -> Iterator[AuditEntry]:
        """See `Store.audit_entries`; reads a thousand at a time."""
        while True:
            rows = self.read("SELECT * FROM audit WHERE idx > ? ORDER BY idx LIMIT 1000", after)
            if not rows:
                return
            for row in rows:
                entry, _ = read_audit(row)
                yield entry
                after = entry.index

    def last_audit(self) -> AuditEntry | None:
        """Return the newest audit entry."""
        rows = self.read("SELECT * FROM audit ORDER BY idx DESC LIMIT 1")
        return read_audit(rows[0])[0] if rows else None

    def keyed_hash(self, data: bytes) -> str:
        """See `Store.keyed_hash`."""
        return self.key.hash(data)

    def import_run(self, record: RunRecord, entries: Iterable[JournalEntry]) -> None:
        """See `Store.import_run`."""
        journal = SqliteJournal(self, record.run_id, epoch=1, new=replace(record, owner=""))
        batch = journal.take()
        batch.events = [NotedEvent(each.kind, each.at, each.facts, each.payload) for each in entries]
        batch.row, batch.durable = record, True
        self.write(lambda connection: journal.write_batch(connection, batch))

    def prune(self, *, before: float) -> int:
        """See `Store.prune`."""

        pruned = self.write(lambda connection: prune_runs(connection, before=before))
        if pruned:
            self.writer.fold()
        return pruned

    # ------------------------------------------------------------ for the journal

    def read_entries(self, run_id: str) -> tuple[JournalEntry, ...]:
        """Return the written events of a run, proven against their hash chain; see `read_entries`."""
        return read_entries(self, run_id)

    def _is_held(self, record: RunRecord) -> bool:
        return bool(record.owner) and record.lease_until > time.time() and not is_gone(record.owner)
