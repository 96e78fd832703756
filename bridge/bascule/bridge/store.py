"""The store: runs and their journals, leases, approvals, counters, operators' answers, and the audit table.

`MemoryStore` (memory_store.py) is for throw-away runs, `SqliteStore` (sqlite_store.py) for runs that outlive
a process. Both keep the same promises but durability. A run is written only under a *lease* with a fencing
epoch: whoever takes it raises the epoch, and every write checks it in its own transaction, so a worker that
lost its lease can never write again and never start a tool.

Who waits for something that other processes may write (a decision, an answer, a cancellation) reads it, and
reads again whenever `changed` returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol

from bascule.bridge.approvals_table import ApprovalTable, Reservation
from bascule.bridge.artifacts import ArtifactTable
from bascule.bridge.history import StartedRun
from bascule.bridge.journal import Fact, Journal, JournalEntry
from bascule.bridge.rates import RateTable

RunStatus = Literal["running", "suspended", "finished"]
AnswerKind = Literal["happened", "did_not_happen", "tell_script"]

LEASE_S: Final = 30.0
"""Seconds for which a lease holds without renewal; the lease of a process known to be dead ends at once."""

POLL_S: Final = 0.5
"""Longest time until a change made by another process is noticed."""

BLOB_BYTES: Final = 16 << 10
"""Payloads above this go to the blob table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The row of one run.

    Attributes:
        status: ``finished`` runs say how in ``outcome`` (a `Result.status`).
        owner: who holds the lease; empty when nobody does.
        epoch: fencing epoch, raised by every taking of the lease.
        wake_at: when a suspended run can go on by itself (a timer), None when only people can wake it.
        reason: why it is suspended, for people.
        waits: what it waits for, for `bascule.bridge.waking`: ``approval:ID`` or ``answer:SEQ.ATTEMPT``.
        session, ordinal: the session it belongs to and its place in it, from 1.
        cancel_requested: somebody asked for its end.
    """

    run_id: str
    status: RunStatus
    created_at: float
    updated_at: float
    user: str | None
    image: str
    script_sha256: str
    outcome: str | None = None
    owner: str = ""
    epoch: int = 0
    lease_until: float = 0.0
    wake_at: float | None = None
    reason: str = ""
    waits: tuple[str, ...] = ()
    session: str | None = None
    ordinal: int = 0
    cancel_requested: bool = False

    def left_as(self, status: RunStatus, *, outcome: str | None = None) -> RunRecord:
        """Return the row with another status, held by nobody."""
        return replace(self, status=status, outcome=outcome, owner="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an operator said about a call whose outcome was unknown; ``value`` is JSON when it happened."""

    kind: AnswerKind
    value: bytes | None = None
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One link of the deployment's audit chain."""

    index: int
    at: float
    action: str
    run_id: str | None
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    previous: str = ""
    hash: str = ""


class Store(Protocol):
    """Where everything that must outlive a guest is kept. Calls block shortly, unless they are async."""

    @property
    def durable(self) -> bool:
        """Whether its runs outlive the process."""
        ...

    @property
    def approvals(self) -> ApprovalTable:
        """Records of approvals."""
        ...

    @property
    def artifacts(self) -> ArtifactTable:
        """Large values that runs keep for later ones."""
        ...

    @property
    def rates(self) -> RateTable:
        """Starts of rate-limited tools."""
        ...

    def open_journal(self, record: RunRecord) -> Journal:
        """Add the row of a new run, with its lease, and begin its journal.

        Raises:
            StoreError: the store cannot be written.
        """
        ...

    def take_lease(self, run_id: str) -> Journal:
        """Take an unfinished run over: raise its epoch, and return its journal for writing.

        Raises:
            RunNotFound, RunBusy: there is no such run; it is finished, or its lease is alive.
        """
        ...

    def renew(self, journal: Journal) -> bool:
        """Prolong the lease; return whether somebody asked to cancel the run.

        Raises:
            LeaseLost: somebody else has it.
        """
        ...

    async def release(self, journal: Journal, record: RunRecord) -> None:
        """Commit the journal together with the row as the run is left: suspended or finished, no lease."""
        ...

    def journal(self, run_id: str) -> Journal | None:
        """Return the journal of a run for reading, or None when the store does not hold it (any more)."""
        ...

    def run(self, run_id: str) -> RunRecord | None:
        """Return the row of a run."""
        ...

    def runs(
        self,
        *,
        status: RunStatus | None = None,
        session: str | None = None,
        limit: int = 100,
        user: str | None = None,
        before: str | None = None,
    ) -> list[RunRecord]:
        """Return rows: of a session in their order, otherwise the newest first.

        Args:
            user: only runs on behalf of this one.
            before: only runs that were begun before the one of this id; none when it is unknown.
        """
        ...

    def started(self, run_id: str) -> StartedRun | None:
        """Return how a run was begun, or None when it is unknown or that was dropped by retention."""
        ...

    def resumable(self) -> list[str]:
        """Return unfinished runs that nobody works on: suspended, or left behind by a dead worker."""
        ...

    def request_cancel(self, run_id: str) -> bool:
        """Ask for the end of a run; return False when it is finished or unknown."""
        ...

    def answer(self, run_id: str, seq: int, attempt: int, answer: Answer) -> bool:
        """Keep an operator's answer about one start of a call; the first counts, False for later ones."""
        ...

    def find_answer(self, run_id: str, seq: int, attempt: int) -> Answer | None:
        """Return the answer about one start of a call."""
        ...

    def counter(self, key: str) -> float:
        """Return what is reserved under a key."""
        ...

    def reserve(self, reservations: Sequence[Reservation]) -> None:
        """Raise counters in a transaction of its own.

        Raises:
            ReservationRefused: one would pass its maximum; none was raised.
        """
        ...

    def append_audit(self, action: str, facts: Mapping[str, Fact], *, run_id: str | None = None) -> None:
        """Add an audit entry that belongs to no journal; flushed to disk."""
        ...

    def audit_entries(self, *, after: int = -1) -> Iterable[AuditEntry]:
        """Return audit entries in order, those with an index above ``after``."""
        ...

    def keyed_hash(self, data: bytes) -> str:
        """Return the HMAC-SHA256 of data under the deployment's audit key, in hex."""
        ...

    def import_run(self, record: RunRecord, entries: Iterable[JournalEntry]) -> None:
        """Add a finished run from elsewhere, for replay."""
        ...

    def prune(self, *, before: float) -> int:
        """Drop payloads of runs finished before a time, keeping facts and digests; return how many runs."""
        ...

    async def changed(self, timeout_s: float) -> None:
        """Return when approvals, answers or cancellations may have changed, or after ``timeout_s``."""
        ...

    def close(self) -> None:
        """Release files and threads. Idempotent."""
        ...
