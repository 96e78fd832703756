"""What changes, for everybody who watches: one look at the store per change, however many look on.

Streams hold no queue. Each asks what is new since it last looked, so a slow reader costs nothing but its
connection, misses intermediate states only, and is dropped when it does not read within `SEND_TIMEOUT_S`.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bascule.bridge.approval_card import ApprovalState, Card, read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.errors import ResumeError, StoreError
from bascule.bridge.journal import JournalEntry
from bascule.bridge.store import RunRecord, Store
from bascule.console.problems import Problem

MAX_PENDING: Final = 10_000
"""Pending approvals that are looked at; the inbox says when there are more."""

SETTLE_S: Final = 0.15
"""Changes within this time are seen together."""

LOOK_S: Final = 1.0
"""Longest time between two looks."""

SEND_TIMEOUT_S: Final = 20.0

_STREAM_S: Final = 0.002
"""Between two looks, for each open stream: telling one costs about a tenth of it."""

_KEPT_JOURNALS: Final = 64
_KEPT_LOOKS: Final = 64
_REST: Final = 3
"""Times as long as a look took until the next."""

_log = logging.getLogger("bascule.console")


@dataclass(frozen=True, slots=True)
class Pending:
    """One pending approval and its card, decoded once per version."""

    record: ApprovalRecord
    card: Card


class Hub:
    """Watches one store.

    Args:
        subscribers: how many streams may be open at once.
    """

    def __init__(self, store: Store, *, subscribers: int) -> None:
        self._store = store
        self._places = subscribers
        self._open = 0
        self._tick: asyncio.Future[None] | None = None
        self._ticks = 0
        self._pending: dict[str, Pending] = {}
        self._in_order: Sequence[Pending] = ()
        self._ids: frozenset[str] = frozenset()
        self._looks = 0
        self._process = secrets.token_hex(4)
        self._revision = 0
        self._left: deque[frozenset[str]] = deque(maxlen=_KEPT_LOOKS)
        self._times: list[float] = []
        self._journals: dict[
            str, tuple[int, asyncio.Task[tuple[RunRecord | None, tuple[JournalEntry, ...]]]]
        ] = {}
        self._closed = False

    @property
    def pending(self) -> Sequence[Pending]:
        """The pending approvals, soonest to expire first, then oldest first."""
        return self._in_order

    @property
    def pending_ids(self) -> frozenset[str]:
        """Ids of the pending approvals."""
        return self._ids

    def count_since(self, at: float) -> int:
        """Return how many of the pending approvals were asked after a time."""
        return len(self._times) - bisect_right(self._times, at)

    @property
    def looks(self) -> int:
        """How often the pending approvals were read."""
        return self._looks

    def left_since(self, look: int) -> frozenset[str] | None:
        """Return what is not pending any more since a look, or None when that was too long ago.

        What it costs depends on how many were decided, not on how many are pending.
        """
        count = self._looks - look
        if count > len(self._left):
            return None
        return frozenset(each for number in range(1, count + 1) for each in self._left[-number])

    @property
    def revision(self) -> str:
        """Name of the pending approvals as they are: after each change another one that was never used."""
        return f"{self._process}-{self._revision}"

    @property
    def closed(self) -> bool:
        """Whether streams must end."""
        return self._closed

    async def look(self) -> None:
        """Read which approvals are pending, and those of them that are new or have changed."""
        before = self._pending
        self._pending = await asyncio.to_thread(self._read_pending, before)
        # Once per change, not once per stream that looks on.
        self._in_order = sorted(self._pending.values(), key=_urgency)
        ids = frozenset(self._pending)
        self._left.append(self._ids - ids)
        self._looks += 1
        if len(before) != len(self._pending) or any(
            before.get(key) is not each for key, each in self._pending.items()
        ):
            self._revision += 1
        self._ids = ids
        self._times = sorted(each.record.created_at for each in self._in_order)

    def _read_pending(self, known: Mapping[str, Pending]) -> dict[str, Pending]:
        approvals = self._store.approvals
        versions = approvals.versions(ApprovalState.PENDING, limit=MAX_PENDING)
        found = {
            each: known[each]
            for each, version in versions.items()
            if each in known and known[each].record.version == version
        }
        if fresh := versions.keys() - found.keys():
            for record in approvals.find(ids=fresh, states=(ApprovalState.PENDING,), limit=len(fresh)):
                found[record.id] = Pending(record, read_card(record))
        return found

    async def watch(self) -> None:
        """Look at every change until cancelled; with very many pending or streams less often."""
        took_s = 0.0
        while True:
            try:
                await self._store.changed(LOOK_S)
                await asyncio.sleep(min(max(SETTLE_S, _REST * took_s, _STREAM_S * self._open), LOOK_S))
                began = time.monotonic()
                await self.look()
                took_s = time.monotonic() - began
            except StoreError as error:
                _log.error("the store cannot be read: %s", error)
                await asyncio.sleep(LOOK_S)
            self._ring()

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        self._ring()

    async def next(self, within_s: float) -> None:
        """Return at the next change, or after a time."""
        if self._closed:
            return
        if self._tick is None or self._tick.done():
            self._tick = asyncio.get_running_loop().create_future()
        await asyncio.wait((self._tick,), timeout=within_s)

    def check_place(self) -> None:
        """Refuse one more stream when all places are taken.

        Raises:
            Problem: 503.
        """
        if self._open >= self._places:
            raise Problem(503, "too_many_streams", "too many streams are open", headers={"Retry-After": "10"})

    @contextmanager
    def place(self) -> Generator[None]:
        """Take the place of one stream."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    async def read_run(self, run_id: str) -> tuple[RunRecord | None, tuple[JournalEntry, ...]]:
        """Return row and journal of a run as of the last change; those who look on share the reading.

        Raises:
            ResumeError, StoreError: the journal cannot be read.
        """
        known = self._journals.get(run_id)
        if known is None or known[0] != self._ticks:
            if len(self._journals) >= _KEPT_JOURNALS:
                self._journals.clear()
            task = asyncio.create_task(asyncio.to_thread(self._read_run, run_id))
            task.add_done_callback(_take_note)
            known = self._journals[run_id] = (self._ticks, task)
        return await asyncio.shield(known[1])

    def _read_run(self, run_id: str) -> tuple[RunRecord | None, tuple[JournalEntry, ...]]:
        row = self._store.run(run_id)
        journal = None if row is None else self._store.journal(run_id)
        return row, () if journal is None else journal.entries

    def _ring(self) -> None:
        self._ticks += 1
        self._journals.clear()
        tick, self._tick = self._tick, None
        if tick is not None and not tick.done():
            tick.set_result(None)


def _take_note(task: asyncio.Task[tuple[RunRecord | None, tuple[JournalEntry, ...]]]) -> None:
    """Take note of an error that nobody may be left to take."""
    if not task.cancelled() and isinstance(task.exception(), ResumeError | StoreError):
        _log.error("a journal cannot be read: %s", task.exception())


def _urgency(each: Pending) -> tuple[float, float, str, int]:
    record = each.record
    expires_at = float("inf") if record.expires_at is None else record.expires_at
    return expires_at, record.created_at, record.run_id, record.seq
