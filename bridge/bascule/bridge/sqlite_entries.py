"""Reads a run's journal back from a SQLite store, proven against its hash chain."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from bascule.bridge.errors import ResumeError
from bascule.bridge.journal import GENESIS, JournalEntry, chain, digest_of
from bascule.bridge.sqlite_rows import payload_digest, read_event

if TYPE_CHECKING:
    from bascule.bridge.sqlite_store import SqliteStore


def read_entries(store: SqliteStore, run_id: str) -> tuple[JournalEntry, ...]:
    """Return the written events of a run.

    The row of the run proves the events up to the last that was flushed to disk; behind that the end of the
    chain may be missing, as it is after a power failure.

    Raises:
        ResumeError: ``journal_damaged``: an event was changed, removed or added from outside.
    """
    rows = store.read("SELECT id, events, hash FROM runs WHERE run_id = ?", run_id)
    if not rows:
        return ()
    run, count, last = rows[0]
    found: list[JournalEntry] = []
    previous = GENESIS
    for row in store.read(
        "SELECT idx, kind, at, facts, payload, hash FROM events WHERE run = ? ORDER BY idx", run
    ):
        try:
            entry, facts, link = read_event(row)
            previous = chain(previous, entry.index, entry.kind, entry.at, facts)
            entry = _with_payload(store, run, entry)
            sound = link == previous and entry.index == len(found) and _payload_fits(entry)
        except (TypeError, ValueError, msgspec.MsgspecError) as error:  # a column of the wrong type
            raise _damaged(run_id, len(found)) from error
        if not sound:
            raise _damaged(run_id, len(found))
        found.append(entry)
        if len(found) == count and previous != last:
            raise _damaged(run_id, len(found))
    if len(found) < count:
        raise _damaged(run_id, len(found))
    return tuple(found)


def _with_payload(store: SqliteStore, run: int, entry: JournalEntry) -> JournalEntry:
    digest = payload_digest(entry)
    if digest is None or entry.payload is not None:
        return entry
    rows = store.read("SELECT value FROM blobs WHERE run = ? AND sha256 = ?", *(run, digest))
    return replace(entry, payload=rows[0][0]) if rows else entry


def _payload_fits(entry: JournalEntry) -> bool:
    return entry.payload is None or digest_of(entry.payload) == payload_digest(entry)


def _damaged(run_id: str, index: int) -> ResumeError:
    return ResumeError(
        "journal_damaged", f"the journal of {run_id} does not hold together at event {index}; it was changed"
    )
