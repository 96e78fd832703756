"""Approval records for tests of decisions, without a run."""

from __future__ import annotations

from typing import Any

from bascule.bridge.approval import approval_digest
from bascule.bridge.approval_card import ApprovalState, Card, new_id
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.requirement import Demand, Requirement
from bascule.tools import canonical_json


def make_record(
    *demands: Demand,
    arguments: dict[str, Any] | None = None,
    requester: str | None = None,
    expires_at: float | None = None,
    created_at: float = 1000.0,
    **requirement: Any,
) -> ApprovalRecord:
    """Return a pending record with a card of a `mail.send` call."""
    canonical = canonical_json(arguments or {"body": "hi", "to": "x@example.com"})
    card = Card(
        tool="mail.send",
        description="Send mail.",
        effects="once",
        tool_digest="t" * 64,
        arguments=canonical.decode(),
        script_sha256="s" * 64,
        line=1,
        source="mail.send(...)",
        requirement=Requirement(demands=demands or (Demand(rule="r"),), **requirement),
        requester=requester,
        tools=("mail.send", "mail.draft"),
    )
    return ApprovalRecord(
        id=new_id(),
        run_id="run-1",
        seq=1,
        state=ApprovalState.PENDING,
        digest=approval_digest(
            run_id="run-1",
            seq=1,
            tool=card.tool,
            tool_digest=card.tool_digest,
            arguments=canonical,
            script_sha256=card.script_sha256,
            expires_at=expires_at,
        ),
        body=card.encode(),
        created_at=created_at,
        expires_at=expires_at,
    )
