"""What a script waits for in one run: calls that cross the bridge, sleeps, and completions not yet delivered.

Commands come from an untrusted guest: their numbers must rise, a cancel must name a number that was issued,
and no more than `MAX_OUTSTANDING` may wait at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from bascule.bridge.failure import LimitReached
from bascule.bridge.journal import EventKind
from bascule.bridge.ledger import CallRecord
from bascule.bridge.pipeline import Crossing, cross
from bascule.bridge.verdict import RunStopped, violation
from bascule.wire import Call, Delivery, Sleep, ToolFailure

MAX_SEQ: Final = 2**31
"""Highest number of a command."""

MAX_OUTSTANDING: Final = 20_000
"""Calls and sleeps a script may wait for at once; each costs the host a task."""

MAX_SLEEP_S: Final = 10 * 86_400.0
"""Longest sleep taken; the run's own limit ends it long before."""

MAX_BATCH_BYTES: Final = 32 << 20
"""Bytes of results in one Done before the rest waits for the next; a single larger result travels alone."""

LAST_CALLS_S: Final = 60.0
"""Longest wait for effects that still run when the script has ended, so that receipts tell the truth."""

_log = logging.getLogger("bascule.bridge")


class Outstanding:
    """The commands of one run that are not over.

    Args:
        shared: what the calls of the run share.
        changed: called when a completion is ready.
        stop: called with the reason when the whole run must end.
    """

    def __init__(
        self, shared: Crossing, *, changed: Callable[[], None], stop: Callable[[BaseException], None]
    ) -> None:
        self._shared = shared
        self._changed = changed
        self._stop = stop
        self._calls: dict[int, tuple[CallRecord, asyncio.Task[None]]] = {}
        self._sleeps: dict[int, asyncio.TimerHandle] = {}
        self._ready: OrderedDict[int, tuple[Delivery, int]] = OrderedDict()
        self._awaited_calls = 0
        self._last_seq = 0
        self._now = 0.0

    @property
    def any_ready(self) -> bool:
        """Whether a completion can be delivered."""
        return bool(self._ready)

    @property
    def any_awaited(self) -> bool:
        """Whether a completion is ready or will come."""
        return bool(self._ready or self._sleeps or self._awaited_calls)

    def issue(self, call: Call, *, final: bool) -> None:
        """Begin a call; one that came with the finish is noted and never started, for nobody waits for it.

        Raises:
            RunStopped: a limit is reached, or the number is wrong.
        """
        self._number(call.seq)
        shared = self._shared
        record = shared.ledger.open(call)
        shared.journal.append(EventKind.CALL_ISSUED, seq=call.seq, tool=call.tool, line=call.line)
        try:
            shared.budget.reserve_call(line=call.line)
        except LimitReached as limit:
            raise _limit(limit) from limit
        if not final:
            self._awaited_calls += 1
            task = asyncio.create_task(self._cross(record))
            self._calls[call.seq] = (record, task)

    def start_sleep(self, sleep: Sleep, *, final: bool) -> None:
        """Begin a sleep.

        Raises:
            RunStopped: a limit is reached, or number or length are wrong.
        """
        self._number(sleep.seq)
        if not 0 <= sleep.seconds <= MAX_SLEEP_S:
            raise violation("a sleep of no sensible length")
        self._shared.journal.append(EventKind.SLEEP_ISSUED, seq=sleep.seq, seconds=sleep.seconds)
        if not final:
            loop = asyncio.get_running_loop()
            self._sleeps[sleep.seq] = loop.call_later(sleep.seconds, self._wake_sleeper, sleep.seq)

    def cancel(self, seq: int) -> None:
        """Stop what can be stopped: a call whose tool was started goes on, its result is dropped.

        Raises:
            RunStopped: no such command was ever issued.
        """
        if not 0 < seq <= self._last_seq:
            raise violation(f"cancel of command {seq}, which was never issued")
        self._shared.journal.append(EventKind.CALL_CANCELLED, seq=seq)
        timer = self._sleeps.pop(seq, None)
        if timer is not None:
            timer.cancel()
        found = self._calls.get(seq)
        if found is None:  # its completion is under way: in the Done just answered, or in the next one
            self._ready.pop(seq, None)
            return
        record, task = found
        if not record.cancelled:
            record.cancelled = True
            self._awaited_calls -= 1
        if not record.dispatched:
            del self._calls[seq]
            task.cancel()

    def take_ready(self) -> tuple[Delivery, ...]:
        """Return completions in the order they became ready, as many as one Done should carry."""
        batch: list[Delivery] = []
        size = 0
        while self._ready:
            seq, (delivery, value_bytes) = self._ready.popitem(last=False)
            size += value_bytes
            if batch and size > MAX_BATCH_BYTES:
                self._ready[seq] = delivery, value_bytes
                self._ready.move_to_end(seq, last=False)
                break
            batch.append(delivery)
        seqs = tuple(str(delivery.seq) for delivery in batch)
        self._shared.journal.append(EventKind.DELIVERED, seqs=seqs, now=self._now)
        return tuple(batch)

    async def end(self) -> None:
        """End what is left: undispatched calls never start, reads are dropped, effects are waited for."""
        for timer in self._sleeps.values():
            timer.cancel()
        effects: set[asyncio.Task[None]] = set()
        rest: set[asyncio.Task[None]] = set()
        for record, task in self._calls.values():
            if record.dispatched and record.effects != "read":
                effects.add(task)
            else:
                rest.add(task)
                task.cancel()
        if effects:
            _, late = await asyncio.wait(effects, timeout=LAST_CALLS_S)
            for task in late:
                task.cancel()
            rest |= late
        if rest:
            _, stuck = await asyncio.wait(rest, timeout=1.0)
            if stuck:
                _log.error("run %s: %d calls did not end when cancelled", self._shared.run_id, len(stuck))

    def _number(self, seq: int) -> None:
        if not self._last_seq < seq <= MAX_SEQ:
            raise violation(f"command {seq} after command {self._last_seq}")
        self._last_seq = seq
        if len(self._calls) + len(self._sleeps) >= MAX_OUTSTANDING:
            raise RunStopped(
                "limit",
                "waiting_limit",
                f"stopped: the script waits for more than {MAX_OUTSTANDING} things at once",
            )

    async def _cross(self, record: CallRecord) -> None:
        seq = record.call.seq
        try:
            outcome = await cross(record, self._shared)
        except LimitReached as limit:
            self._stop(_limit(limit))
            return
        except Exception as bug:  # a bug of the host: the run must not go on as if nothing had happened
            self._stop(bug)
            return
        self._calls.pop(seq, None)
        if record.cancelled:
            return
        self._awaited_calls -= 1
        if isinstance(outcome, ToolFailure):
            self._complete(seq, failure=outcome)
        else:
            self._complete(seq, outcome)

    def _wake_sleeper(self, seq: int) -> None:
        del self._sleeps[seq]
        self._complete(seq)

    def _complete(self, seq: int, value: bytes = b"null", failure: ToolFailure | None = None) -> None:
        self._now = max(self._now, time.time())
        delivery = Delivery(seq=seq, now=self._now, value=msgspec.Raw(value), failure=failure)
        self._ready[seq] = delivery, len(value)
        self._changed()


def _limit(limit: LimitReached) -> RunStopped:
    return RunStopped("limit", limit.kind, limit.message, line=limit.line)
