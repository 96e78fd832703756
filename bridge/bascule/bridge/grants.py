"""Grants of one run: approvals that reach beyond their own call, kept in the store with the card they are on.

A grant answers only what the very rules ask that its giver decided about, for tools as they were defined
then, and only as often as it says. It never answers a deny, and it ends with its run.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Final

from bascule.bridge.approval_card import ApprovalState, Card, GrantRule, moved, read_card
from bascule.bridge.approvals_table import ApprovalConflict, ApprovalRecord, ApprovalTable, Reservation
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.journal import Fact
from bascule.bridge.requirement import Requirement
from bascule.tools import AnyTool

GRANTED_STATES: Final = (ApprovalState.APPROVED, ApprovalState.CONSUMED)
_KEPT_S: Final = 400 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A grant in force: the approval it was given with, and the call ``seq`` that one was about."""

    approval_id: str
    seq: int
    rule: GrantRule
    requirement: Requirement
    by: str

    def covers(self, tool: AnyTool, canonical: bytes, requirement: Requirement) -> bool:
        """Tell whether it answers what is asked about this call."""
        if not self.requirement.covers(requirement) or not self.rule.is_for(tool.name, tool.digest):
            return False
        return self.rule.arguments is None or self.rule.arguments.encode() == canonical

    @property
    def counter(self) -> str:
        """Name of the counter of its uses."""
        return f"grant {self.approval_id}"

    def reservation(self, now: float) -> Reservation:
        """Return what one use of it reserves."""
        return Reservation(key=self.counter, amount=1, maximum=self.rule.count, expires_at=now + _KEPT_S)


def read_grant(record: ApprovalRecord, card: Card) -> Grant | None:
    """Return the grant that was given with an approval, if one was."""
    if card.grant is None or record.state not in GRANTED_STATES:
        return None
    return Grant(
        approval_id=record.id,
        seq=record.seq,
        rule=card.grant,
        requirement=card.requirement,
        by=card.approved_by,
    )


def revoke_grant(table: ApprovalTable, approval_id: str, *, by: str, channel: str) -> None:
    """Take back a grant; the call it was given with stays approved.

    Raises:
        DecisionRefused: ``approval_not_found``: there is no such grant (any more).
    """
    while True:
        record = table.get(approval_id)
        grant = None if record is None else read_grant(record, read_card(record))
        if record is None or grant is None:
            raise DecisionRefused("approval_not_found", f"{approval_id} carries no grant")
        after = moved(record, ApprovalState(record.state), replace(read_card(record), grant=None))
        audit: dict[str, Fact] = {
            "action": "grant.revoked",
            "approval": approval_id,
            "grant": grant.rule.rung,
            "by": by,
            "channel": channel,
        }
        with contextlib.suppress(ApprovalConflict):  # changed meanwhile: look again
            table.move(after, audit=audit)
            return


def is_in_force(table: ApprovalTable, grant: Grant) -> bool:
    """Tell whether nobody took a grant back."""
    record = table.get(grant.approval_id)
    return record is not None and read_card(record).grant is not None


def read_grants(records: list[ApprovalRecord]) -> list[Grant]:
    """Return the grants among the approvals of a run."""
    found = [read_grant(record, read_card(record)) for record in records if record.state in GRANTED_STATES]
    return [grant for grant in found if grant is not None]
