"""Dispatch: start the tool with the validated arguments, and stop waiting for it at its timeout.

Also the result stage: what the tool returned becomes JSON bytes, checked and counted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable

from bascule.bridge.budget import Budget
from bascule.bridge.failure import CallFailed, classify_exception, timed_out
from bascule.bridge.ledger import CallRecord
from bascule.bridge.workers import Workers
from bascule.tools import AnyTool, Arguments, ResultInvalid
from bascule.wire import ToolFailure

_log = logging.getLogger("bascule.bridge")


async def call_tool(
    tool: AnyTool, arguments: Arguments, record: CallRecord, *, workers: Workers, run_id: str
) -> object:
    """Call the tool once and return what it returned.

    A synchronous tool runs on a worker thread; at its timeout the thread is left behind, for it cannot be
    ended.

    Raises:
        CallFailed: the tool raised, or did not end in time.
    """
    record.dispatched = True
    record.state = "running"
    begun = time.perf_counter()
    deadline = asyncio.timeout(tool.timeout_s)
    try:
        async with deadline:
            if tool.is_async:
                return await _ended(tool.call(arguments.values))
            return await workers.submit(lambda: tool.call(arguments.values))
    except Exception as error:  # whatever a tool raises becomes a failure of this one call
        if isinstance(error, TimeoutError) and deadline.expired():
            raise timed_out(tool) from error
        raise classify_exception(error, tool, run_id=run_id, seq=record.call.seq) from error
    finally:
        record.duration_s = time.perf_counter() - begun


def make_deliverable(
    tool: AnyTool, value: object, record: CallRecord, *, budget: Budget, run_id: str
) -> bytes:
    """Return the JSON bytes that cross to the script.

    Raises:
        CallFailed: the result has no JSON form or breaks the declared type (a bug of the tool), or is too
            large. The tool has run: the receipt says ``done`` all the same.
        LimitReached: the results of the run are too large together.
    """
    try:
        result = tool.dump_result(value)
    except ResultInvalid as error:
        _log.error("run %s call %d: %s", run_id, record.call.seq, error)
        raise CallFailed(ToolFailure(kind="failed", message=error.for_script()), "done") from error
    budget.reserve_result(len(result), tool, line=record.call.line)
    return result


async def _ended(call: Awaitable[object]) -> object:
    """Await a tool. A cancellation or exit of its own making is its failure, not the end of host or run."""
    try:
        return await call
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise RuntimeError(f"{type(error).__name__} raised") from error
