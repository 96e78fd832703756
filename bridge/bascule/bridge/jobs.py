"""Jobs elsewhere: what a tool handed over to another service is asked for by its own ``check_back``.

The run may be suspended meanwhile, and another process may do the asking. That a question fails says nothing
of the job: what passes by itself is asked again later, and when nobody can tell, the effect is unknown.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from bascule.bridge.clock import RunClock
from bascule.bridge.dispatch import call_until_it_holds
from bascule.bridge.failure import BUGS, CallFailed, classify_exception, unknown_outcome
from bascule.bridge.journal import EventKind, Fact, Journal
from bascule.bridge.ledger import CallRecord
from bascule.bridge.parking import Parking
from bascule.bridge.transient import is_transient
from bascule.bridge.workers import Workers
from bascule.tools import AnyTool, Pending
from bascule.wire import ToolFailure

MAX_FAILED_CHECKS: Final = 8
"""Times in a row that asking for a job may fail by what passes by itself; the pause doubles each time."""

FIRST_PAUSE_S = 1.0
"""Shortest pause after such a failure; the tool's own ``check_after_s`` where that is longer."""

_LONGEST_PAUSE_S: Final = 3600.0
_log = logging.getLogger("bascule.bridge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The jobs elsewhere of one run."""

    run_id: str
    journal: Journal
    clock: RunClock
    parking: Parking
    workers: Workers

    async def finish(self, tool: AnyTool, record: CallRecord, value: object) -> object:
        """Return what a tool returned; if that is Pending, what its job gives in the end.

        Raises:
            CallFailed: the job failed, or nobody can tell what became of it.
        """
        if not isinstance(value, Pending):
            return value
        if tool.check_back is None:
            _log.error("tool %s returned Pending without a check_back function", tool.name)
            message = f"{tool.name} has a bug: nobody can ask for its result"
            failure = ToolFailure(kind="failed", message=message)
            raise CallFailed(failure, "unknown" if tool.effects == "once" else "failed")
        return await self.wait(tool, record, await self._note(record, value))

    async def wait(self, tool: AnyTool, record: CallRecord, job: Mapping[str, Any]) -> object:
        """Return what a job gives in the end, as `finish` does.

        Args:
            job: what DISPATCHED says of it.
        """
        assert tool.check_back is not None
        while True:
            check_at = float(job["check_at"])
            left_s = check_at - time.time()
            if left_s > 0:
                reason = f"{record.call.tool} waits for a job elsewhere"
                with self.parking.parked(record.call.seq, reason, wake_at=check_at), self.clock.people():
                    await asyncio.sleep(min(left_s, _LONGEST_PAUSE_S))
                continue
            try:
                value = await self.ask(tool, record, tool.check_back, job["token"])
            except CallFailed as failed:
                job = await self._ask_later(tool, record, job, failed)
                continue
            if not isinstance(value, Pending):
                return value
            job = await self._note(record, value)

    async def ask(
        self, tool: AnyTool, record: CallRecord, function: Callable[[Any], Any], value: object
    ) -> object:
        """Call a function of the tool's author, more than once where that may help.

        A plain one runs on a worker thread.

        Raises:
            CallFailed: it raised, or did not end within the tool's timeout.
        """

        async def once() -> object:
            if inspect.iscoroutinefunction(function):
                return cast("object", await function(value))
            answer: object = await self.workers.submit(lambda: function(value))
            return await answer if inspect.isawaitable(answer) else answer

        try:
            async with asyncio.timeout(tool.timeout_s):
                return await call_until_it_holds(once, tool, repeatable=True)
        except Exception as error:  # whatever it raises becomes a failure of this one call
            raise classify_exception(error, tool, run_id=self.run_id, seq=record.call.seq) from error

    async def _ask_later(
        self, tool: AnyTool, record: CallRecord, job: Mapping[str, Any], failed: CallFailed
    ) -> Mapping[str, Any]:
        """Return when to ask again for a job of which nobody could be asked.

        Raises:
            CallFailed: asking again does not help.
        """
        why, times = failed.__cause__, int(job.get("failed", 0)) + 1
        passes = isinstance(why, ConnectionError | TimeoutError) or (
            why is not None and is_transient(why, tool)
        )
        if passes and times <= MAX_FAILED_CHECKS:
            every_s = max(float(job.get("every_s", 0.0)), FIRST_PAUSE_S)
            pause_s = min(every_s * 2 ** (times - 1), _LONGEST_PAUSE_S)
            return await self._write(record, job["token"], pause_s, every_s=every_s, failed=times)
        if tool.effects != "read" and (passes or isinstance(why, BUGS)):
            reason = "nobody can tell what became of its job"
            raise CallFailed(unknown_outcome(tool.name, reason, exception=None), "unknown") from why
        raise failed

    async def _note(self, record: CallRecord, pending: Pending) -> Mapping[str, Any]:
        every_s = max(pending.check_after_s, 0.0)
        return await self._write(record, pending.token, every_s, every_s=every_s, failed=0)

    async def _write(
        self, record: CallRecord, token: Fact, pause_s: float, *, every_s: float, failed: int
    ) -> Mapping[str, Any]:
        facts: dict[str, Fact] = {
            "token": token, "check_at": time.time() + pause_s, "every_s": every_s, "failed": failed,
        }  # fmt: skip
        self.journal.append(EventKind.DISPATCHED, seq=record.call.seq, pending=facts)
        await self.journal.commit()
        return facts
