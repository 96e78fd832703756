"""The pipeline of one call, top to bottom. Every call of every script takes this way and no other.

It trusts the registry, the policy and the approver, which are the operator's. It trusts neither the call
(name, arguments, line come from an untrusted guest) nor the text of what a tool raises.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from bascule.bridge.budget import Budget
from bascule.bridge.dispatch import call_tool, make_deliverable
from bascule.bridge.events import EventName
from bascule.bridge.failure import CallFailed
from bascule.bridge.finding import find_tool, validate_arguments
from bascule.bridge.gate import Gate
from bascule.bridge.journal import EventKind, Journal
from bascule.bridge.lanes import Lanes, Turn
from bascule.bridge.ledger import CallRecord, Ledger
from bascule.bridge.limits import Limits
from bascule.bridge.narrator import Narrator
from bascule.bridge.receipt import CallError
from bascule.bridge.workers import Workers
from bascule.tools import Arguments, Registry
from bascule.wire import ToolFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """What the calls of one run share."""

    run_id: str
    registry: Registry
    limits: Limits
    gate: Gate
    budget: Budget
    lanes: Lanes
    ledger: Ledger
    workers: Workers
    journal: Journal
    narrator: Narrator


async def cross(record: CallRecord, shared: Crossing) -> bytes | ToolFailure:
    """Take one call over the bridge; return its result as JSON, or why there is none.

    Everything before the first wait happens in issue order, because the calls of a run are begun in it.

    Raises:
        LimitReached: the whole run is over.
    """
    call = record.call
    turn: Turn | None = None
    arguments: Arguments | None = None
    try:
        tool = find_tool(shared.registry, call)
        record.effects = tool.effects
        arguments = validate_arguments(tool, call)
        record.arguments = arguments.canonical
        record.keep_bytes()
        shared.budget.hold_arguments(len(arguments.canonical), line=call.line)
        verdict = shared.gate.decide(tool, record, arguments)
        turn = shared.lanes.take_turn(tool)
        if tool.effects == "once":
            record.duplicate = not _is_first(record, shared.ledger)
        if verdict.effect == "ask":
            await shared.gate.obtain_approval(tool, record, arguments, verdict)
        async with turn:
            shared.journal.append(EventKind.DISPATCHED, seq=call.seq)
            if tool.effects != "read":
                await shared.journal.commit()
            shared.narrator.call("call.started", record)
            value = await call_tool(tool, arguments, record, workers=shared.workers, run_id=shared.run_id)
        record.state = "done"
        result = make_deliverable(tool, value, record, budget=shared.budget, run_id=shared.run_id)
        record.result_bytes = len(result)
        _complete(record, shared, "call.completed")
        if tool.effects != "read":
            await shared.journal.commit()
        return result
    except CallFailed as failed:
        record.keep_bytes()
        record.state = failed.state
        record.error = CallError(kind=failed.failure.kind, message=failed.failure.message)
        _complete(record, shared, "call.denied" if failed.state == "denied" else "call.failed")
        if record.dispatched and record.effects != "read":
            await shared.journal.commit()
        return failed.failure
    finally:
        if arguments is not None:
            shared.budget.release_arguments(len(arguments.canonical))
        if turn is not None:
            turn.leave()


def _is_first(record: CallRecord, ledger: Ledger) -> bool:
    """Note a ``once`` call; tell whether it is the first of its kind. Later ones are shown, never dropped."""
    identity = record.identity
    if identity in ledger.ran_once:
        return False
    ledger.ran_once.add(identity)
    return True


def _complete(record: CallRecord, shared: Crossing, name: EventName) -> None:
    shared.journal.append(
        EventKind.COMPLETED,
        seq=record.call.seq,
        state=record.state,
        result_bytes=record.result_bytes,
        error=None if record.error is None else record.error.kind,
        ended_at=time.time(),
    )
    shared.narrator.call(name, record)
