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
from bascule.bridge.budget import Budget
from bascule.bridge.circuits import Circuits
from bascule.bridge.dispatch import call_tool, check_business, make_deliverable
from bascule.bridge.events import EventName
from bascule.bridge.execution import (
    GivenValue,
    Recovery,
    context_of,
    executed_arguments,
    start_facts,
    waiting_turn,
)
from bascule.bridge.failure import CallFailed, given_up, secret_in_arguments, withheld
from bascule.bridge.finding import find_tool, validate_arguments
from bascule.bridge.gate import Gate
from bascule.bridge.history import CallHistory
from bascule.bridge.journal import EventKind, Journal
from bascule.bridge.lanes import Lanes, Turn
from bascule.bridge.ledger import CallRecord, Ledger
from bascule.bridge.limits import Limits
from bascule.bridge.narrator import Narrator
from bascule.bridge.parking import Parking
from bascule.bridge.policy import Verdict
from bascule.bridge.preview import preview_call
from bascule.bridge.receipt import CallError, CallState
from bascule.bridge.redaction import Redactor
from bascule.bridge.rehearsal import NOTHING, WantedEffects
from bascule.bridge.store import Store
from bascule.bridge.workers import Workers
from bascule.tools import AnyTool, Arguments, Registry, ToolContext
from bascule.wire import ToolFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """What the calls of one run share."""

    run_id: str
    registry: Registry
    offered: frozenset[str]
    limits: Limits
    gate: Gate
    budget: Budget
    lanes: Lanes
    ledger: Ledger
    workers: Workers
    journal: Journal
    narrator: Narrator
    parking: Parking
    recovery: Recovery
    store: Store
    redactor: Redactor
    circuits: Circuits
    secrets: Mapping[str, str]
    rehearsal: WantedEffects | None = None


_END_EVENTS: Final[Mapping[CallState, EventName]] = {"denied": "call.denied", "withheld": "call.withheld"}


async def cross(record: CallRecord, shared: Crossing) -> bytes | ToolFailure:
    """Take one call over the bridge; return its result as JSON, or why there is none.

    Everything before the first wait happens in issue order, because the calls of a run are begun in it.

    Raises:
        LimitReached: the whole run is over.
    """
    call = record.call
    turn: Turn | None = None
    held_bytes = 0
    try:
        tool = find_tool(shared.registry, shared.offered, call)
        record.effects = tool.effects
        started = record.past is not None and record.past.dispatches > 0
        if record.carries_secret and not started:
            raise secret_in_arguments()
        arguments = validate_arguments(tool, call)
        record.arguments = shared.redactor.json(arguments.canonical)
        if record.arguments is not arguments.canonical and not started:
            raise secret_in_arguments()
        record.keep_bytes()
        shared.budget.hold_arguments(len(arguments.canonical), line=call.line)
        held_bytes = len(arguments.canonical)
        turn = shared.lanes.take_turn(tool)
        if tool.effects == "once":
            record.duplicate = not _is_first(record, shared.ledger)
        verdict: Verdict | None = None
        result: bytes | None = None
        if not started:
            with shared.gate.asking.preparing():
                await _check(tool, arguments, record, shared)
                verdict = shared.gate.decide(tool, record, arguments)
            if shared.rehearsal is not None and shared.rehearsal.withholds(tool, record, verdict):
                if tool.returns != NOTHING:
                    raise withheld(tool, call.line)
                verdict, result, record.state = None, b"null", "withheld"
        else:  # it was let through and started by an earlier worker
            assert record.past is not None
            arguments = executed_arguments(tool, record.past, arguments)
            async with turn:
                value = await _settle(tool, arguments, record, record.past, shared)
                result = _deliverable(tool, value, record, shared)
        while verdict is not None and result is None:
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
            arguments, result = clearance.arguments, clearance.response
            if result is not None:
                result = shared.redactor.json(result)
                record.state = "answered"
                shared.budget.reserve_result(len(result), tool, line=call.line)
                break
            with waiting_turn(turn, call.seq, shared.parking):
                await turn.__aenter__()
            try:
                shared.circuits.admit(tool)
                record.dispatched = True  # from here on a cancel of the script comes too late
                facts = start_facts(tool, arguments, record, run_id=shared.run_id)
                verdict = await shared.gate.dispatch(tool, record, clearance, **facts)
                if verdict is None:
                    value = await _call(tool, arguments, record, shared)
                    result = _deliverable(tool, value, record, shared)
                else:
                    record.dispatched = False
                    if record.cancelled:
                        raise given_up()  # while it was written; nobody shall be asked about it
            finally:
                await turn.__aexit__()
        assert result is not None
        shared.gate.evidence.remember(call.seq, tool.name, result)
        record.result_bytes = len(result)
        _complete(record, shared, "call.completed", result)
        if tool.effects != "read":
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
        shared.budget.release_arguments(held_bytes)
        if turn is not None:
            turn.leave()


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
        context = replace(context, progress=shared.narrator.progress(record))
    value = await call_tool(
        tool,
        arguments,
        record,
        workers=shared.workers,
        run_id=shared.run_id,
        context=context,
        circuits=shared.circuits,
    )
    return await shared.recovery.finish_job(tool, record, value)


async def _settle(
    tool: AnyTool, arguments: Arguments, record: CallRecord, past: CallHistory, shared: Crossing
) -> object:
    """Return the result of a call that an earlier worker started and did not see end."""

    async def again() -> object:
        facts = start_facts(tool, arguments, record, run_id=shared.run_id)
        shared.journal.append(EventKind.DISPATCHED, seq=record.call.seq, **facts)
        if tool.effects != "read":
            await shared.journal.commit()
        return await _call(tool, arguments, record, shared)

    return await shared.recovery.settle(tool, arguments, record, past, again)


def _deliverable(tool: AnyTool, value: object, record: CallRecord, shared: Crossing) -> bytes:
    record.state = "done"
    if isinstance(value, GivenValue):
        shared.budget.reserve_result(len(value.value), tool, line=record.call.line)
        return shared.redactor.json(value.value)
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
    audit_call(record, shared.journal, shared.store)
    shared.narrator.call(name, record)
