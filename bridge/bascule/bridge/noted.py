"""What a journal has noted and not yet written: the shared half of every journal.

Written in the order it was noted, by one event loop; the store decides when and how durably.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bascule.bridge.approvals_table import ApprovalMove, ApprovalRecord, Reservation
from bascule.bridge.journal import EventKind, Fact
from bascule.bridge.rates import Rate
from bascule.bridge.store import RunRecord


@dataclass(slots=True)
class NotedEvent:
    """One event without its place in the chain."""

    kind: EventKind
    at: float
    facts: Mapping[str, Fact]
    payload: bytes | None = None


@dataclass(slots=True)
class NotedAudit:
    """One audit entry without its place in the chain."""

    action: str
    at: float
    run_id: str | None
    facts: Mapping[str, Fact]


@dataclass(slots=True)
class Batch:
    """What one transaction writes."""

    events: list[NotedEvent] = field(default_factory=list[NotedEvent])
    audits: list[NotedAudit] = field(default_factory=list[NotedAudit])
    insert: Sequence[ApprovalRecord] = ()
    move: Sequence[ApprovalMove] = ()
    reserve: Sequence[Reservation] = ()
    rates: Sequence[Rate] = ()
    event: NotedEvent | None = None
    row: RunRecord | None = None
    durable: bool = False
    end: tuple[int, str] | None = None
    """Number of events of the run, and hash of the last, once this was written."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (
            self.events
            or self.audits
            or self.insert
            or self.move
            or self.reserve
            or self.rates
            or self.event is not None
            or self.row is not None
        )

    @property
    def tells_others(self) -> bool:
        """Whether somebody may wait for what it changes."""
        return bool(self.insert or self.move)


class Noted:
    """Collects events and audit entries of one run; `take` cuts a batch."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._events: list[NotedEvent] = []
        self._audits: list[NotedAudit] = []

    @property
    def run_id(self) -> str:
        """The run it belongs to."""
        return self._run_id

    @property
    def events(self) -> list[NotedEvent]:
        """What is noted and not yet taken."""
        return self._events

    def append(self, kind: EventKind, payload: bytes | None = None, /, **facts: Fact) -> None:
        """Note one event."""
        self._events.append(NotedEvent(kind, time.time(), facts, payload))

    def audit(self, action: str, /, **facts: Fact) -> None:
        """Note one audit entry."""
        self._audits.append(NotedAudit(action, time.time(), self._run_id, facts))

    def take(self) -> Batch:
        """Return everything noted so far and forget it."""
        batch = Batch(events=self._events, audits=self._audits)
        self._events = []
        self._audits = []
        return batch
