"""The journal of one run in a SQLite store, and what one transaction of it does.

Every transaction reads the run's row first: its epoch must still be the one this journal was opened with.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bascule.bridge.approvals_table import (
    ApprovalConflict,
    ApprovalMove,
    ApprovalRecord,
    Reservation,
    ReservationRefused,
)
from bascule.bridge.errors import LeaseLost, RunBusy
from bascule.bridge.journal import (
    GENESIS,
    PAYLOAD_DIGEST,
    EventKind,
    Fact,
    JournalEntry,
    chain,
    digest_of,
    encode_facts,
)
from bascule.bridge.noted import Batch, Noted, NotedEvent
from bascule.bridge.rates import Rate, RateFull
from bascule.bridge.sqlite_audit import append_audits
from bascule.bridge.sqlite_budgets import reserve_all
from bascule.bridge.sqlite_rates import take_places
from bascule.bridge.sqlite_rows import APPROVAL_COLUMNS, RUN_COLUMNS, write_approval, write_run
from bascule.bridge.store import BLOB_BYTES, LEASE_S, RunRecord

if TYPE_CHECKING:
    from bascule.bridge.sqlite_store import SqliteStore


class SqliteJournal(Noted):
    """See `bascule.bridge.journal.Journal`.

    Args:
        new: the row to be added by the first transaction, None for a run that is there.
        epoch: the lease's; 0 for reading only.
    """

    def __init__(self, store: SqliteStore, run_id: str, *, epoch: int, new: RunRecord | None = None) -> None:
        super().__init__(run_id)
        self._store = store
        self._new = new
        self._under_way = 0
        self._end: tuple[int, str] | None = None
        self.epoch = epoch

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """See `Journal.entries`."""
        written = self._store.read_entries(self.run_id)
        start = len(written)
        return (
            *written,
            *(
                JournalEntry(start + n, event.kind, event.at, event.facts, event.payload)
                for n, event in enumerate(self.events)
            ),
        )

    async def flush(self) -> None:
        """See `Journal.flush`."""
        batch = self.take()
        if batch.empty and self._new is None:
            return
        if not self._under_way:
            made, _ = self._store.writer.try_now(lambda connection: self.write_batch(connection, batch))
            if made:
                self._end = batch.end
                return
        await self._run(batch)

    async def commit(
        self,
        *,
        insert: Sequence[ApprovalRecord] = (),
        move: Sequence[ApprovalMove] = (),
        reserve: Sequence[Reservation] = (),
        rates: Sequence[Rate] = (),
        event: tuple[EventKind, Mapping[str, Fact], bytes | None] | None = None,
        durable: bool = True,
    ) -> None:
        """See `Journal.commit`."""
        batch = self.take()
        batch.durable = durable
        batch.insert, batch.move, batch.reserve, batch.rates = insert, move, reserve, rates
        if event is not None:
            batch.event = NotedEvent(event[0], time.time(), event[1], event[2])
        await self._run(batch)
        if batch.tells_others:
            self._store.tell()

    async def leave(self, record: RunRecord) -> None:
        """Commit together with the row as the run is left."""
        batch = self.take()
        batch.durable = True
        batch.row = record
        await self._run(batch)

    async def _run(self, batch: Batch) -> None:
        self._under_way += 1
        try:
            refused = await self._store.writer.run(
                lambda connection: self.write_batch(connection, batch), durable=batch.durable
            )
        finally:
            self._under_way -= 1
        self._end = batch.end if not self._under_way else None
        if refused is not None:
            raise refused

    def write_batch(self, connection: sqlite3.Connection, batch: Batch) -> Exception | None:
        """Write a batch; what was noted is kept even if the changes that came with it are impossible."""
        run, index, previous = self._hold(connection)
        self._end = None  # known again once the transaction has been made
        events = batch.events
        refused: Exception | None = None
        if batch.insert or batch.move or batch.reserve or batch.rates or batch.event is not None:
            connection.execute("SAVEPOINT changes")
            try:
                move_approvals(connection, batch.move)
                reserve_all(connection, batch.reserve)
                take_places(connection, batch.rates)
                insert_approvals(connection, batch.insert)
                if batch.event is not None:
                    events = [*events, batch.event]
            except (ApprovalConflict, ReservationRefused, RateFull) as error:
                connection.execute("ROLLBACK TO changes")
                refused = error
            connection.execute("RELEASE changes")
        rows: list[tuple[object, ...]] = []
        for event in events:
            facts, inline = _settle(connection, run, event)
            previous = chain(previous, index, event.kind, event.at, facts)
            rows.append((run, index, str(event.kind), event.at, facts, inline, previous))
            index += 1
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        if batch.durable:
            connection.execute("UPDATE runs SET events = ?, hash = ? WHERE id = ?", (index, previous, run))
        append_audits(connection, batch.audits)
        if batch.row is not None:
            _leave(connection, run, batch.row)
        batch.end = (index, previous)
        return refused

    def _hold(self, connection: sqlite3.Connection) -> tuple[int, int, str]:
        if self._new is not None:
            values = write_run(
                self._new, owner=self._store.owner, epoch=self.epoch, lease_until=time.time() + LEASE_S
            )
            try:
                connection.execute(
                    f"INSERT INTO runs ({RUN_COLUMNS}, events, hash) VALUES ({'?, ' * 17}0, '{GENESIS}')",
                    values,
                )
            except sqlite3.IntegrityError as error:
                raise RunBusy(
                    "run_exists", f"there is a run {self.run_id} already; a new one needs a name of its own"
                ) from error
            self._new = None
        row = connection.execute("SELECT id, epoch FROM runs WHERE run_id = ?", (self.run_id,)).fetchone()
        if row is None or row[1] != self.epoch:
            raise LeaseLost(self.run_id)
        if self._end is not None:
            return row[0], *self._end
        last = connection.execute(
            "SELECT idx, hash FROM events WHERE run = ? ORDER BY idx DESC LIMIT 1", (row[0],)
        ).fetchone()
        return (row[0], 0, GENESIS) if last is None else (row[0], last[0] + 1, last[1])


def insert_approvals(connection: sqlite3.Connection, records: Sequence[ApprovalRecord]) -> None:
    """Add approval records."""
    if records:
        connection.executemany(
            f"INSERT INTO approvals ({APPROVAL_COLUMNS}) VALUES ({', '.join('?' * 11)})",
            [write_approval(record) for record in records],
        )


def move_approvals(connection: sqlite3.Connection, moves: Sequence[ApprovalMove]) -> None:
    """Make compare-and-set moves.

    Raises:
        ApprovalConflict: one is impossible; the transaction must be rolled back.
    """
    for move in moves:
        done = connection.execute(
            "UPDATE approvals SET state = ?, version = version + 1, updated_at = ?, body = coalesce(?, body),"
            " digest = coalesce(?, digest),"
            " expires_at = CASE WHEN ? THEN expires_at ELSE ? END WHERE id = ? AND version = ?",
            (
                move.state,
                time.time(),
                move.body,
                move.digest,
                move.keep_expiry,
                move.expires_at,
                move.id,
                move.version,
            ),
        )
        if done.rowcount != 1:
            raise ApprovalConflict(move.id)


def _settle(connection: sqlite3.Connection, run: int, event: NotedEvent) -> tuple[bytes, bytes | None]:
    """Return an event's facts as bytes, and its payload if it is kept beside them."""
    payload = event.payload
    if payload is None:
        return encode_facts(event.facts), None
    digest = digest_of(payload)
    facts = encode_facts({**event.facts, PAYLOAD_DIGEST: digest})
    if len(payload) <= BLOB_BYTES:
        return facts, payload
    connection.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?, ?)", (run, digest, payload))
    return facts, None


def _leave(connection: sqlite3.Connection, run: int, record: RunRecord) -> None:
    left = replace(record, updated_at=time.time())
    connection.execute(
        "UPDATE runs SET status = ?, updated_at = ?, outcome = ?, owner = '', lease_until = 0, wake_at = ?,"
        " reason = ?, waits = ? WHERE id = ?",
        (left.status, left.updated_at, left.outcome, left.wake_at, left.reason, " ".join(left.waits), run),
    )
