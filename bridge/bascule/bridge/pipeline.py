"""The pipeline of one call, top to bottom. Every call of every script takes this way and no other.

It trusts the registry, the policy and the approver, which are the operator's. It trusts neither the call
(name, arguments, line come from an untrusted guest) nor the text of what a tool raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from bascule.bridge.auditing import audit_call
from bascule.bridge.crossing import Crossing
from bascule.bridge.dispatch import call_tool, check_business, check_given, make_deliverable
from bascule.bridge.events import EventName
from bascule.bridge.execution import (
    context_of,
    executed_arguments,
    start_facts,
    start_payload,
    waiting_turn,
)
from bascule.bridge.failure import CallFailed, given_up, secret_in_arguments, withheld
from bascule.bridge.finding import find_tool, validate_arguments
from bascule.bridge.history import CallHistory
from bascule.bridge.journal import EventKind
from bascule.bridge.lanes import Turn
from bascule.bridge.ledger import CallRecord, Ledger
from bascule.bridge.preview import preview_call
from bascule.bridge.receipt import CallError, CallState
from bascule.bridge.recovery import GivenValue
from bascule.bridge.rehearsal import NOTHING
from bascule.tools import AnyTool, Arguments, ToolContext
from bascule.wire import ToolFailure

_END_EVENTS: Final[Mapping[CallState, EventName]] = {"denied": "call.denied", "withheld": "call.withheld"}


@dataclass(slots=True)
class _Held:
    """What one call holds as long as it is not over."""

    turn: Turn | None = None
    argument_bytes: int = 0


async def cross(record: CallRecord, shared: Crossing) -> bytes | ToolFailure:
    """Take one call over the bridge; return its result as JSON, or why there is none.

    Everything before the first wait happens in issue order, because the calls of a run are begun in it.

    Raises:
        LimitReached: the whole run is over.
    """
    held = _Held()
    try:
        result = await _pass(record, shared, held)
        shared.gate.evidence.remember(record.call.seq, record.call.tool, result)
        record.result_bytes = len(result)
        _complete(record, shared, "call.completed", result)
        if record.effects != "read":
            await shared.journal.commit()
        return result
    except CallFailed as failed:
        record.keep_bytes()
        failure = shared.redactor.failure(failed.failure)
        record.state = failed.state
        record.error = CallError(kind=failure.kind, message=failure.message)
        name: EventName = _END_EVENTS.get(failed.state, "call.failed")
        _complete(record, shared, name, failure=failure)
        if record.dispatched and record.effects != "read":
            await shared.journal.commit()
        return failure
    finally:
        shared.budget.release_arguments(held.argument_bytes)
        if held.turn is not None:
            held.turn.leave()


async def _pass(record: CallRecord, shared: Crossing, held: _Held) -> bytes:
    """Take one call through all stages; return its result.

    Raises:
        CallFailed: a stage stopped it, or its tool failed.
    """
    past = record.past if record.past is not None and record.past.dispatches > 0 else None
    try:
        tool = find_tool(shared.registry, shared.offered, record.call)
        arguments = _take_arguments(tool, record, shared, held, past)
    except CallFailed as unfit:
        if past is None or record.effects == "read":
            raise
        return await _settle_changed(record, past, shared, held, unfit)
    turn = held.turn = shared.lanes.take_turn(tool)
    if tool.effects == "once":
        record.duplicate = not _is_first(record, shared.ledger)
    if past is not None:  # it was let through and started by an earlier worker
        async with turn:
            value = await _settle(tool, arguments, record, past, shared)
            return _deliverable(tool, value, record, shared)
    with shared.gate.asking.preparing():
        await _check(tool, arguments, record, shared)
        verdict = shared.gate.decide(tool, record, arguments)
    if shared.rehearsal is not None and shared.rehearsal.withholds(tool, record, verdict):
        if tool.returns != NOTHING:
            raise withheld(tool, record.call.line)
        record.state = "withheld"
        return b"null"
    while True:
        clearance = await shared.gate.clear(
            tool,
            record,
            arguments,
            verdict,
            lambda shown: preview_call(
                tool,
                shown,
                _context(tool, shown, record, shared),
                workers=shared.workers,
                redactor=shared.redactor,
            ),
        )
        arguments = clearance.arguments
        if clearance.response is not None:
            record.state = "answered"
            result = shared.redactor.json(clearance.response)
            shared.budget.reserve_result(len(result), tool.name, tool.effects, line=record.call.line)
            return result
        with waiting_turn(turn, record.call.seq, shared.parking):
            await turn.__aenter__()
        try:
            shared.circuits.admit(tool)
            record.dispatched = True  # from here on a cancel of the script comes too late
            facts = start_facts(tool, arguments, record, run_id=shared.run_id)
            payload = start_payload(arguments, record)
            asks_again = await shared.gate.dispatch(tool, record, clearance, payload, **facts)
            if asks_again is None:
                value = await _call(tool, arguments, record, shared)
                return _deliverable(tool, value, record, shared)
            verdict, record.dispatched = asks_again, False
            if record.cancelled:
                raise given_up()  # while it was written; nobody shall be asked about it
        finally:
            await turn.__aexit__()


def _take_arguments(
    tool: AnyTool, record: CallRecord, shared: Crossing, held: _Held, past: CallHistory | None
) -> Arguments:
    """Return what the tool is called with; for a started call what it was started with.

    Raises:
        CallFailed: ``invalid_arguments``, or they hold a secret.
    """
    call = record.call
    record.effects = tool.effects
    if record.carries_secret and past is None:
        raise secret_in_arguments()
    arguments = validate_arguments(tool, call)
    record.arguments = shared.redactor.json(arguments.canonical)
    if record.arguments is not arguments.canonical and past is None:
        raise secret_in_arguments()
    if past is not None:
        arguments = executed_arguments(tool, call, past, arguments)
        record.arguments = shared.redactor.json(arguments.canonical)
    record.keep_bytes()
    shared.budget.hold_arguments(len(arguments.canonical), line=call.line)
    held.argument_bytes = len(arguments.canonical)
    return arguments


def _is_first(record: CallRecord, ledger: Ledger) -> bool:
    """Note a ``once`` call; tell whether it is the first of its kind. Later ones are shown, never dropped."""
    identity = record.identity
    if identity in ledger.ran_once:
        return False
    ledger.ran_once.add(identity)
    return True


async def _check(tool: AnyTool, arguments: Arguments, record: CallRecord, shared: Crossing) -> None:
    if tool.check is not None:
        context = _context(tool, arguments, record, shared)
        await check_business(tool, arguments, context, workers=shared.workers, run_id=shared.run_id)


def _context(tool: AnyTool, arguments: Arguments, record: CallRecord, shared: Crossing) -> ToolContext:
    return context_of(
        tool, arguments, record, run_id=shared.run_id, user=shared.gate.user, secrets=shared.secrets
    )


async def _call(tool: AnyTool, arguments: Arguments, record: CallRecord, shared: Crossing) -> object:
    """Call the tool that was just dispatched; wait for its job if it hands over to one elsewhere."""
    shared.narrator.call("call.started", record)
    context = _context(tool, arguments, record, shared)
    if shared.narrator.channel.watched:
        context = replace(context, progress=shared.narrator.progress(record, shared.redactor))
    value = await call_tool(
        tool,
        arguments,
        record,
        workers=shared.workers,
        run_id=shared.run_id,
        context=context,
        circuits=shared.circuits,
    )
    return await shared.recovery.jobs.finish(tool, record, value)


async def _settle(
    tool: AnyTool, arguments: Arguments, record: CallRecord, past: CallHistory, shared: Crossing
) -> object:
    """Return the result of a call that an earlier worker started and did not see end."""

    async def again() -> object:
        facts = start_facts(tool, arguments, record, run_id=shared.run_id)
        payload = start_payload(arguments, record)
        shared.journal.append(EventKind.DISPATCHED, payload, seq=record.call.seq, **facts)
        if tool.effects != "read":
            await shared.journal.commit()
        return await _call(tool, arguments, record, shared)

    repeatable = tool.effects != "once"
    return await shared.recovery.settle(tool, record, past, again, repeatable=repeatable)


async def _settle_changed(
    record: CallRecord, past: CallHistory, shared: Crossing, held: _Held, unfit: CallFailed
) -> bytes:
    """Return the result of a started call whose tool is gone, or does not take its arguments any more.

    Raises:
        CallFailed: nobody knows what became of it; or it did not happen, and cannot be made now.
    """
    tool = shared.registry.get(record.call.tool)
    record.keep_bytes()

    async def again() -> object:
        raise unfit

    held.turn = shared.lanes.take_turn(tool)
    async with held.turn:
        value = await shared.recovery.settle(tool, record, past, again, repeatable=False)
        return _deliverable(tool, value, record, shared)


def _deliverable(tool: AnyTool | None, value: object, record: CallRecord, shared: Crossing) -> bytes:
    record.state = "done"
    if isinstance(value, GivenValue) or tool is None:
        given = value.value if isinstance(value, GivenValue) else b"null"
        result = given if tool is None else check_given(tool, given)
        shared.budget.reserve_result(len(result), record.call.tool, record.effects, line=record.call.line)
        return shared.redactor.json(result)
    result = make_deliverable(tool, value, record, budget=shared.budget, run_id=shared.run_id)
    return shared.redactor.json(result)


def _complete(
    record: CallRecord,
    shared: Crossing,
    name: EventName,
    value: bytes | None = None,
    failure: ToolFailure | None = None,
) -> None:
    shared.journal.append(
        EventKind.COMPLETED,
        value,
        seq=record.call.seq,
        state=record.state,
        effects=record.effects,
        result_bytes=record.result_bytes,
        failure=None if failure is None else msgspec.to_builtins(failure),
        duration_s=record.duration_s,
        approved_by=record.approved_by,
        edited_by=record.edited_by,
        answered_by=record.answered_by,
        duplicate=record.duplicate,
    )
    tool = shared.registry.get(record.call.tool)
    audit_call(record, None if tool is None else tool.digest, shared.journal, shared.store)
    shared.narrator.call(name, record)
