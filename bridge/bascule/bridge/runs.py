"""What can be done with a run from outside: end it, follow it to its end, read its result."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import msgspec

from bascule.bridge.approval_card import ApprovalState, moved
from bascule.bridge.approvals_table import ApprovalConflict
from bascule.bridge.decide import check_response
from bascule.bridge.errors import DecisionRefused, ResumeError, RunBusy, RunNotFound
from bascule.bridge.history import read_history
from bascule.bridge.journal import EventKind, Journal
from bascule.bridge.receipt import CallError, CallState, Receipt
from bascule.bridge.redaction import Redactor
from bascule.bridge.result import JsonValue, Result, Status, Usage, ValueSource
from bascule.bridge.run_grants import MAX_RECORDS
from bascule.bridge.store import LEASE_S, Answer, Store
from bascule.tools import AnyTool, Registry, ResultInvalid
from bascule.wire import Note, ScriptError


async def cancel_run(store: Store, run_id: str) -> bool:
    """End a run; a live worker is told to, a suspended one is finished here, its approvals with it.

    Returns:
        False when it is finished already, or unknown.
    """
    if not await asyncio.to_thread(store.request_cancel, run_id):
        return False
    try:
        journal = await asyncio.to_thread(store.take_lease, run_id)
    except (RunBusy, RunNotFound):  # its worker has seen the request, or will
        return True
    row = store.run(run_id)
    assert row is not None
    await _cancel_approvals(store, journal)
    error = ScriptError(kind="cancelled", message="cancelled: somebody ended this run")
    result = Result(run_id=run_id, status="cancelled", errors=(error,))
    journal.append(EventKind.FINISHED, result.to_json(), status="cancelled", error="cancelled")
    journal.audit("run.finished", status="cancelled", error="cancelled")
    await store.release(journal, row.left_as("finished", outcome="cancelled"))
    return True


async def _cancel_approvals(store: Store, journal: Journal) -> None:
    """End what people were still asked about: nobody shall decide about calls that will never be made."""
    open_ = (ApprovalState.PENDING, ApprovalState.APPROVED)
    while records := store.approvals.find(run_id=journal.run_id, states=open_, limit=MAX_RECORDS):
        for record in records:
            journal.audit("approval.cancelled", approval=record.id, seq=record.seq)
        try:
            await journal.commit(move=[moved(record, ApprovalState.CANCELLED) for record in records])
        except ApprovalConflict:
            continue  # one was decided meanwhile; what stands now is read again


def resolve_call(
    store: Store,
    run_id: str,
    seq: int,
    answer: Answer,
    *,
    attempt: int | None = None,
    registry: Registry | None = None,
    redactor: Redactor | None = None,
) -> bool:
    """Say what became of a call whose outcome is unknown; the first answer about each start counts.

    Args:
        attempt: the start of the call that the operator was shown; None means the last one.
        registry: the tools, where they are known: the result must be what the tool returns.
        redactor: knows the secrets of the host where they are known: they are taken out of the result that
            the operator gives, before it is kept.

    Returns:
        False when this start of the call was answered before.

    Raises:
        RunNotFound: there is no such run.
        ResumeError: ``nothing_unknown``: the call was never started, or its outcome is known.
        DecisionRefused: ``response_invalid``: the result is no JSON, too large, or not what the tool returns.
    """
    journal = store.journal(run_id)
    if journal is None:
        raise RunNotFound(run_id)
    history = read_history(run_id, journal.entries)
    call = None if history is None else history.calls.get(seq)
    outdated = attempt is not None and call is not None and call.dispatches != attempt
    if call is None or call.completed is not None or not call.dispatches or outdated:
        raise ResumeError("nothing_unknown", f"nothing is unknown about call {seq} of {run_id}")
    if answer.value is not None:
        value = _read_given(answer.value, None if registry is None else registry.get(call.tool))
        answer = replace(answer, value=value if redactor is None else redactor.json(value))
    return store.answer(run_id, seq, call.dispatches, answer)


def _read_given(value: bytes, tool: AnyTool | None) -> bytes:
    try:
        given = check_response(msgspec.json.decode(value))
        if tool is not None:
            tool.read_response(given)
        return given
    except ResultInvalid as error:
        raise DecisionRefused("response_invalid", str(error)) from error
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise DecisionRefused("response_invalid", f"the result is no JSON: {error}") from error


async def follow_run(store: Store, run_id: str) -> Result | None:
    """Wait until a run that somebody else works on is finished; None when the store no longer holds it."""
    while (record := store.run(run_id)) is not None:
        if record.status == "finished":
            return read_result(store, run_id)
        await store.changed(LEASE_S)
    return None


def read_result(store: Store, run_id: str) -> Result | None:
    """Return the result of a finished run as its journal has it; None when there is none (any more)."""
    journal = store.journal(run_id)
    entries = () if journal is None else journal.entries
    if not entries or entries[-1].kind is not EventKind.FINISHED:
        return None
    payload = entries[-1].payload
    return None if payload is None else decode_result(payload)


class _Receipt(msgspec.Struct, kw_only=True):
    seq: int
    tool: str
    effects: str | None
    arguments: msgspec.Raw
    line: int
    state: CallState
    duration_s: float
    result_bytes: int
    error: CallError | None
    approved_by: str | None
    edited_by: str | None = None
    answered_by: str | None = None
    duplicate: bool
    cancelled: bool


class _Error(msgspec.Struct, kw_only=True):
    kind: str
    message: str
    line: int | None = None
    column: int | None = None
    source: str | None = None
    suggestion: str | None = None
    exception: str | None = None


class _Note(msgspec.Struct, kw_only=True):
    code: str
    message: str
    line: int | None = None


class _Result(msgspec.Struct, kw_only=True):
    run_id: str
    status: Status
    value: msgspec.Raw
    value_source: ValueSource
    output: str
    errors: list[_Error]
    notes: list[_Note]
    calls: list[_Receipt]
    usage: Usage


def decode_result(data: bytes) -> Result:
    """Return a result from its documented JSON form."""
    read = msgspec.json.decode(data, type=_Result)
    value: JsonValue = msgspec.json.decode(read.value)
    return Result(
        run_id=read.run_id,
        status=read.status,
        value=value,
        value_source=read.value_source,
        output=read.output,
        errors=tuple(ScriptError(**msgspec.structs.asdict(each)) for each in read.errors),
        notes=tuple(Note(**msgspec.structs.asdict(each)) for each in read.notes),
        calls=tuple(map(_receipt, read.calls)),
        usage=read.usage,
    )


def _receipt(read: _Receipt) -> Receipt:
    fields: dict[str, Any] = msgspec.structs.asdict(read)
    fields["arguments"] = bytes(read.arguments)
    return Receipt(**fields)
