"""The approvals table of a SQLite store."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from bascule.bridge.approvals_table import ApprovalMove, ApprovalRecord
from bascule.bridge.journal import Fact
from bascule.bridge.noted import NotedAudit
from bascule.bridge.sqlite_audit import append_audits
from bascule.bridge.sqlite_journal import insert_approvals, move_approvals
from bascule.bridge.sqlite_rows import APPROVAL_COLUMNS, read_approval

if TYPE_CHECKING:
    from bascule.bridge.sqlite_store import SqliteStore


class SqliteApprovals:
    """See `bascule.bridge.approvals_table.ApprovalTable`."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def get(self, approval_id: str) -> ApprovalRecord | None:
        """See `ApprovalTable.get`."""
        rows = self._store.read(f"SELECT {APPROVAL_COLUMNS} FROM approvals WHERE id = ?", approval_id)
        return read_approval(rows[0]) if rows else None

    def find(
        self,
        *,
        run_id: str | None = None,
        seq: int | None = None,
        states: Collection[str] = (),
        limit: int = 1000,
        newest: bool = False,
        before: str | None = None,
        ids: Collection[str] | None = None,
    ) -> list[ApprovalRecord]:
        """See `ApprovalTable.find`."""
        conditions: list[str] = []
        values: list[object] = []
        if ids is not None:
            # One value however many ids: one statement for all, and no limit on variables.
            conditions.append("id IN (SELECT value FROM json_each(?))")
            # None of ours has a NUL, at which JSON texts end for SQLite.
            values.append(json.dumps([each for each in ids if "\0" not in each]))
        if run_id is not None:
            conditions.append("run_id = ?")
            values.append(run_id)
        if seq is not None:
            conditions.append("seq = ?")
            values.append(seq)
        if states:
            # Of some ids the state is looked up: its index would have all that was ever decided read.
            column = "state" if ids is None else "+state"
            conditions.append(f"{column} IN ({', '.join('?' * len(states))})")
            values.extend(states)
        if before is not None:
            conditions.append("(created_at, id) < (SELECT created_at, id FROM approvals WHERE id = ?)")
            values.append(before)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = self._store.read(
            f"SELECT {APPROVAL_COLUMNS} FROM approvals{where}"
            f" ORDER BY created_at {'DESC' if newest else 'ASC'}, id {'DESC' if newest else 'ASC'} LIMIT ?",
            *values,
            limit,
        )
        return [read_approval(row) for row in rows]

    def versions(self, state: str, *, limit: int) -> dict[str, int]:
        """See `ApprovalTable.versions`."""
        return dict(
            self._store.read(
                "SELECT id, version FROM approvals WHERE state = ? ORDER BY created_at LIMIT ?", state, limit
            )
        )

    def insert(self, *records: ApprovalRecord) -> None:
        """See `ApprovalTable.insert`."""
        self._store.write(lambda connection: insert_approvals(connection, records))
        self._store.tell()

    def move(self, *moves: ApprovalMove, audit: Mapping[str, Fact] | None = None) -> None:
        """See `ApprovalTable.move`."""

        def work(connection: sqlite3.Connection) -> None:
            move_approvals(connection, moves)
            if audit is not None:
                facts = dict(audit)
                action = str(facts.pop("action", "approval.moved"))
                run = connection.execute(
                    "SELECT run_id FROM approvals WHERE id = ?", (moves[0].id if moves else "",)
                ).fetchone()
                append_audits(connection, [NotedAudit(action, time.time(), run and run[0], facts)])

        self._store.write(work)
        self._store.tell()
