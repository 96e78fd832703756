"""What a journal says about a run, for those who look on: calls with their times, outcomes, events.

Reads in one pass what the run wrote; everything in it that stems from script or tools is untrusted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import msgspec

from bascule.bridge.approval_card import ApprovalState
from bascule.bridge.history import StartedRun
from bascule.bridge.journal import EventKind, JournalEntry
from bascule.bridge.run_view import title_of
from bascule.bridge.store import RunRecord, Store
from bascule.console.schemas import RunReply, UnknownReply

MAX_ROWS: Final = 1000
"""Unfinished runs looked at for unknown outcomes."""


@dataclass(slots=True)
class CallView:
    """One call of a run; times in seconds since the epoch.

    Attributes:
        arguments: JSON, canonical once validated.
        result: JSON of what it returned, None before, or when retention dropped it.
        in_doubt: it was started, its host died, and nobody has said what became of it.
    """

    seq: int
    tool: str
    line: int
    issued_at: float
    arguments: bytes = b"{}"
    rules: tuple[str, ...] = ()
    effect: str = ""
    asked_at: float | None = None
    decided_at: float | None = None
    decided_by: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    attempts: int = 0
    state: str = "issued"
    effects: str | None = None
    result: bytes | None = None
    result_bytes: int = 0
    failure: str = ""
    approval: str = ""
    approved_by: str = ""
    edited_by: str = ""
    answered_by: str = ""
    in_doubt: bool = False
    cancelled: bool = False
    started_index: int = -1


@dataclass(slots=True)
class RunView:
    """A run so far."""

    row: RunRecord
    script: str = ""
    calls: dict[int, CallView] = field(default_factory=dict[int, CallView])
    entries: Sequence[JournalEntry] = ()
    output: str = ""
    result: dict[str, Any] | None = None
    pruned: bool = False

    @property
    def in_doubt(self) -> list[CallView]:
        """Calls whose outcome is unknown."""
        return [call for call in self.calls.values() if call.in_doubt]


def view_run(row: RunRecord, entries: Sequence[JournalEntry], store: Store | None = None) -> RunView:
    """Return what a journal says.

    Args:
        store: asked for operators' answers about calls in doubt; None leaves no call in doubt.
    """
    view = RunView(row, entries=entries)
    resumed = -1
    output: list[bytes] = []
    for entry in entries:
        if entry.kind is EventKind.RESUMED:
            resumed = entry.index
        elif entry.kind is EventKind.OUTPUT:
            output.append(entry.payload or b"")
        else:
            _add(view, entry)
    view.output = b"".join(output).decode("utf-8", "replace")
    if store is not None and row.status != "finished":
        for call in view.calls.values():
            call.in_doubt = _is_in_doubt(call, row, resumed, store)
    return view


def _is_in_doubt(call: CallView, row: RunRecord, resumed: int, store: Store) -> bool:
    started = call.started_at is not None and call.ended_at is None and call.effects in (None, "once")
    waits = f"answer:{call.seq}.{call.attempts}" in row.waits
    if not started or not (waits or (row.status == "running" and resumed > call.started_index)):
        return False
    return store.find_answer(row.run_id, call.seq, call.attempts) is None


def _add(view: RunView, entry: JournalEntry) -> None:
    facts = cast("dict[str, Any]", entry.facts)
    payload = entry.payload
    kind = entry.kind
    if kind is EventKind.RUN_STARTED:
        view.pruned = payload is None
        if payload is not None:
            view.script = msgspec.json.decode(payload, type=StartedRun).script
        return
    if kind is EventKind.FINISHED:
        view.result = None if payload is None else json.loads(payload)
        return
    if kind is EventKind.CALL_ISSUED:
        call = CallView(int(facts["seq"]), str(facts["tool"]), int(facts["line"]), entry.at)
        call.arguments = payload or b"{}"
        view.calls[call.seq] = call
        return
    found = view.calls.get(int(facts["seq"])) if "seq" in facts else None
    if found is not None:
        _change(found, entry, facts)


def _change(call: CallView, entry: JournalEntry, facts: dict[str, Any]) -> None:
    match entry.kind:
        case EventKind.CALL_CANCELLED:
            call.cancelled = True
        case EventKind.DECIDED:
            call.arguments = entry.payload or call.arguments
            call.effect, call.rules = str(facts["effect"]), tuple(facts["rules"])
        case EventKind.APPROVAL_REQUESTED:
            call.asked_at, call.approval, call.state = entry.at, str(facts["approval"]), "waiting"
        case EventKind.APPROVAL_RESOLVED:
            call.decided_at, call.decided_by = entry.at, str(facts["by"] or "")
            call.state = str(facts["state"])
        case EventKind.DISPATCHED:
            if facts.get("pending") is None:
                call.started_at, call.started_index = entry.at, entry.index
                call.attempts += 1
            if "arguments" in facts:
                call.arguments = str(facts["arguments"]).encode()
            call.state = "running"
        case EventKind.COMPLETED:
            call.ended_at, call.result = entry.at, entry.payload
            call.state, call.effects = str(facts["state"]), facts["effects"]
            call.result_bytes = int(facts["result_bytes"] or 0)
            call.failure = "" if facts["failure"] is None else str(facts["failure"]["message"])
            call.approved_by = facts["approved_by"] or ""
            call.edited_by = facts["edited_by"] or ""
            call.answered_by = facts["answered_by"] or ""
        case _:
            pass


def read_run_view(row: RunRecord, store: Store) -> RunView:
    """Read and view a run. Blocks."""
    journal = store.journal(row.run_id)
    return view_run(row, () if journal is None else journal.entries, store)


def run_reply(row: RunRecord, view: RunView | None = None, store: Store | None = None) -> RunReply:
    """Return a run for a program; with a view and store, everything that is known of it."""
    reply = RunReply(
        id=row.run_id,
        status=row.status,
        outcome=row.outcome,
        reason=row.reason,
        user=row.user,
        created_at=row.created_at,
        updated_at=row.updated_at,
        wake_at=row.wake_at,
        session=row.session,
        cancel_requested=row.cancel_requested,
        script_sha256=row.script_sha256,
        image=row.image,
        waits=list(row.waits),
    )
    if view is not None:
        reply.title = None if view.pruned else title_of(view.script)
        reply.result = view.result
        reply.unknown = [unknown_reply(row, call) for call in view.in_doubt]
    if store is not None and row.status != "finished":
        waiting = store.approvals.find(run_id=row.run_id, states=(ApprovalState.PENDING,), limit=20_000)
        reply.waiting = [record.id for record in waiting]
    return reply


def list_reply(row: RunRecord, store: Store) -> RunReply:
    """Return a run for a list: its row, and what its script is called by. Blocks."""
    started = store.started(row.run_id)
    script = None if started is None else started.script
    reply = run_reply(row)
    reply.title = None if script is None else title_of(script)
    return reply


def unknown_reply(row: RunRecord, call: CallView) -> UnknownReply:
    """Return a call in doubt for a program."""
    return UnknownReply(
        run_id=row.run_id,
        seq=call.seq,
        attempt=call.attempts,
        tool=call.tool,
        line=call.line,
        arguments_json=call.arguments.decode("utf-8", "replace"),
        started_at=call.started_at or 0.0,
        user=row.user,
    )


def find_unknown(store: Store) -> list[tuple[RunRecord, CallView]]:
    """Return every call in doubt of runs that are not finished. Blocks."""
    found: list[tuple[RunRecord, CallView]] = []
    for row in _candidates(store):
        found += [(row, call) for call in read_run_view(row, store).in_doubt]
    return found


def _candidates(store: Store) -> Iterable[RunRecord]:
    for row in store.runs(status="suspended", limit=MAX_ROWS):
        if any(wait.startswith("answer:") for wait in row.waits):
            yield row
    for row in store.runs(status="running", limit=MAX_ROWS):
        if row.epoch > 1:  # it was taken up at least once
            yield row
