"""What people are shown of an approval: a record of the store as a request, whichever the channel."""

from __future__ import annotations

from bascule.bridge.approval import ApprovalRequest
from bascule.bridge.approval_card import read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.decide import describe_demand
from bascule.bridge.spelling import spell


def describe_record(record: ApprovalRecord) -> ApprovalRequest:
    """Return what is to be shown; its texts are untrusted."""
    card = read_card(record)
    requirement = card.requirement
    regulated = [
        demand
        for demand in requirement.demands
        if demand.groups or demand.users or demand.quorum > 1 or not demand.self_approval
    ]
    return ApprovalRequest(
        run_id=record.run_id,
        seq=record.seq,
        tool=card.tool,
        description=card.description,
        digest=record.digest,
        arguments=card.arguments.encode(),
        effects=card.effects,
        why=requirement.rules,
        line=card.line,
        source=card.source,
        duplicate=card.duplicate,
        id=record.id,
        batch=record.batch,
        requester=card.requester,
        expires_at=record.expires_at,
        may=requirement.may,
        editable=requirement.editable,
        grantable=requirement.grantable,
        approvers=tuple(map(describe_demand, regulated)),
        decided=tuple(
            f"{voice.verdict} by {voice.by} ({voice.channel}): {voice.reason}" for voice in card.voices
        ),
        evidence=card.evidence,
        preview=card.preview,
        note=card.note,
        tools=card.tools,
        shown=spell(card.arguments.encode(), card.floats),
    )
