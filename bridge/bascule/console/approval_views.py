"""Approvals as the API gives them and as filters see them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import cast

from bascule.bridge.approval_card import ApprovalState, Card, read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.grants import read_grant
from bascule.bridge.requests import describe_record
from bascule.bridge.requirement import Demand
from bascule.bridge.store import Store
from bascule.console.hub import Pending
from bascule.console.principal import Principal
from bascule.console.schemas import (
    ApprovalReply,
    ApprovalsQuery,
    ApprovalStateName,
    GrantReply,
    VoiceReply,
)

DECIDED: tuple[ApprovalState, ...] = tuple(state for state in ApprovalState if state != ApprovalState.PENDING)


def reply_of(record: ApprovalRecord) -> ApprovalReply:
    """Return an approval for a program."""
    card = read_card(record)
    request = describe_record(record)
    return ApprovalReply(
        id=record.id,
        state=cast("ApprovalStateName", str(record.state)),
        run_id=record.run_id,
        seq=record.seq,
        batch=record.batch,
        tool=card.tool,
        description=card.description,
        effects=card.effects,
        tool_digest=card.tool_digest,
        arguments=json.loads(card.arguments),
        arguments_json=card.arguments,
        original_json=card.original,
        digest=record.digest,
        rules=list(request.why),
        approvers=list(request.approvers),
        requester=card.requester,
        line=card.line,
        source=card.source,
        duplicate=card.duplicate,
        evidence=list(card.evidence),
        note=card.note,
        may=list(request.may),
        editable=list(request.editable),
        grantable=list(request.grantable),
        decisions=[
            VoiceReply(by=each.by, channel=each.channel, verdict=each.verdict, reason=each.reason, at=each.at)
            for each in card.voices
        ],
        created_at=record.created_at,
        updated_at=record.updated_at,
        expires_at=record.expires_at,
        version=record.version,
        card=record.body.decode(),
    )


def select(pending: Iterable[Pending], query: ApprovalsQuery, principal: Principal) -> list[Pending]:
    """Return those that a query asks for, in the order given."""
    return [each for each in pending if matches(each.record, each.card, query, principal)]


def matches(record: ApprovalRecord, card: Card, query: ApprovalsQuery, principal: Principal) -> bool:
    """Tell whether an approval is among those that a query asks for; its state is not looked at."""
    return (
        (query.run is None or record.run_id == query.run)
        and (query.tool is None or card.tool == query.tool)
        and (query.user is None or card.requester == query.user)
        and (query.rule is None or query.rule in card.requirement.rules)
        and (not query.mine or may_decide(card, principal))
    )


def may_decide(card: Card, principal: Principal) -> bool:
    """Tell whether somebody is among the approvers of a call and is not kept out by four eyes.

    For lists only: what counts is `bascule.bridge.decide`.
    """
    if not principal.may("decide") or any(voice.by == principal.name for voice in card.voices):
        return False
    return any(_is_for(demand, card, principal) for demand in card.requirement.demands)


def _is_for(demand: Demand, card: Card, principal: Principal) -> bool:
    named = principal.name in demand.users or not principal.groups.isdisjoint(demand.groups)
    anybody = not demand.users and not demand.groups
    return (named or anybody) and (demand.self_approval or card.requester != principal.name)


def live_grants(store: Store) -> list[GrantReply]:
    """Return the grants of runs that are not finished."""
    found: list[GrantReply] = []
    for status in ("running", "suspended"):
        for row in store.runs(status=status, limit=1000):
            for record in store.approvals.find(run_id=row.run_id, states=DECIDED, limit=20_000):
                grant = read_grant(record, read_card(record))
                if grant is not None:
                    left = max(0, int(grant.rule.count - store.counter(grant.counter)))
                    found.append(
                        GrantReply(
                            approval=record.id,
                            run_id=row.run_id,
                            rung=grant.rule.rung,
                            text=grant.rule.describe(),
                            tools=list(grant.rule.tools),
                            count=grant.rule.count,
                            left=left,
                            by=grant.by,
                        )
                    )
    return found
