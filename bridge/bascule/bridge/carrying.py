"""Carries runs on that were suspended: one to its end, or all that can go on now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from bascule.bridge.errors import RunBusy, RunNotFound
from bascule.bridge.result import Result
from bascule.bridge.runs import follow_run
from bascule.bridge.store import Store
from bascule.bridge.waking import due_runs, wait_until_due
from bascule.wire import BasculeError

RESUMED_AT_ONCE: Final = 4
"""Runs that are replayed at the same time."""

Resume = Callable[[str], Awaitable[Result]]

_log = logging.getLogger("bascule.bridge")


async def see_through(
    store: Store, result: Result, resume: Resume, *, leave: Callable[[str], bool] = lambda run_id: False
) -> Result:
    """Wait for a suspended run and resume it until it is not suspended any more.

    Args:
        resume: takes a run up, and returns when it ends or is suspended again.
        leave: whether a suspended run, by its id, is left so.
    """
    while result.status == "suspended" and not leave(result.run_id):
        await wait_until_due(store, result.run_id)
        try:
            result = await resume(result.run_id)
        except RunBusy:  # somebody else has carried it on
            found = await follow_run(store, result.run_id)
            if found is None:
                raise
            result = found
    return result


async def resume_all(store: Store, resume: Resume) -> list[Result]:
    """Resume every run that can go on and that nobody works on; those that cannot go on here are logged."""
    places = asyncio.Semaphore(RESUMED_AT_ONCE)

    async def take(run_id: str) -> Result | None:
        async with places:
            try:
                return await resume(run_id)
            except (RunBusy, RunNotFound):  # another worker was first
                return None
            except BasculeError as error:
                _log.error("%s cannot be resumed: %s", run_id, error)
                return None

    results = await asyncio.gather(*map(take, due_runs(store)))
    return [result for result in results if result is not None]
