"""What the rules that ask demand of an approval, put together from all of them: the strictest of each.

Every rule keeps its own approvers and quorum, and all of them must be satisfied; what people may do is what
every rule lets them do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from bascule.bridge.rules import ApprovalSection, Move, Rung

UNREGULATED_MOVES: Final[tuple[Move, ...]] = ("approve", "reject", "respond", "terminate")
UNREGULATED_RUNGS: Final[tuple[Rung, ...]] = ("args_in_run", "tool_in_run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one rule demands.

    Attributes:
        groups, users: who may decide; anybody when both are empty.
        quorum: how many different people must approve.
        self_approval: whether the one for whom the run is made may decide.
    """

    rule: str
    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    quorum: int = 1
    self_approval: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What an approval needs.

    Attributes:
        demands: one for each rule that asks.
        expires_in_s: seconds until it expires, None for never.
        on_expiry: what an expiry means for the run.
        may: what people may answer.
        editable: argument paths an edit may change.
        grantable: grants beyond this one call that may be given.
    """

    demands: tuple[Demand, ...]
    expires_in_s: float | None = None
    on_expiry: Literal["deny", "terminate"] = "deny"
    may: tuple[Move, ...] = UNREGULATED_MOVES
    editable: tuple[str, ...] = ()
    grantable: tuple[Rung, ...] = UNREGULATED_RUNGS

    @property
    def rules(self) -> tuple[str, ...]:
        """Names of the rules that ask."""
        return tuple(demand.rule for demand in self.demands)

    def covers(self, other: Requirement) -> bool:
        """Tell whether what satisfied this satisfies the other too."""
        return set(other.demands) <= set(self.demands)


def combine(asking: Sequence[tuple[str, ApprovalSection | None]]) -> Requirement:
    """Put together what rules demand.

    Args:
        asking: names of rules and their ``approval``; None leaves all of it to whoever is asked.
    """
    demands = tuple(_demand(name, section) for name, section in asking)
    sections = [section for _, section in asking if section is not None]
    unregulated = len(sections) < len(asking)
    may: tuple[Move, ...] = UNREGULATED_MOVES if unregulated else sections[0].may
    rungs: tuple[Rung, ...] = UNREGULATED_RUNGS if unregulated else sections[0].grantable
    editable = () if unregulated else sections[0].editable
    lengths: list[timedelta] = []
    for section in sections:
        may = tuple(move for move in may if move in section.may)
        rungs = tuple(rung for rung in rungs if rung in section.grantable)
        editable = tuple(path for path in editable if path in section.editable)
        if section.expires_in is not None:
            lengths.append(section.expires_in)
    if not editable:
        may = tuple(move for move in may if move != "edit")
    terminates = any(section.on_expiry == "terminate" for section in sections)
    return Requirement(
        demands=demands,
        expires_in_s=min(lengths).total_seconds() if lengths else None,
        on_expiry="terminate" if terminates else "deny",
        may=may,
        editable=editable,
        grantable=rungs,
    )


def _demand(name: str, section: ApprovalSection | None) -> Demand:
    if section is None:
        return Demand(rule=name)
    approvers = section.approvers
    return Demand(
        rule=name,
        groups=() if approvers is None else approvers.groups,
        users=() if approvers is None else approvers.users,
        quorum=section.quorum,
        self_approval=section.self_approval,
    )
