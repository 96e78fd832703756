"""Watches the approvals one run waits for: decided from anywhere, expired, or due for a reminder.

One task per run, however many approvals wait. The store tells of changes made in this process; those of other
processes are seen within `POLL_S`. Every change anywhere in the store calls for a look, so a look reads only
what is not pending any more (an approval is read in full once, for when it expires), and a run that waits for
many looks less often: otherwise n decisions would cost n² reads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from bascule.bridge.approval_card import ApprovalState
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.decide import expire
from bascule.bridge.store import POLL_S, Store

REMIND_AT: Final = (0.5, 0.9)
"""Shares of an approval's time after which people are reminded of it."""

_SLACK_S: Final = 0.01
_OVER: Final = tuple(state for state in ApprovalState if state != ApprovalState.PENDING)
_GAP_S: Final = 0.001
"""Between two looks, for each approval that is waited for; `POLL_S` at most."""


class Watch:
    """Tells whoever waits for an approval when it is decided.

    Args:
        remind: called with an approval of which people should be reminded.
    """

    def __init__(self, store: Store, *, remind: Callable[[ApprovalRecord], None]) -> None:
        self._store = store
        self._remind = remind
        self._waiting: dict[str, asyncio.Future[ApprovalRecord]] = {}
        self._timed: dict[str, ApprovalRecord | None] = {}
        self._reminded: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None

    async def decided(self, approval_id: str) -> ApprovalRecord:
        """Return the record once it is not pending any more."""
        future: asyncio.Future[ApprovalRecord] = asyncio.get_running_loop().create_future()
        self._waiting[approval_id] = future
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            return await future
        finally:
            self._waiting.pop(approval_id, None)
            self._timed.pop(approval_id, None)

    def fail(self, error: BaseException) -> None:
        """Have everybody who waits raise ``error``."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)

    async def _watch(self) -> None:
        try:
            while self._waiting:
                wait_s = self._look()
                looked_at = time.monotonic()
                if self._waiting:
                    await self._store.changed(wait_s)
                    gap_s = min(_GAP_S * len(self._waiting), POLL_S)
                    await asyncio.sleep(max(looked_at + gap_s - time.monotonic(), 0.0))
        except Exception as broken:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(broken)

    def _look(self) -> float:
        """Settle what is decided or expired; return the seconds until something can expire or is due."""
        approvals = self._store.approvals
        if fresh := [each for each in self._waiting if each not in self._timed]:
            for record in approvals.find(ids=fresh, limit=len(fresh)):
                # When it expires is part of its digest and never changes.
                self._timed[record.id] = None if record.expires_at is None else record
        now = time.time()
        wait_s = POLL_S
        for record in [each for each in self._timed.values() if each is not None]:
            assert record.expires_at is not None
            if now >= record.expires_at:
                current = approvals.get(record.id)
                if current is not None and current.state == ApprovalState.PENDING:
                    wait_s = wait_s if expire(approvals, current) else 0.0
            else:
                wait_s = min(wait_s, record.expires_at - now + _SLACK_S)
                self._remind_if_due(record, now)
        for record in approvals.find(ids=self._waiting, states=_OVER, limit=len(self._waiting)):
            future = self._waiting[record.id]
            if not future.done():
                future.set_result(record)
                del self._waiting[record.id]
                self._timed.pop(record.id, None)
        return max(wait_s, 0.0)

    def _remind_if_due(self, record: ApprovalRecord, now: float) -> None:
        assert record.expires_at is not None
        share = (now - record.created_at) / max(record.expires_at - record.created_at, 1.0)
        due = sum(share >= at for at in REMIND_AT)
        if due > self._reminded.get(record.id, 0):
            self._reminded[record.id] = due
            self._remind(record)
