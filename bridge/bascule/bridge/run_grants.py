"""The grants of one run in this process, read once from what earlier processes of it left in the store."""

from __future__ import annotations

from typing import Final

from bascule.bridge.approval_card import ApprovalState, Card, read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.grants import Grant, is_in_force, read_grant, read_grants
from bascule.bridge.requirement import Requirement
from bascule.bridge.store import Store
from bascule.tools import AnyTool

MAX_RECORDS: Final = 20_000
"""Approvals of one run that are looked at."""


class RunGrants:
    """Finds what lets calls of one run through without asking again.

    Attributes:
        tools: the tools the run has asked about so far, in order: name and digest of the definition as it was
            last; a ``script`` grant lists them.
        asked: the run has approvals in the store.
    """

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._grants: list[Grant] = []
        self._loaded = False
        self.tools: dict[str, str] = {}
        self.asked = False

    def find(self, tool: AnyTool, canonical: bytes, requirement: Requirement, *, seq: int) -> Grant | None:
        """Return a grant that lets call ``seq`` through and is not used up."""
        self._load()
        for grant in self._grants:
            if (
                grant.covers(tool, canonical, requirement)
                and self.is_usable(grant)
                and not self._is_own(grant, seq)
            ):
                return grant
        return None

    def _is_own(self, grant: Grant, seq: int) -> bool:
        """Tell whether the call has the very approval that the grant was given with, still to be used."""
        if grant.seq != seq:
            return False
        record = self._store.approvals.get(grant.approval_id)
        return record is not None and record.state == ApprovalState.APPROVED

    def is_usable(self, grant: Grant) -> bool:
        """Tell whether a grant is good for one more call, and nobody took it back."""
        left = grant.rule.count - self._store.counter(grant.counter)
        return left > 0 and is_in_force(self._store.approvals, grant)

    def add(self, approval: ApprovalRecord, card: Card) -> None:
        """Take note of the grant that was given with an approval, if one was."""
        grant = read_grant(approval, card)
        if grant is not None:
            self._grants.append(grant)

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        records = self._store.approvals.find(run_id=self._run_id, limit=MAX_RECORDS)
        self.asked = self.asked or bool(records)
        self._grants = read_grants(records)
        self.tools.update((card.tool, card.tool_digest) for card in map(read_card, records))
