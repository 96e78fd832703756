"""The journal of a run: append-only events, and the store that keeps journals.

What is not in the journal has not happened. The first store keeps journals in memory, for throw-away runs;
the protocols are those a durable store implements too, which is why `Journal.commit` can be awaited: the
pipeline awaits it before a tool with effects is called and before its result is delivered.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

EventValue = str | int | float | bool | bytes | None | tuple[str, ...]

KEPT_RUNS: Final = 32
"""Journals of finished runs that the in-memory store keeps, the newest ones."""


class EventKind(StrEnum):
    """What a journal can say."""

    RUN_STARTED = "run_started"
    CALL_ISSUED = "call_issued"
    CALL_CANCELLED = "call_cancelled"
    SLEEP_ISSUED = "sleep_issued"
    DECIDED = "decided"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_RESOLVED = "approval_resolved"
    DISPATCHED = "dispatched"
    COMPLETED = "completed"
    DELIVERED = "delivered"
    OUTPUT = "output"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One event: its number in the run from 0, host time in seconds since the epoch, and its facts."""

    index: int
    kind: EventKind
    at: float
    facts: Mapping[str, EventValue]


class Journal(Protocol):
    """The journal of one run, written by one run only."""

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """Everything appended so far, in order."""
        ...

    def append(self, kind: EventKind, **facts: EventValue) -> None:
        """Add one event; it is durable only after the next `commit`."""
        ...

    async def commit(self) -> None:
        """Return when everything appended so far is as durable as the store makes it."""
        ...


class Store(Protocol):
    """Where journals are kept."""

    def open_journal(self, run_id: str) -> Journal:
        """Begin the journal of a new run."""
        ...

    def journal(self, run_id: str) -> Journal | None:
        """Return the journal of a run, or None when the store does not (or no longer) hold it."""
        ...


class MemoryJournal:
    """A journal that ends with the process. It notes results by size only, so nothing can be replayed."""

    def __init__(self) -> None:
        self._entries: list[JournalEntry] = []

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        return tuple(self._entries)

    def append(self, kind: EventKind, **facts: EventValue) -> None:
        self._entries.append(JournalEntry(len(self._entries), kind, time.time(), facts))

    async def commit(self) -> None:
        """Return at once: nothing here survives the process."""


class MemoryStore:
    """Keeps the newest journals in memory; the default of an executor."""

    def __init__(self, *, kept_runs: int = KEPT_RUNS) -> None:
        self._kept_runs = kept_runs
        self._journals: OrderedDict[str, MemoryJournal] = OrderedDict()

    def open_journal(self, run_id: str) -> Journal:
        journal = MemoryJournal()
        self._journals[run_id] = journal
        while len(self._journals) > self._kept_runs:
            self._journals.popitem(last=False)
        return journal

    def journal(self, run_id: str) -> Journal | None:
        return self._journals.get(run_id)
