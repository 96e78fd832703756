"""Rows of the SQLite store to records and back."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.journal import PAYLOAD_DIGEST, EventKind, Fact, JournalEntry
from bascule.bridge.store import AuditEntry, RunRecord, RunStatus

RUN_COLUMNS: Final = (
    "run_id, status, created_at, updated_at, user, image, script_sha256, outcome, owner, epoch,"
    " lease_until, wake_at, reason, waits, session, ordinal, cancel_requested"
)
APPROVAL_COLUMNS: Final = (
    "id, run_id, seq, state, version, digest, batch, created_at, updated_at, expires_at, body"
)

Row = tuple[Any, ...]

_decode_facts = msgspec.json.Decoder(dict[str, Any]).decode


def read_facts(data: bytes) -> dict[str, Fact]:
    """Return the facts of an entry."""
    return _decode_facts(data)


def read_run(row: Row) -> RunRecord:
    """Return a run from its columns."""
    return RunRecord(
        run_id=row[0],
        status=cast("RunStatus", row[1]),
        created_at=row[2],
        updated_at=row[3],
        user=row[4],
        image=row[5],
        script_sha256=row[6],
        outcome=row[7],
        owner=row[8],
        epoch=row[9],
        lease_until=row[10],
        wake_at=row[11],
        reason=row[12],
        waits=tuple(row[13].split()),
        session=row[14],
        ordinal=row[15],
        cancel_requested=bool(row[16]),
    )


def write_run(record: RunRecord, *, owner: str, epoch: int, lease_until: float) -> Row:
    """Return the columns of a run."""
    return (
        record.run_id,
        record.status,
        record.created_at,
        record.updated_at,
        record.user,
        record.image,
        record.script_sha256,
        record.outcome,
        owner,
        epoch,
        lease_until,
        record.wake_at,
        record.reason,
        " ".join(record.waits),
        record.session,
        record.ordinal,
        int(record.cancel_requested),
    )


def read_approval(row: Row) -> ApprovalRecord:
    """Return an approval from its columns."""
    return ApprovalRecord(
        id=row[0],
        run_id=row[1],
        seq=row[2],
        state=row[3],
        version=row[4],
        digest=row[5],
        batch=row[6],
        created_at=row[7],
        updated_at=row[8],
        expires_at=row[9],
        body=row[10],
    )


def write_approval(record: ApprovalRecord) -> Row:
    """Return the columns of an approval."""
    return (
        record.id,
        record.run_id,
        record.seq,
        record.state,
        record.version,
        record.digest,
        record.batch,
        record.created_at,
        record.updated_at,
        record.expires_at,
        record.body,
    )


def read_event(row: Row) -> tuple[JournalEntry, bytes, str]:
    """Return an event, its facts as they are hashed, and its hash; the payload may still be in a blob."""
    index, kind, at, facts, payload, found = row
    return JournalEntry(index, EventKind(kind), at, read_facts(facts), payload), facts, found


def payload_digest(entry: JournalEntry) -> str | None:
    """Return the digest of the payload an entry has or had."""
    return cast("str | None", entry.facts.get(PAYLOAD_DIGEST))


def read_audit(row: Row) -> tuple[AuditEntry, bytes]:
    """Return an audit entry and its facts as they are hashed."""
    entry = AuditEntry(
        index=row[0],
        at=row[1],
        action=row[2],
        run_id=row[3],
        facts=read_facts(row[4]),
        previous=row[5],
        hash=row[6],
    )
    return entry, row[4]
