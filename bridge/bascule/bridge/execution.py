"""Execution of one call that was let through: started durably, perhaps again after a crash, waited for.

What a crash between start and end means is decided here, once: what may be repeated is repeated with the same
idempotency key, what may not is asked for (the tool's own ``reconcile``, then the operator), and never
guessed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from bascule.bridge.clock import RunClock
from bascule.bridge.failure import CallFailed, classify_exception, unknown_outcome
from bascule.bridge.history import CallHistory
from bascule.bridge.journal import EventKind, Fact, Journal
from bascule.bridge.lanes import Turn
from bascule.bridge.ledger import CallRecord
from bascule.bridge.matching import User
from bascule.bridge.parking import Parking
from bascule.bridge.store import LEASE_S, Answer, Store
from bascule.bridge.workers import Workers
from bascule.tools import AnyTool, Arguments, DidNotHappen, Happened, Pending, ToolContext
from bascule.wire import ToolFailure

KEY_CHARS: Final = 32
_KEY_BYTES: Final = KEY_CHARS * 5 // 8  # what these characters say; encoding more costs time

_LONGEST_NAP_S: Final = 3600.0
_log = logging.getLogger("bascule.bridge")


@lru_cache(
    maxsize=256
)  # asked for when a call is dispatched, and again right after it, when its tool is called
def idempotency_key(*, run_id: str, seq: int, tool: str, args_sha256: str) -> str:
    """Return the key of a call: base32 of sha256 over run, number, tool and digest of the arguments."""
    digest = hashlib.sha256(f"{run_id}|{seq}|{tool}|{args_sha256}".encode()).digest()
    return base64.b32encode(digest[:_KEY_BYTES]).decode()


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A result that did not come from the tool's function: JSON from an operator."""

    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Finds out what became of a call that was started and whose end nobody saw."""

    run_id: str
    store: Store
    journal: Journal
    clock: RunClock
    parking: Parking
    workers: Workers

    async def settle(
        self,
        tool: AnyTool,
        arguments: Arguments,
        record: CallRecord,
        past: CallHistory,
        again: Callable[[], Awaitable[object]],
    ) -> object:
        """Return the result of a call that was started before, however that is found out.

        Args:
            again: starts the tool once more.

        Raises:
            CallFailed: nobody knows, or the operator has the script told so.
        """
        if past.pending is not None and tool.check_back is not None:
            record.state = "running"
            return await self._wait_for_job(tool, record, past.pending)
        if tool.effects != "once":
            return await again()
        record.state = "unknown"
        if tool.reconcile is not None:
            key = key_of(tool, arguments, record, run_id=self.run_id)
            answer = await self._ask_tool(tool, record, tool.reconcile, key)
            if isinstance(answer, Happened):
                return answer.value
            if isinstance(answer, DidNotHappen):
                return await again()
        if record.cancelled:
            raise _unknown(tool)
        said = await self._ask_operator(record)
        if said.kind == "happened":
            return GivenValue(said.value or b"null")
        if said.kind == "did_not_happen":
            return await again()
        raise _unknown(tool)

    async def finish_job(self, tool: AnyTool, record: CallRecord, value: object) -> object:
        """Return what a tool returned; if that is Pending, what its job gives in the end.

        Raises:
            CallFailed: asking for it failed.
        """
        if not isinstance(value, Pending):
            return value
        if tool.check_back is None:
            _log.error("tool %s returned Pending without a check_back function", tool.name)
            message = f"{tool.name} has a bug: nobody can ask for its result"
            failure = ToolFailure(kind="failed", message=message)
            raise CallFailed(failure, "unknown" if tool.effects == "once" else "failed")
        return await self._wait_for_job(tool, record, await self._note_job(record, value))

    async def _note_job(self, record: CallRecord, pending: Pending) -> Mapping[str, Any]:
        facts = {"token": pending.token, "check_at": time.time() + max(pending.check_after_s, 0.0)}
        self.journal.append(EventKind.DISPATCHED, seq=record.call.seq, pending=facts)
        await self.journal.commit()
        return facts

    async def _wait_for_job(self, tool: AnyTool, record: CallRecord, job: Mapping[str, Any]) -> object:
        assert tool.check_back is not None
        while True:
            check_at = float(job["check_at"])
            left_s = check_at - time.time()
            if left_s > 0:
                reason = f"{record.call.tool} waits for a job elsewhere"
                with self.parking.parked(record.call.seq, reason, wake_at=check_at), self.clock.people():
                    await asyncio.sleep(min(left_s, _LONGEST_NAP_S))
                continue
            value = await self._ask_tool(tool, record, tool.check_back, job["token"])
            if not isinstance(value, Pending):
                return value
            job = await self._note_job(record, value)

    async def _ask_tool(
        self, tool: AnyTool, record: CallRecord, function: Callable[[Any], Any], value: object
    ) -> object:
        """Call a function of the tool's author; a plain one on a worker thread."""
        try:
            async with asyncio.timeout(tool.timeout_s):
                if inspect.iscoroutinefunction(function):
                    return cast("object", await function(value))
                answer: object = await self.workers.submit(lambda: function(value))
                return await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # whatever it raises becomes a failure of this one call
            raise classify_exception(error, tool, run_id=self.run_id, seq=record.call.seq) from error

    async def _ask_operator(self, record: CallRecord) -> Answer:
        seq, attempt = record.call.seq, record.attempts
        reason = f"{record.call.tool} was started and its outcome is unknown: `bascule runs resolve`"
        with self.parking.parked(seq, reason, key=f"answer:{seq}.{attempt}"), self.clock.people():
            while (answer := self.store.find_answer(self.run_id, seq, attempt)) is None:
                await self.store.changed(LEASE_S)
        return answer


def _unknown(tool: AnyTool) -> CallFailed:
    return CallFailed(unknown_outcome(tool, "its host died before it ended", exception=None), "unknown")


def key_of(tool: AnyTool, arguments: Arguments, record: CallRecord, *, run_id: str) -> str:
    """Return the idempotency key of a call."""
    return idempotency_key(run_id=run_id, seq=record.call.seq, tool=tool.name, args_sha256=arguments.digest)


def context_of(
    tool: AnyTool,
    arguments: Arguments,
    record: CallRecord,
    *,
    run_id: str,
    user: User | None,
    secrets: Mapping[str, str],
) -> ToolContext:
    """Return what a tool is told about a call; of the secrets those it declares."""
    return ToolContext(
        idempotency_key=key_of(tool, arguments, record, run_id=run_id),
        run_id=run_id,
        seq=record.call.seq,
        attempt=max(record.attempts, 1),
        user=None if user is None else user.name,
        tenant=None if user is None else user.tenant,
        secrets={name: secrets[name] for name in tool.secrets},
    )


def start_facts(tool: AnyTool, arguments: Arguments, record: CallRecord, *, run_id: str) -> dict[str, Fact]:
    """Count one more start of the tool, and return what DISPATCHED says of it."""
    record.attempts += 1
    key = key_of(tool, arguments, record, run_id=run_id)
    facts: dict[str, Fact] = {"attempt": record.attempts, "key": key}
    if record.edited_by is not None:
        facts["arguments"] = arguments.canonical.decode()
    return facts


def executed_arguments(tool: AnyTool, past: CallHistory, arguments: Arguments) -> Arguments:
    """Return the arguments an earlier worker started the tool with."""
    if past.executed is None:
        return arguments
    return tool.validate(msgspec.json.decode(past.executed))


def waiting_turn(turn: Turn, seq: int, parking: Parking) -> AbstractContextManager[None]:
    """Say that a call stands behind others, so that a run can be suspended although it is not its turn."""
    return parking.parked(seq, "") if turn.blocked else nullcontext()
