"""The one place where people's decisions are written: terminal, callback, console, command line, API.

It trusts the caller for who decides (name, groups, channel) and nothing else: the state, the displayed
digest, who may decide, quorum, self-approval, what may be answered and what may be edited are checked here,
against what the store holds, and written by compare-and-set.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bascule.bridge.approval import Decision, approval_digest
from bascule.bridge.approval_card import (
    MAX_GRANTED_CALLS,
    ApprovalState,
    Card,
    GrantRule,
    Voice,
    moved,
    read_card,
)
from bascule.bridge.approvals_table import ApprovalConflict, ApprovalMove, ApprovalRecord, ApprovalTable
from bascule.bridge.edits import CheckEdit, apply_edit
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.journal import Fact
from bascule.bridge.matching import User
from bascule.bridge.redaction import Redactor
from bascule.bridge.requirement import Demand, Requirement
from bascule.bridge.result import JsonValue
from bascule.tools import canonical_json
from bascule.tools.canonical import check_plain

_TELLING: Final = frozenset({"Pc", "Pd", "Po", "Sm", "Sc", "So"})
"""Categories of characters other than letters and digits that tell names apart: ``a.b@x`` is not ``ab@x``."""

MAX_REASON_CHARS: Final = 2000
MAX_RESPONSE_BYTES: Final = 1 << 20

_STATES: Final = {
    "reject": ApprovalState.REJECTED,
    "terminate": ApprovalState.REJECTED,
    "respond": ApprovalState.RESPONDED,
}


def decide(
    table: ApprovalTable,
    approval_id: str,
    decision: Decision,
    *,
    digest: str,
    channel: str,
    check_edit: CheckEdit | None = None,
    redactor: Redactor | None = None,
    now: Callable[[], float] = time.time,
) -> ApprovalRecord:
    """Write one decision and return the record as it then is.

    Args:
        digest: of what the decider was shown.
        channel: how the decider was asked, for the record.
        check_edit: validates edited arguments where the tools are known; the run validates them in any case.
        redactor: knows the secrets of the host where they are known: they are taken out of reasons and
            responses before these are kept, and an edit that holds one is refused.

    Raises:
        DecisionRefused: nothing was written; the code says why, the message what to do.
    """
    if redactor is not None:
        decision = _without_secrets(decision, redactor)
    while True:
        record = table.get(approval_id)
        if record is None:
            raise DecisionRefused("approval_not_found", f"there is no approval {approval_id}")
        at = now()
        _check_open(table, record, at)
        if digest != record.digest:
            raise DecisionRefused(
                "digest_mismatch", "this is not what the approval is about now; show it again, then decide"
            )
        card = read_card(record)
        move, voice = _decide(record, card, decision, channel=channel, at=at, check_edit=check_edit)
        audit: dict[str, Fact] = {
            "action": f"approval.{decision.verdict}",
            "approval": approval_id,
            "seq": record.seq,
            "tool": card.tool,
            "rules": list(card.requirement.rules),
            "digest": record.digest,
            "by": voice.by,
            "channel": channel,
            "reason": voice.reason,
            "state": move.state,
            "grant": decision.grant,
        }
        try:
            table.move(move, audit=audit)
        except ApprovalConflict:
            continue  # somebody else was first: look again
        after = table.get(approval_id)
        assert after is not None
        return after


def _without_secrets(decision: Decision, redactor: Redactor) -> Decision:
    if decision.arguments is not None and redactor.holds_secret(dict(decision.arguments)):
        raise DecisionRefused("edit_not_allowed", "the arguments hold a secret of the host")
    return replace(
        decision, reason=redactor.text(decision.reason), response=redactor.plain(decision.response)
    )


def expire(table: ApprovalTable, record: ApprovalRecord) -> bool:
    """Move a pending record whose time is over to ``expired``; return False when somebody was first."""
    try:
        table.move(
            moved(record, ApprovalState.EXPIRED),
            audit={"action": "approval.expired", "approval": record.id, "seq": record.seq},
        )
    except ApprovalConflict:
        return False
    return True


def _check_open(table: ApprovalTable, record: ApprovalRecord, at: float) -> None:
    if record.state != ApprovalState.PENDING:
        raise DecisionRefused("approval_closed", f"approval {record.id} is {record.state} already")
    if record.expires_at is not None and at >= record.expires_at:
        expire(table, record)
        raise DecisionRefused("approval_closed", f"approval {record.id} has expired")


def _decide(
    record: ApprovalRecord,
    card: Card,
    decision: Decision,
    *,
    channel: str,
    at: float,
    check_edit: CheckEdit | None,
) -> tuple[ApprovalMove, Voice]:
    user = User(name=decision.by, groups=decision.groups)
    _check_move(card, decision, user)
    voice = Voice(
        by=user.name,
        groups=tuple(sorted(user.groups)),
        channel=channel,
        verdict=decision.verdict,
        reason=decision.reason[:MAX_REASON_CHARS],
        at=at,
    )
    if decision.verdict in _STATES:
        response = check_response(decision.response).decode() if decision.verdict == "respond" else None
        after = replace(card, voices=(*card.voices, voice), response=response)
        return moved(record, _STATES[decision.verdict], after), voice
    if decision.verdict == "edit":
        card = apply_edit(card, decision, check_edit)
        digest = digest_of_card(card, record)
    else:
        digest = record.digest
    grant = _grant(card, decision)
    card = replace(card, voices=(*card.voices, voice), grant=grant)
    done = is_carried(card.requirement, card)
    state = ApprovalState.APPROVED if done else ApprovalState.PENDING
    move = moved(record, state, card)
    return replace(move, digest=None if digest == record.digest else digest), voice


def digest_of_card(card: Card, record: ApprovalRecord) -> str:
    """Return the digest of what a card is about."""
    return approval_digest(
        run_id=record.run_id,
        seq=record.seq,
        tool=card.tool,
        tool_digest=card.tool_digest,
        arguments=card.arguments.encode(),
        script_sha256=card.script_sha256,
        expires_at=record.expires_at,
    )


def is_carried(requirement: Requirement, card: Card) -> bool:
    """Tell whether those who spoke on a card are all that a requirement demands."""
    return all(_satisfied(demand, card) for demand in requirement.demands)


def _check_move(card: Card, decision: Decision, user: User) -> None:
    requirement = card.requirement
    if not person(user.name):
        raise DecisionRefused("not_an_approver", "a decision needs the name of whoever decides")
    if decision.verdict not in requirement.may:
        raise DecisionRefused(
            "move_not_allowed",
            f"{decision.verdict} is not possible here; possible: {', '.join(requirement.may)}",
        )
    mine = [demand for demand in requirement.demands if _is_approver(demand, user)]
    if not mine:
        wanted = "; ".join(describe_demand(demand) for demand in requirement.demands)
        raise DecisionRefused("not_an_approver", f"{user.name} may not decide about this call: {wanted}")
    if decision.verdict in ("reject", "terminate"):
        return
    if not any(_may_approve(demand, user, card) for demand in mine):
        raise DecisionRefused("self_approval", f"{user.name} may not approve a call of an own run")
    if any(person(voice.by) == person(user.name) for voice in card.voices):
        raise DecisionRefused("already_decided", f"{user.name} has approved already; somebody else is needed")
    if decision.verdict == "respond" and not all(
        demand.quorum == 1 and _may_approve(demand, user, card) for demand in requirement.demands
    ):
        wanted = "; ".join(describe_demand(demand) for demand in requirement.demands)
        raise DecisionRefused(
            "move_not_allowed",
            f"only somebody who may approve alone can answer in the tool's place: {wanted}",
        )


def person(name: str) -> str:
    """Return what names of one person have in common: case, width, marks and spaces do not tell two apart.

    Used where two names must not count as two people; who may decide is looked up by the name as it is.
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold())
    return "".join(char for char in folded if char.isalnum() or unicodedata.category(char) in _TELLING)


def _is_approver(demand: Demand, user: User) -> bool:
    if not (demand.groups or demand.users):
        return True
    return user.name in demand.users or not user.groups.isdisjoint(demand.groups)


def _may_approve(demand: Demand, user: User, card: Card) -> bool:
    return _is_approver(demand, user) and (
        demand.self_approval or person(user.name) != person(card.requester or "")
    )


def _satisfied(demand: Demand, card: Card) -> bool:
    people = {
        person(voice.by)
        for voice in card.voices
        if _may_approve(demand, User(name=voice.by, groups=frozenset(voice.groups)), card)
    }
    return len(people) >= demand.quorum


def check_response(response: JsonValue) -> bytes:
    """Return what a person gave in a tool's place as canonical JSON.

    Raises:
        DecisionRefused: ``response_invalid``: it is no JSON as tools may return it, or too large.
    """
    try:
        check_plain(response, path="the response")
        written = canonical_json(response)
    except (ValueError, TypeError, AttributeError) as error:
        raise DecisionRefused("response_invalid", f"the response is no JSON: {error}") from error
    if len(written) > MAX_RESPONSE_BYTES:
        raise DecisionRefused("response_invalid", f"the response is larger than {MAX_RESPONSE_BYTES} bytes")
    return written


def _grant(card: Card, decision: Decision) -> GrantRule | None:
    if decision.grant == "once":
        return None
    requirement = card.requirement
    if decision.grant not in requirement.grantable or decision.verdict == "edit":
        possible = ", ".join(("once", *requirement.grantable))
        raise DecisionRefused(
            "grant_not_allowed", f"a grant {decision.grant} cannot be given here; possible: {possible}"
        )
    if any(demand.quorum > 1 for demand in requirement.demands) or len(requirement.demands) > 1:
        raise DecisionRefused(
            "grant_not_allowed", "what several people or rules decide about is decided once"
        )
    if not 1 <= decision.grant_count <= MAX_GRANTED_CALLS:
        raise DecisionRefused("grant_not_allowed", f"a grant is for 1 to {MAX_GRANTED_CALLS} further calls")
    return card.make_grant(decision.grant, decision.grant_count)


def describe_missing(card: Card) -> list[str]:
    """Return in words which demands nobody, or not enough people, have met on a card that was approved."""
    if not card.voices or card.voices[-1].verdict not in ("approve", "edit"):
        return []
    return [describe_demand(demand) for demand in card.requirement.demands if not _satisfied(demand, card)]


def describe_demand(demand: Demand) -> str:
    """Return in words what one rule demands; empty when it leaves everything open."""
    who = [*(f"group {group}" for group in demand.groups), *demand.users]
    parts = [f"rule {demand.rule}: {' or '.join(who) or 'anybody'}"]
    if demand.quorum > 1:
        parts.append(f"{demand.quorum} people")
    if not demand.self_approval:
        parts.append("not the one the run is for")
    return ", ".join(parts)
