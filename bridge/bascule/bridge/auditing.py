"""What the audit table says of a call: who asked what, under which rule, who decided, what ran, how it ended.

Arguments stand there as keyed hashes: whoever holds the key can prove that a call had certain arguments,
nobody can read them there. The values themselves are in the journal, under its retention.
"""

from __future__ import annotations

from bascule.bridge.journal import Journal
from bascule.bridge.ledger import CallRecord
from bascule.bridge.store import Store


def audit_call(record: CallRecord, tool_digest: str | None, journal: Journal, store: Store) -> None:
    """Note the end of one call.

    Args:
        tool_digest: of the definition that ran, None for a tool that does not exist.
    """
    journal.audit(
        "call.ended",
        seq=record.call.seq,
        tool=record.call.tool,
        tool_digest=tool_digest,
        effects=record.effects,
        rules=list(record.rules),
        arguments_hmac=None if record.arguments is None else store.keyed_hash(record.arguments),
        state=record.state,
        timed_out=record.timed_out,
        duplicate=record.duplicate,
        error=None if record.error is None else record.error.kind,
        approved_by=record.approved_by,
        edited_by=record.edited_by,
        answered_by=record.answered_by,
        attempts=record.attempts,
        duration_s=record.duration_s,
        result_bytes=record.result_bytes,
    )
