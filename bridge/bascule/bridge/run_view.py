"""What a store knows of one run, put together for people: script, calls, what it waits for, how it ended.

Read from the journal as it is, so that runs can be looked at that are going on, or whose values retention has
dropped. Every text in a view is untrusted: show it through `bascule.bridge.display` only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from bascule.bridge.approval_card import ApprovalState, read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.errors import RunNotFound
from bascule.bridge.history import CommandLine, read_started
from bascule.bridge.journal import EventKind, JournalEntry
from bascule.bridge.receipt import CallError, CallState, Receipt
from bascule.bridge.result import Result, receipt_json
from bascule.bridge.runs import decode_result
from bascule.bridge.store import RunRecord, Store
from bascule.wire import ToolFailure

MAX_TITLE_CHARS: Final = 200
"""Characters of a script's first line that are its title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run.

    Attributes:
        record: its row.
        script: None when retention dropped it.
        command: how it was begun, where that was on a command line.
        calls: one receipt per call; of a finished run those of its result.
        output: what it printed so far; None when retention dropped it.
        pending: approvals that wait for people, oldest first.
        unknown: numbers of calls whose host died while they ran, of which an operator must say what happened.
        result: how it ended; None while it goes on, or when retention dropped it.
        error: kind of the error it ended with, which retention keeps.
        left_behind: nobody works on it although it waits for nothing: its host died, or stopped.
        began_at, last_at: times of the first and the last event.
    """

    record: RunRecord
    script: str | None
    calls: tuple[Receipt, ...]
    output: str | None
    pending: tuple[ApprovalRecord, ...] = ()
    unknown: tuple[int, ...] = ()
    result: Result | None = None
    error: str | None = None
    command: CommandLine | None = None
    left_behind: bool = False
    began_at: float = 0.0
    last_at: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/runs.md) as plain data for `msgspec.json`."""
        row = self.record
        return {
            "run_id": row.run_id,
            "status": row.status,
            "outcome": row.outcome,
            "user": row.user,
            "image": row.image,
            "began_at": self.began_at,
            "last_at": self.last_at,
            "reason": row.reason,
            "wake_at": row.wake_at,
            "left_behind": self.left_behind,
            "session": row.session,
            "script_sha256": row.script_sha256,
            "script": self.script,
            "output": self.output,
            "calls": [receipt_json(call) for call in self.calls],
            "approvals": [
                {"id": each.id, "seq": each.seq, "digest": each.digest, "expires_at": each.expires_at}
                for each in self.pending
            ],
            "unknown": self.unknown,
            "error": self.error,
            "result": None if self.result is None else msgspec.Raw(self.result.to_json()),
        }


@dataclass(slots=True)
class _Reading:
    """What was read so far."""

    script: str | None = None
    command: CommandLine | None = None
    output: str | None = ""
    calls: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    result: Result | None = None
    error: str | None = None


def read_view(store: Store, run_id: str) -> RunView:
    """Return what the store knows of a run.

    Raises:
        RunNotFound: it knows nothing.
        ResumeError: ``journal_damaged``: the journal was changed from outside.
    """
    record, journal = store.run(run_id), store.journal(run_id)
    if record is None or journal is None:
        raise RunNotFound(run_id)
    entries = journal.entries
    read = _Reading()
    for entry in entries:
        _add(read, entry)
    waits = [wait.removeprefix("answer:").partition(".")[0] for wait in record.waits if "answer:" in wait]
    unknown = tuple(sorted(map(int, waits)))
    left_behind = _is_left_behind(store, record)
    pending = _pending(store, record)
    for each in pending:
        if each.seq in read.calls:  # not when it was asked after the journal was read
            read.calls[each.seq]["effects"] = read_card(each).effects
    return RunView(
        record=record,
        script=read.script,
        calls=_receipts(read, unknown, left_behind=left_behind),
        left_behind=left_behind,
        output=read.output,
        pending=pending,
        unknown=unknown,
        result=read.result,
        error=read.error,
        command=read.command,
        began_at=entries[0].at if entries else record.created_at,
        last_at=entries[-1].at if entries else record.updated_at,
    )


def _pending(store: Store, record: RunRecord) -> tuple[ApprovalRecord, ...]:
    if record.status == "finished":
        return ()
    return tuple(store.approvals.find(run_id=record.run_id, states=(ApprovalState.PENDING,)))


def _is_left_behind(store: Store, record: RunRecord) -> bool:
    if record.status == "suspended":
        return not (record.waits or record.wake_at)
    return record.status == "running" and record.run_id in store.resumable()


def _receipts(read: _Reading, unknown: Collection[int], *, left_behind: bool) -> tuple[Receipt, ...]:
    if read.result is not None:
        return read.result.calls
    for seq, call in read.calls.items():
        # Until whoever resumes a run that was left behind finds out what became of it.
        if seq in unknown or (left_behind and call["state"] == "running"):
            call["state"] = "unknown"
    return tuple(Receipt(**call) for call in read.calls.values())


def _add(read: _Reading, entry: JournalEntry) -> None:
    facts: Mapping[str, Any] = entry.facts
    payload = entry.payload
    match entry.kind:
        case EventKind.RUN_STARTED:
            started = read_started(payload)
            if started is not None:
                read.script, read.command = started.script, started.command
        case EventKind.OUTPUT:
            known = None if payload is None or read.output is None else payload.decode("utf-8", "replace")
            read.output = None if known is None else f"{read.output}{known}"
        case EventKind.CALL_ISSUED:
            read.calls[facts["seq"]] = {
                "seq": facts["seq"],
                "tool": facts["tool"],
                "effects": None,
                "arguments": b"{}" if payload is None else payload,
                "line": facts["line"],
                "state": "not_started",
            }
        case EventKind.DECIDED if payload is not None:
            read.calls[facts["seq"]]["arguments"] = payload
        case EventKind.DISPATCHED:
            _dispatch(read.calls[facts["seq"]], facts)
        case EventKind.COMPLETED:
            read.calls[facts["seq"]] |= _completed(facts)
        case EventKind.CALL_CANCELLED if facts["seq"] in read.calls:
            read.calls[facts["seq"]]["cancelled"] = True
        case EventKind.FINISHED:
            read.error = facts["error"]
            read.result = None if payload is None else decode_result(payload)
        case _:
            return


def _dispatch(call: dict[str, Any], facts: Mapping[str, Any]) -> None:
    running: CallState = "running"
    call["state"] = running
    if "arguments" in facts:
        call["arguments"] = str(facts["arguments"]).encode()


def _completed(facts: Mapping[str, Any]) -> dict[str, Any]:
    names = ("state", "effects", "duration_s", "result_bytes", "approved_by", "edited_by", "answered_by")
    found = {name: facts[name] for name in (*names, "duplicate") if name in facts}
    if facts.get("failure") is not None:
        failure = msgspec.convert(facts["failure"], ToolFailure)
        found["error"] = CallError(kind=failure.kind, message=failure.message)
    return found


def title_of(script: str) -> str:
    """Return the first line of a script that says something, without the sign of a comment; untrusted."""
    for line in script.split("\n"):
        text = line.strip().removeprefix("#").strip()
        if text:
            return text[:MAX_TITLE_CHARS]
    return ""
