"""Recovery of a call that was started and whose end nobody saw, because its host died.

What such a crash means is decided here, once: what may be repeated is repeated with the same idempotency key,
what may not is asked for (the tool's own ``reconcile``, then the operator), and never guessed. That a tool is
gone or was changed since does not undo what it did.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bascule.bridge.clock import RunClock
from bascule.bridge.failure import CallFailed, unknown_outcome
from bascule.bridge.history import CallHistory
from bascule.bridge.jobs import Jobs
from bascule.bridge.ledger import CallRecord
from bascule.bridge.parking import Parking
from bascule.bridge.store import LEASE_S, Answer, Store
from bascule.tools import AnyTool, DidNotHappen, Happened

_log = logging.getLogger("bascule.bridge")


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A result that did not come from the tool's function: JSON from an operator."""

    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Finds out what became of the started calls of one run."""

    run_id: str
    store: Store
    clock: RunClock
    parking: Parking
    jobs: Jobs

    async def settle(
        self,
        tool: AnyTool | None,
        record: CallRecord,
        past: CallHistory,
        again: Callable[[], Awaitable[object]],
        *,
        repeatable: bool,
    ) -> object:
        """Return the result of a call that was started before, however that is found out.

        Args:
            tool: None when it is gone.
            again: starts the tool once more.
            repeatable: it may be started again without asking anybody.

        Raises:
            CallFailed: nobody knows, or the operator has the script told so.
        """
        if tool is not None and past.pending is not None and tool.check_back is not None:
            record.state = "running"
            return await self.jobs.wait(tool, record, past.pending)
        if repeatable:
            return await again()
        record.state = "unknown"
        said = None if tool is None or tool.reconcile is None else await self._reconcile(tool, record, past)
        if isinstance(said, Happened):
            return said.value
        if isinstance(said, DidNotHappen):
            return await again()
        if record.cancelled:
            raise _unknown(record)
        answer = await self._ask_operator(record)
        if answer.kind == "happened":
            return GivenValue(answer.value or b"null")
        if answer.kind == "did_not_happen":
            return await again()
        raise _unknown(record)

    async def _reconcile(self, tool: AnyTool, record: CallRecord, past: CallHistory) -> object:
        """Ask the tool itself; None when it cannot tell."""
        assert tool.reconcile is not None
        try:
            return await self.jobs.ask(tool, record, tool.reconcile, past.key)
        except CallFailed as failed:
            _log.error("run %s call %d: reconcile failed: %s", self.run_id, record.call.seq, failed)
            return None

    async def _ask_operator(self, record: CallRecord) -> Answer:
        seq, attempt = record.call.seq, record.attempts
        reason = f"{record.call.tool} was started and its outcome is unknown: `bascule runs resolve`"
        with self.parking.parked(seq, reason, key=f"answer:{seq}.{attempt}"), self.clock.people():
            while (answer := self.store.find_answer(self.run_id, seq, attempt)) is None:
                await self.store.changed(LEASE_S)
        return answer


def _unknown(record: CallRecord) -> CallFailed:
    reason = "its host died before it ended"
    return CallFailed(unknown_outcome(record.call.tool, reason, exception=None), "unknown")
