"""Records of approvals and budget counters in a store: rows with a version, moved by compare-and-set.

What a state means, who may move it and what is in ``body`` is decided by the approvals stage; the store only
guarantees that of several moves from one version exactly one succeeds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bascule.wire import BasculeError

if TYPE_CHECKING:
    from bascule.bridge.journal import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """One approval.

    Attributes:
        id: random, chosen by whoever inserts it.
        state: a word of the approvals stage (``pending``, ``approved`` …).
        version: 1 when inserted, one more with every move.
        digest: what the decision is bound to.
        batch: cards that are shown together have the same one; empty for a card of its own.
        created_at, updated_at, expires_at: seconds since the epoch; ``expires_at`` None waits for ever.
        body: JSON of the approvals stage.
    """

    id: str
    run_id: str
    seq: int
    state: str
    digest: str
    body: bytes
    version: int = 1
    batch: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    expires_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalMove:
    """One compare-and-set: from exactly ``version`` to ``state``; ``body``, ``digest`` None keep theirs."""

    id: str
    version: int
    state: str
    body: bytes | None = None
    expires_at: float | None = None
    keep_expiry: bool = True
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Raise a counter, if it then is at most ``maximum``.

    Attributes:
        key: names the counter, for example ``small-refund/sum/day/2026-11-29/group=support``.
        amount: may be negative to give back.
        expires_at: when the counter may be forgotten, seconds since the epoch.
    """

    key: str
    amount: float
    maximum: float
    expires_at: float


class ApprovalConflict(BasculeError):
    """Raised when a move does not start from the record's current version (``approval_conflict``).

    Somebody else decided first: read the record again.
    """

    def __init__(self, approval_id: str) -> None:
        super().__init__("approval_conflict", f"approval {approval_id} was changed by somebody else")
        self.approval_id = approval_id


class ReservationRefused(BasculeError):
    """Raised when a counter would pass its maximum (``budget_exceeded``); ``key`` says which."""

    def __init__(self, key: str, used: float) -> None:
        super().__init__("budget_exceeded", f"budget {key} is used up ({used:g} used)")
        self.key = key
        self.used = used


class ApprovalTable(Protocol):
    """The approvals of a store. Calls are short and block; those that write flush to disk."""

    def get(self, approval_id: str) -> ApprovalRecord | None:
        """Return one record as it is now."""
        ...

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
        """Return records, oldest first; all given conditions hold; no states means all.

        Args:
            ids: only these; what it costs depends on how many they are, not on how many the store holds.
            newest: the newest ones, newest first.
            before: with ``newest``, only those that were asked before the one of this id.
        """
        ...

    def versions(self, state: str, *, limit: int) -> dict[str, int]:
        """Return the versions of the oldest records in a state by their ids: what changed is then read."""
        ...

    def insert(self, *records: ApprovalRecord) -> None:
        """Add records outside a run's own transaction."""
        ...

    def move(self, *moves: ApprovalMove, audit: Mapping[str, Fact] | None = None) -> None:
        """Make all moves in one transaction, with one audit entry (its ``action`` among the facts).

        Raises:
            ApprovalConflict: one does not start from the current version; none was made.
        """
        ...
