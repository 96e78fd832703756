"""Recordings: the journal of a finished run as a file of JSON lines, and a rerun of it without tools.

A recording holds the script, every argument and every result: treat it as the data it is. One that is read
back is trusted no more than its reader trusts the file; a rerun starts no tool and has no network, so the
worst it can do is to fail.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from bascule.bridge.approval import deny_all
from bascule.bridge.circuits import Circuits
from bascule.bridge.errors import ResumeError
from bascule.bridge.events import EventChannel
from bascule.bridge.guest import start_guest
from bascule.bridge.history import History, read_history
from bascule.bridge.journal import PAYLOAD_DIGEST, EventKind, JournalEntry, digest_of
from bascule.bridge.lanes import Resources
from bascule.bridge.limits import Limits
from bascule.bridge.live_run import LiveRun
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.narrator import Narrator
from bascule.bridge.order import Surroundings, order_of
from bascule.bridge.policy import Policy
from bascule.bridge.receipt import Receipt
from bascule.bridge.redaction import Redactor
from bascule.bridge.result import Result
from bascule.bridge.runs import decode_result
from bascule.bridge.workers import Workers
from bascule.sandbox import Backend
from bascule.tools import Registry

RECORDING_VERSION: Final = 1
_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Recording:
    """One finished run."""

    run_id: str
    entries: tuple[JournalEntry, ...]
    history: History
    result: Result


@dataclass(frozen=True, slots=True)
class Rerun:
    """What came of running a recorded script again; no problems means it did the same."""

    result: Result
    problems: tuple[str, ...]


def make_recording(run_id: str, entries: Iterable[JournalEntry]) -> Recording:
    """Read a journal as a recording.

    Raises:
        ResumeError: the run is not finished or was cancelled, or its values are gone.
    """
    listed = tuple(entries)
    history = read_history(run_id, listed)
    if history is None or history.finished is None or history.finished.payload is None:
        raise ResumeError(
            "recording_unfinished", f"{run_id} is not finished; only finished runs are recorded"
        )
    result = decode_result(history.finished.payload)
    if result.status == "cancelled":
        raise ResumeError(
            "recording_unfinished",
            f"{run_id} was cancelled; only scripts that came to an end of their own replay",
        )
    return Recording(run_id, listed, history, result)


def write_recording(recording: Recording, path: Path) -> None:
    """Write a recording, readable for its owner only."""
    lines = [msgspec.json.encode({"bascule_recording": RECORDING_VERSION, "run_id": recording.run_id})]
    for entry in recording.entries:
        kept = entry.payload
        if entry.kind is EventKind.RUN_STARTED:
            # Recordings are handed on; where and how somebody began the run is nobody's business.
            kept = msgspec.json.encode(msgspec.structs.replace(recording.history.started, command=None))
        payload = None if kept is None else kept.decode("utf-8")
        facts = {key: value for key, value in entry.facts.items() if key != PAYLOAD_DIGEST}
        line = {"index": entry.index, "kind": entry.kind, "at": entry.at, "facts": facts, "payload": payload}
        lines.append(msgspec.json.encode(line))
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(b"\n".join(lines) + b"\n")


def read_recording(path: Path) -> Recording:
    """Read a recording.

    Raises:
        ResumeError: ``recording_invalid``: it is none, a newer one, or damaged; the message says where.
        OSError: it cannot be read.
    """
    lines = path.read_bytes().splitlines()
    number = 1
    try:
        head = msgspec.json.decode(lines[0], type=dict[str, Any])
        if head.get("bascule_recording") != RECORDING_VERSION:
            raise ValueError(f"its version is {head.get('bascule_recording')!r}, this bascule reads 1")
        entries: list[JournalEntry] = []
        for number, line in enumerate(lines[1:], 2):
            entries.append(_read_line(line, number - 2))
        return make_recording(str(head["run_id"]), entries)
    except (IndexError, KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise ResumeError(
            "recording_invalid", f"{path} is not a usable recording, line {number}: {error}"
        ) from error


def _read_line(line: bytes, index: int) -> JournalEntry:
    read = msgspec.json.decode(line, type=dict[str, Any])
    if read["index"] != index:
        raise ValueError(f"event {index} is missing")
    payload = None if read["payload"] is None else str(read["payload"]).encode()
    facts = cast("dict[str, Any]", read["facts"])
    if payload is not None:
        facts[PAYLOAD_DIGEST] = digest_of(payload)
    return JournalEntry(index, EventKind(read["kind"]), float(read["at"]), facts, payload)


async def rerun(recording: Recording, backend: Backend) -> Rerun:
    """Run a recorded script again, give it what was recorded, and compare what it does.

    The guest may be a newer one than that of the recording. Nothing but the recording answers its calls.

    Raises:
        SandboxError, HandshakeError: there is no sandbox to be had.
    """
    history = recording.history
    order = dataclasses.replace(order_of(recording.run_id, history), session=None)
    store = MemoryStore()
    workers, events = Workers(size=1), EventChannel()
    around = Surroundings(
        backend=backend,
        registry=Registry([]),
        stubs=order.stubs,
        policy=Policy.default,
        approver=deny_all,
        limits=_limits_of(history),
        store=store,
        events=events,
        workers=workers,
        approver_workers=workers,
        resources=Resources(),
        redactor=Redactor(),
        circuits=Circuits(),
    )
    journal = store.open_journal(order.record("running"))
    run = LiveRun(
        order,
        around,
        await start_guest(backend, around.limits, recording.run_id),
        journal,
        Narrator(recording.run_id, events),
        history,
    )
    try:
        result = await run.to_end()
    finally:
        await run.clean_up()
        workers.close()
    return Rerun(result, tuple(_compare(recording.result, result)))


def _limits_of(history: History) -> Limits:
    told = history.started.limits
    return dataclasses.replace(
        _LIMITS,
        wall_s=told.wall_s,
        cpu_s=told.cpu_s,
        memory_bytes=told.memory_bytes,
        output_bytes=told.output_bytes,
        recursion=told.recursion,
        calls=told.calls,
    )


def _compare(before: Result, after: Result) -> Iterable[str]:
    if after.status == "diverged":
        yield "" if after.error is None else after.error.message
        return
    for what in ("status", "value", "value_source", "output"):
        was, now = getattr(before, what), getattr(after, what)
        if was != now:
            yield f"{what}: recorded {was!r:.500}, now {now!r:.500}"
    was_errors = [(error.kind, error.message, error.line) for error in before.errors]
    now_errors = [(error.kind, error.message, error.line) for error in after.errors]
    if was_errors != now_errors:
        yield f"errors: recorded {was_errors!r:.500}, now {now_errors!r:.500}"
    was_calls, now_calls = [list(map(_call, each.calls)) for each in (before, after)]
    if was_calls != now_calls:
        yield f"calls: recorded {was_calls!r:.1000}, now {now_calls!r:.1000}"


def _call(receipt: Receipt) -> tuple[object, ...]:
    return (receipt.seq, receipt.tool, receipt.arguments, receipt.line, receipt.state, receipt.approved_by)
