"""What a journal says about a run so far, read once and indexed: the commands, the deliveries, the outcomes.

Trusts the journal, whose chain its store has proven. An *act* is what the guest did in one stretch: act 0
answers Start, act n the n-th delivery.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import msgspec

from bascule.bridge.errors import ResumeError
from bascule.bridge.journal import JOURNAL_VERSION, EventKind, JournalEntry
from bascule.wire import GuestLimits, ToolFailure, ToolStub

_COMMANDS: Final = (EventKind.CALL_ISSUED, EventKind.SLEEP_ISSUED, EventKind.CALL_CANCELLED)


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """How a run was begun on a command line, so that others can go on with it.

    Attributes:
        flags: those that resuming it needs again, tools and policy among them.
        folder: where it was begun; relative paths in ``flags`` start there.
    """

    flags: tuple[str, ...]
    folder: str


class StartedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Payload of RUN_STARTED: what the guest is told, so that a replayed one is told the same.

    Attributes:
        command: of a run that was begun on a command line.
    """

    script: str
    tools: tuple[ToolStub, ...]
    limits: GuestLimits
    command: CommandLine | None = None


def read_started(payload: bytes | None) -> StartedRun | None:
    """Return the payload of RUN_STARTED; None when retention dropped that."""
    return None if payload is None else msgspec.json.decode(payload, type=StartedRun)


@dataclass(frozen=True, slots=True)
class Command:
    """One recorded command: ``what`` a replay must repeat, and the same ``shown`` for people."""

    what: tuple[object, ...]
    shown: str


@dataclass(frozen=True, slots=True)
class Printed:
    """A piece of output.

    Attributes:
        text: as it is kept.
        raw_bytes, raw_sha256: size and digest of what the script printed, where a secret was taken out of it.
    """

    text: bytes
    raw_bytes: int
    raw_sha256: str | None = None


@dataclass(slots=True)
class Act:
    """One stretch: commands in order, printed text, and whether it is known to be whole."""

    commands: list[Command] = field(default_factory=list[Command])
    printed: list[Printed] = field(default_factory=list[Printed])
    whole: bool = False


@dataclass(slots=True)
class CallHistory:
    """What is known of one call.

    Attributes:
        tool: its name as the script wrote it.
        arguments: canonical JSON, None before policy saw it.
        rules: names of the policy rules that decided.
        executed: the canonical JSON that ran, where a person edited it.
        approved_by, edited_by: who let its tool be started, and who changed the arguments before.
        dispatches: how often its tool was started.
        key: the idempotency key it was started with.
        pending: token and time of the next question, when its tool handed over to a job elsewhere.
        completed: the COMPLETED event.
    """

    tool: str = ""
    arguments: bytes | None = None
    rules: tuple[str, ...] = ()
    executed: str | None = None
    approved_by: str | None = None
    edited_by: str | None = None
    dispatches: int = 0
    key: str = ""
    pending: Mapping[str, Any] | None = None
    completed: JournalEntry | None = None
    cancelled: bool = False

    @property
    def failure(self) -> ToolFailure | None:
        """Why it gave no value."""
        found = None if self.completed is None else self.completed.facts.get("failure")
        return None if found is None else msgspec.convert(found, ToolFailure)

    @property
    def value(self) -> bytes:
        """The value that was delivered."""
        return b"null" if self.completed is None else self.completed.payload or b"null"


@dataclass(slots=True)
class History:
    """A run so far.

    Attributes:
        batches: the Done frames in order: (seq, now) of each delivery.
        order: completed calls in the order of their completion.
        sleeps: when each sleep is due, seconds since the epoch.
        last_now: the latest time the script was told.
        used_s: seconds that counted against ``run_s`` until the run was suspended.
    """

    started: StartedRun
    facts: Mapping[str, Any]
    acts: dict[int, Act] = field(default_factory=dict[int, Act])
    batches: list[tuple[tuple[int, float], ...]] = field(default_factory=list[tuple[tuple[int, float], ...]])
    calls: dict[int, CallHistory] = field(default_factory=dict[int, CallHistory])
    order: list[int] = field(default_factory=list[int])
    sleeps: dict[int, float] = field(default_factory=dict[int, float])
    last_now: float = 0.0
    used_s: float = 0.0
    finished: JournalEntry | None = None

    def act(self, number: int) -> Act:
        """Return the act of a number, empty when nothing is recorded of it."""
        return self.acts.get(number) or Act()

    def call(self, seq: int) -> CallHistory:
        """Return what is known of a call, to be added to."""
        return self.calls.setdefault(seq, CallHistory())


def read_history(run_id: str, entries: Iterable[JournalEntry]) -> History | None:
    """Index a journal; None when nothing was written before the host died.

    Raises:
        ResumeError: it was written by a newer version, or values that replay needs were dropped.
    """
    history: History | None = None
    for entry in entries:
        if history is None:
            history = _begin(run_id, entry)
        else:
            _add(run_id, history, entry)
    if history is not None:
        _mark_whole(history)
    return history


def started_tools(entries: Iterable[JournalEntry]) -> set[str]:
    """Return the names of the tools that a run started; read from facts alone, which retention keeps."""
    names: dict[object, str] = {}
    started: set[str] = set()
    for entry in entries:
        if entry.kind is EventKind.CALL_ISSUED:
            names[entry.facts["seq"]] = str(entry.facts["tool"])
        elif entry.kind is EventKind.DISPATCHED:
            started.add(names[entry.facts["seq"]])
    return started


def _begin(run_id: str, entry: JournalEntry) -> History:
    version = entry.facts.get("version")
    if not isinstance(version, int) or version > JOURNAL_VERSION:
        raise ResumeError(
            "journal_newer", f"the journal of {run_id} has version {version}, this bascule reads 1; upgrade"
        )
    started = msgspec.json.decode(_payload(run_id, entry), type=StartedRun)
    return History(started, entry.facts, last_now=float(cast("float", entry.facts["now"])))


def _add(run_id: str, history: History, entry: JournalEntry) -> None:
    facts: Mapping[str, Any] = entry.facts
    kind = entry.kind
    if kind in _COMMANDS:
        act = history.acts.setdefault(facts["act"], Act())
        act.commands.append(_command(kind, facts))
        act.whole = True
        if kind is EventKind.SLEEP_ISSUED:
            history.sleeps[facts["seq"]] = facts["due"]
        elif kind is EventKind.CALL_ISSUED:
            history.call(facts["seq"]).tool = facts["tool"]
        elif facts["seq"] in history.calls:
            history.calls[facts["seq"]].cancelled = True
        else:
            history.sleeps.pop(facts["seq"], None)
    elif kind is EventKind.OUTPUT:
        act = history.acts.setdefault(facts["act"], Act())
        text = _payload(run_id, entry)
        act.printed.append(Printed(text, facts.get("raw_bytes", len(text)), facts.get("raw_sha256")))
        act.whole = act.whole or bool(facts["whole"])
    elif kind is EventKind.DECIDED:
        history.call(facts["seq"]).arguments = entry.payload
        history.call(facts["seq"]).rules = tuple(facts["rules"])
    elif kind is EventKind.DISPATCHED:
        call = history.call(facts["seq"])
        call.pending = facts.get("pending")
        call.dispatches += call.pending is None
        call.key = facts.get("key", call.key)
        call.approved_by = facts.get("approved_by", call.approved_by)
        call.edited_by = facts.get("edited_by", call.edited_by)
        # Journals of the first versions have them among the facts, which retention keeps.
        edited = facts.get("arguments") if entry.payload is None else entry.payload.decode()
        call.executed = call.executed if edited is None else edited
    elif kind is EventKind.COMPLETED:
        if facts.get("failure") is None:
            _payload(run_id, entry)
        history.call(facts["seq"]).completed = entry
        history.order.append(facts["seq"])
    elif kind is EventKind.DELIVERED:
        history.batches.append(tuple(zip(facts["seqs"], facts["nows"], strict=True)))
        history.last_now = max(history.last_now, *facts["nows"])
    elif kind is EventKind.SUSPENDED:
        history.used_s = max(history.used_s, facts.get("used_s", 0.0))
    elif kind is EventKind.FINISHED:
        history.finished = entry


def _command(kind: EventKind, facts: Mapping[str, Any]) -> Command:
    seq = facts["seq"]
    if kind is EventKind.CALL_ISSUED:
        return call_command(seq, facts["tool"], facts["args_sha256"], facts["line"])
    if kind is EventKind.SLEEP_ISSUED:
        return sleep_command(seq, facts["seconds"])
    return cancel_command(seq)


def call_command(seq: int, tool: str, args_sha256: str, line: int) -> Command:
    """Return a call as it is compared: number, tool and digest of the arguments."""
    return Command(
        ("call", seq, tool, args_sha256), f"call {seq} {tool} (line {line}, arguments {args_sha256[:12]})"
    )


def sleep_command(seq: int, seconds: float) -> Command:
    """Return a sleep as it is compared."""
    return Command(("sleep", seq, float(seconds)), f"sleep {seq} of {seconds:g} s")


def cancel_command(seq: int) -> Command:
    """Return a cancel as it is compared."""
    return Command(("cancel", seq), f"cancel {seq}")


def _mark_whole(history: History) -> None:
    """Find the acts of which everything is recorded: a frame's acts are written together or not at all.

    Everything before the last batch was answered; the acts that answer the last one are whole as soon as
    anything of that one frame is recorded.
    """
    delivered = sum(map(len, history.batches))
    if history.finished is not None:
        for number in range(delivered + 1):
            history.acts.setdefault(number, Act()).whole = True
        return
    first = delivered - (len(history.batches[-1]) if history.batches else 0) + bool(history.batches)
    last = range(first, delivered + 1)
    answered = any(history.act(number).whole for number in last)
    for number in range(first):
        history.acts.setdefault(number, Act()).whole = True
    for number in last:
        history.acts.setdefault(number, Act()).whole = answered


def _payload(run_id: str, entry: JournalEntry) -> bytes:
    if entry.payload is None:
        raise ResumeError(
            "journal_pruned", f"the journal of {run_id} has lost its values to retention; it cannot run again"
        )
    return entry.payload
