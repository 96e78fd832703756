"""The approvals table of the in-memory store."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bascule.bridge.approvals_table import ApprovalConflict, ApprovalMove, ApprovalRecord
from bascule.bridge.journal import Fact

if TYPE_CHECKING:
    from bascule.bridge.memory_store import MemoryStore


class MemoryApprovals:
    """Approvals as a dictionary."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._records: dict[str, ApprovalRecord] = {}
        self._of_run: dict[str, list[str]] = {}

    def get(self, approval_id: str) -> ApprovalRecord | None:
        """See `ApprovalTable.get`."""
        return self._records.get(approval_id)

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
        known = self._records if run_id is None else self._of_run.get(run_id, ())
        looked_at = (
            map(self._records.__getitem__, known)
            if ids is None
            else (self._records[each] for each in dict.fromkeys(ids) if each in self._records)
        )
        found = [
            record
            for record in looked_at
            if (run_id is None or record.run_id == run_id)
            and (seq is None or record.seq == seq)
            and (not states or record.state in states)
        ]
        if ids is not None:
            found.sort(key=lambda record: (record.created_at, record.id))
        if newest:
            found.sort(key=lambda record: (record.created_at, record.id), reverse=True)
        if before is not None:
            edge = self._records.get(before)
            found = (
                []
                if edge is None
                else [
                    record for record in found if (record.created_at, record.id) < (edge.created_at, edge.id)
                ]
            )
        return found[:limit]

    def versions(self, state: str, *, limit: int) -> dict[str, int]:
        """See `ApprovalTable.versions`."""
        return {each.id: each.version for each in self.find(states=(state,), limit=limit)}

    def insert(self, *records: ApprovalRecord) -> None:
        """See `ApprovalTable.insert`."""
        for record in records:
            self._records[record.id] = record
            self._of_run.setdefault(record.run_id, []).append(record.id)
        self._store.tell()

    def move(self, *moves: ApprovalMove, audit: Mapping[str, Fact] | None = None) -> None:
        """See `ApprovalTable.move`."""
        self.check(moves)
        self.apply(moves)
        if audit is not None:
            facts = dict(audit)
            action = str(facts.pop("action", "approval.moved"))
            run_id = self._records[moves[0].id].run_id if moves else None
            self._store.append_audit(action, facts, run_id=run_id)
        self._store.tell()

    def check(self, moves: Sequence[ApprovalMove]) -> None:
        """Raise ApprovalConflict unless all moves are possible."""
        for move in moves:
            record = self._records.get(move.id)
            if record is None or record.version != move.version:
                raise ApprovalConflict(move.id)

    def apply(self, moves: Sequence[ApprovalMove]) -> None:
        """Make moves that were checked."""
        for move in moves:
            record = self._records[move.id]
            self._records[move.id] = replace(
                record,
                state=move.state,
                version=record.version + 1,
                body=record.body if move.body is None else move.body,
                digest=move.digest or record.digest,
                expires_at=record.expires_at if move.keep_expiry else move.expires_at,
                updated_at=time.time(),
            )

    def forget(self, run_id: str) -> None:
        """Drop the records of a run that is no longer kept."""
        for approval_id in self._of_run.pop(run_id, ()):
            del self._records[approval_id]
