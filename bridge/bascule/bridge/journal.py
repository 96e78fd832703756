"""The journal of a run: append-only events, chained by hash. What is not in it has not happened.

An event is small facts and at most one payload (script, arguments, value, text). The chain covers the facts,
which carry the payload's digest, so retention can drop payloads and the journal can still be verified.
`append` only notes; `flush` makes all that was noted survive this process, `commit` this machine's power too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from bascule.bridge.approvals_table import ApprovalMove, ApprovalRecord, Reservation
    from bascule.bridge.rates import Rate

Fact = None | bool | int | float | str | Sequence["Fact"] | Mapping[str, "Fact"]
"""Plain JSON data."""

JOURNAL_VERSION: Final = 1
"""Version of the facts below; RUN_STARTED carries it, a newer one is refused."""

PAYLOAD_DIGEST: Final = "payload_sha256"
"""Name of the fact that a journal adds to an event with a payload."""

GENESIS: Final = "0" * 64
"""What the first event of a run, and the first audit entry of a deployment, are chained to."""


class EventKind(StrEnum):
    """What a journal can say; facts beside ``seq`` and what the payload is."""

    RUN_STARTED = "run_started"
    """version, script_sha256, seed, now, user, image, tools_digest, session; payload: StartedRun as JSON."""
    CALL_ISSUED = "call_issued"
    """tool, line, args_sha256, act; payload: the arguments as the guest sent them, without secrets; their
    digest is that of what was sent."""
    CALL_CANCELLED = "call_cancelled"
    """act."""
    SLEEP_ISSUED = "sleep_issued"
    """seconds, due (seconds since the epoch), act."""
    OUTPUT = "output"
    """act, whole; payload: the text, UTF-8; raw_bytes and raw_sha256 of it where secrets were taken out."""
    DECIDED = "decided"
    """effect, rules; payload: the canonical arguments."""
    APPROVAL_REQUESTED = "approval_requested"
    """digest, and whatever the approvals stage adds (its record lives in the approvals table)."""
    APPROVAL_RESOLVED = "approval_resolved"
    """verdict, by, reason, …"""
    DISPATCHED = "dispatched"
    """Durable before a tool with effects is called: attempt, key (for idempotency), approved_by, edited_by;
    payload: the canonical arguments where a person edited them. Of a job elsewhere: pending."""
    COMPLETED = "completed"
    """Durable before delivery if the tool has effects: state, effects, result_bytes, duration_s, failure (a
    ToolFailure, or None), approved_by, duplicate; payload: the value as JSON."""
    DELIVERED = "delivered"
    """seqs and nows, in delivery order: one Done frame."""
    SUSPENDED = "suspended"
    """reason, wake_at, waits, used_s (seconds that count against ``run_s``)."""
    RESUMED = "resumed"
    """epoch."""
    FINISHED = "finished"
    """status, error; payload: the Result as JSON."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One event.

    Attributes:
        index: number in the run, from 0 without a gap.
        at: host time in seconds since the epoch; may go backwards with the host's clock.
        payload: None when the event has none, or when retention dropped it (``payload_sha256`` stays).
    """

    index: int
    kind: EventKind
    at: float
    facts: Mapping[str, Fact]
    payload: bytes | None = None


class Journal(Protocol):
    """The journal of one run, written by whoever holds the run's lease.

    Raises (flush, commit):
        LeaseLost: another worker took the run over; nothing was written. End everything, start no tool.
        StoreError: the store cannot be written (full, read-only, gone); nothing was written.
    """

    @property
    def run_id(self) -> str:
        """The run it belongs to."""
        ...

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """Everything appended so far, in order."""
        ...

    def append(self, kind: EventKind, payload: bytes | None = None, /, **facts: Fact) -> None:
        """Note one event; it is kept by the next `flush` or `commit`."""
        ...

    def audit(self, action: str, /, **facts: Fact) -> None:
        """Note one entry of the deployment's audit table, kept in the same transaction."""
        ...

    async def flush(self) -> None:
        """Write what was noted, so that it survives this process; no flush to disk."""
        ...

    async def commit(
        self,
        *,
        insert: Sequence[ApprovalRecord] = (),
        move: Sequence[ApprovalMove] = (),
        reserve: Sequence[Reservation] = (),
        rates: Sequence[Rate] = (),
        event: tuple[EventKind, Mapping[str, Fact], bytes | None] | None = None,
        durable: bool = True,
    ) -> None:
        """Write what was noted, flushed to disk, in one transaction with the changes given.

        Args:
            insert: new approval records.
            move: compare-and-set moves of approval records.
            reserve: budget counters to raise.
            rates: rate limits to take a place under.
            event: kind, facts, payload; appended only if all moves, reservations and places succeed (for
                DISPATCHED).
            durable: False leaves the flush to disk to a later one, as `flush` does.

        Raises:
            ApprovalConflict, ReservationRefused, RateFull: that change is impossible; none of the changes
                and not ``event`` were made, what was noted before stays noted.
        """
        ...


def digest_of(payload: bytes) -> str:
    """Return the sha256 of a payload, in hex."""
    return hashlib.sha256(payload).hexdigest()


_encode = msgspec.json.Encoder(order="deterministic").encode


def encode_facts(facts: Mapping[str, Fact]) -> bytes:
    """Return facts as JSON bytes, the same for equal facts."""
    return _encode(facts)


def chain(previous: str, index: int, kind: str, at: float, facts: bytes) -> str:
    """Return the hash of one link: sha256 over the previous hash and this entry, in hex."""
    link = hashlib.sha256(previous.encode())
    link.update(f"|{index}|{kind}|{at!r}|".encode())
    link.update(facts)
    return link.hexdigest()
