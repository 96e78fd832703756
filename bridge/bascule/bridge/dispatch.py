"""Dispatch: start the tool with the validated arguments, and stop waiting for it at its timeout.

Also the result stage: what the tool returned becomes JSON bytes, checked and counted.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from bascule.bridge.budget import Budget
from bascule.bridge.circuits import Circuits
from bascule.bridge.failure import CallFailed, classify_exception, refused_by_check, timed_out
from bascule.bridge.ledger import CallRecord
from bascule.bridge.transient import find_retry_after_s, is_transient
from bascule.bridge.workers import Workers
from bascule.tools import AnyTool, Arguments, ResultInvalid, ToolContext
from bascule.wire import ToolFailure

if TYPE_CHECKING:
    from tenacity import RetryCallState

MAX_ATTEMPTS: Final = 4
"""Times a call is made at most within its timeout."""

FIRST_PAUSE_S: Final = 0.2

_log = logging.getLogger("bascule.bridge")


async def call_tool(
    tool: AnyTool,
    arguments: Arguments,
    record: CallRecord,
    *,
    workers: Workers,
    run_id: str,
    context: ToolContext,
    circuits: Circuits,
) -> object:
    """Call the tool and return what it returned; ``read`` and ``idempotent`` ones again where that may help.

    A synchronous tool runs on a worker thread, unless it is ``inline``; at its timeout the thread is left
    behind, for it cannot be ended.

    Raises:
        CallFailed: the tool raised, or did not end in time.
    """
    record.dispatched = True
    record.state = "running"
    begun = time.perf_counter()
    deadline = asyncio.timeout(tool.timeout_s)

    async def once() -> object:
        if tool.is_async:
            return await _ended(tool.call(arguments.values, context))
        return await workers.submit(lambda: tool.call(arguments.values, context))

    try:
        if tool.inline:  # nothing could end it, and it waits for nothing that could work a moment later
            value = contextvars.copy_context().run(_call_inline, tool, arguments, context)
        else:
            async with deadline:
                value = await call_until_it_holds(once, tool, repeatable=tool.effects != "once")
        circuits.note(tool, transient_failure=False)
        return value
    except Exception as error:  # whatever a tool raises becomes a failure of this one call
        record.timed_out = isinstance(error, TimeoutError)
        if isinstance(error, TimeoutError) and not tool.inline and deadline.expired():
            circuits.note(tool, transient_failure=True)
            raise timed_out(tool) from error
        circuits.note(tool, transient_failure=is_transient(error, tool))
        raise classify_exception(error, tool, run_id=run_id, seq=record.call.seq) from error
    finally:
        record.duration_s = time.perf_counter() - begun


async def call_until_it_holds(
    once: Callable[[], Awaitable[object]], tool: AnyTool, *, repeatable: bool
) -> object:
    """Call a function of a tool; again after failures that pass by themselves, within the tool's timeout.

    Args:
        repeatable: a second call does no harm; without it there is one.
    """
    try:
        return await once()
    except Exception as error:
        if not repeatable or not is_transient(error, tool):
            raise
        from tenacity import (  # only failures pay for the import
            AsyncRetrying,
            retry_if_exception,
            stop_after_attempt,
            stop_before_delay,
        )

        pause_s = _pause_s(error, 1)
        if pause_s >= tool.timeout_s:
            raise
        await asyncio.sleep(pause_s)
        again = AsyncRetrying(
            retry=retry_if_exception(lambda failed: is_transient(failed, tool)),
            wait=lambda state: _pause_s(_failure_of(state), state.attempt_number + 1),
            stop=stop_after_attempt(MAX_ATTEMPTS - 1) | stop_before_delay(tool.timeout_s - pause_s),
            reraise=True,
        )
        return await again(once)


def _call_inline(tool: AnyTool, arguments: Arguments, context: ToolContext) -> object:
    """Call an inline tool. An exit of its own making is its failure, not the end of the host."""
    try:
        return tool.call(arguments.values, context)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise RuntimeError(f"{type(error).__name__} raised") from error


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


def _failure_of(state: RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()


def _pause_s(error: BaseException | None, attempt: int) -> float:
    """Return how long to wait after a failed attempt: what the service asks for, else longer every time."""
    asked_s = None if error is None else find_retry_after_s(error)
    if asked_s is not None:
        return asked_s
    return float(FIRST_PAUSE_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.0))


async def check_business(
    tool: AnyTool, arguments: Arguments, context: ToolContext, *, workers: Workers, run_id: str
) -> None:
    """Have the tool's own check look at a call before policy does.

    Raises:
        CallFailed: the check raised; the tool was not started.
    """
    check = tool.check
    if check is None:
        return
    try:
        async with asyncio.timeout(tool.timeout_s):
            if inspect.iscoroutinefunction(check):
                await check(arguments.values, context)
            else:
                await workers.submit(lambda: check(arguments.values, context))
    except Exception as error:  # whatever a check raises refuses this one call
        raise refused_by_check(error, tool, run_id=run_id, seq=context.seq) from error


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
    budget.reserve_result(len(result), tool.name, tool.effects, line=record.call.line)
    return result


def check_given(tool: AnyTool, given: bytes) -> bytes:
    """Return a result that an operator gave, in JSON, as the tool itself would have written it.

    Raises:
        CallFailed: it is not what the tool returns; the receipt says ``done``, for that much is known.
    """
    try:
        return tool.read_response(given)
    except ResultInvalid as error:
        message = f"{tool.name} was done, but the result that an operator gave for it is not what it returns"
        raise CallFailed(ToolFailure(kind="failed", message=message), "done") from error
