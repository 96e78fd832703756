"""When the journal of a run is written: at most `LATEST_S` after something was noted, not for each call.

Nothing outside depends on what is not written yet: before a tool with effects is started, a person is asked,
a run is suspended or ends, all that was noted is written, in order. A read is started only if the journal was
written within the last `LATEST_S`, so a store that is full or a lease that was lost is noticed by then. When
a host dies before, those reads are made again whose results it had delivered meanwhile, and nothing else.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

from bascule.bridge.errors import LeaseLost, StoreError
from bascule.bridge.journal import Journal

LATEST_S: Final = 0.1
"""Longest time for which what was noted is not written."""


class Writing:
    """Has one journal written in time.

    Args:
        failed: called with the error when the journal cannot be written any more.
    """

    def __init__(self, journal: Journal, *, failed: Callable[[BaseException], None]) -> None:
        self._journal = journal
        self._failed = failed
        self._written_at = -math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def keep_up(self) -> None:
        """Return when calls may be started: the journal was written just now, or shortly before.

        Raises:
            StoreError, LeaseLost: it cannot be written any more; nothing may be started.
        """
        if asyncio.get_running_loop().time() - self._written_at > LATEST_S:
            await self._write()
        else:
            self.later()

    def later(self) -> None:
        """Have what was noted by now written within `LATEST_S`; one timer, however often it is asked for."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LATEST_S, self._begin)

    def end(self) -> None:
        """Write nothing more by itself: whoever ends the run writes what is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        self._timer = None
        self._task = asyncio.create_task(self._write_late())

    async def _write_late(self) -> None:
        try:
            await self._write()
        except (StoreError, LeaseLost) as error:
            self._failed(error)

    async def _write(self) -> None:
        began_at = asyncio.get_running_loop().time()
        await self._journal.flush()
        self._written_at = began_at
