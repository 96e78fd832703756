"""The journal of one run in the in-memory store."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bascule.bridge.approvals_table import ApprovalMove, ApprovalRecord, Reservation
from bascule.bridge.journal import EventKind, Fact, JournalEntry
from bascule.bridge.noted import Noted, NotedEvent
from bascule.bridge.rates import Rate

if TYPE_CHECKING:
    from bascule.bridge.memory_store import MemoryStore


class MemoryJournal(Noted):
    """A journal that ends with the process."""

    def __init__(self, store: MemoryStore, run_id: str, epoch: int, written: list[NotedEvent]) -> None:
        super().__init__(run_id)
        self._store = store
        self.epoch = epoch
        self.written = written

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """See `Journal.entries`."""
        return tuple(
            JournalEntry(index, event.kind, event.at, event.facts, event.payload)
            for index, event in enumerate((*self.written, *self.events))
        )

    async def flush(self) -> None:
        """See `Journal.flush`."""
        self._store.write(self, self.take())

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
        """See `Journal.commit`; nothing is durable here."""
        batch = self.take()
        batch.insert, batch.move, batch.reserve, batch.rates = insert, move, reserve, rates
        if event is not None:
            batch.event = NotedEvent(event[0], time.time(), event[1], event[2])
        self._store.write(self, batch)
