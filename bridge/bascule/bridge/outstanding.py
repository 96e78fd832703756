"""What a script waits for in one run: calls that cross the bridge, sleeps, and completions not yet delivered.

Commands come from an untrusted guest: their numbers must rise, a cancel must name a number that was issued,
and no more than `MAX_OUTSTANDING` may wait at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from bascule.bridge.completions import Completions
from bascule.bridge.crossing import Crossing
from bascule.bridge.failure import LimitReached, RunTerminated
from bascule.bridge.first_step import begin
from bascule.bridge.history import History, call_command, cancel_command, sleep_command
from bascule.bridge.journal import EventKind, digest_of
from bascule.bridge.ledger import CallRecord
from bascule.bridge.pipeline import cross
from bascule.bridge.replay import Replay
from bascule.bridge.result import Status
from bascule.bridge.sleeper import Sleeper, Sleeps
from bascule.bridge.verdict import RunStopped, RunSuspended, violation
from bascule.tools import AnyTool
from bascule.wire import Call, Delivery, Sleep, ToolFailure
from bascule.wire.frames import MAX_SLEEP_S

MAX_SEQ: Final = 2**31
"""Highest number of a command."""

MAX_OUTSTANDING: Final = 20_000
"""Calls and sleeps a script may wait for at once; each costs the host a task."""

LAST_CALLS_S: Final = 60.0
"""Longest wait for effects that still run when the script has ended, so that receipts tell the truth."""

_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("bascule.bridge")


class Outstanding:
    """The commands of one run that are not over.

    Args:
        shared: what the calls of the run share.
        replay: what an earlier worker recorded; until it is used up nothing is started here.
        changed: called when a completion is ready.
        stop: called with the reason when the whole run must end.
    """

    def __init__(
        self,
        shared: Crossing,
        *,
        replay: Replay | None,
        changed: Callable[[], None],
        stop: Callable[[BaseException], None],
    ) -> None:
        self._shared = shared
        self._replay = replay
        self._stop = stop
        self._calls: dict[int, tuple[CallRecord, asyncio.Task[None] | None]] = {}
        self._unstarted: list[CallRecord] = []
        self._awaited_calls = 0
        self._last_seq = 0
        last_now = 0.0 if replay is None else replay.history.last_now
        self._completions = Completions(last_now=last_now, changed=changed)
        self._sleeps = Sleeps(self._completions.add)

    @property
    def any_ready(self) -> bool:
        """Whether a completion can be delivered."""
        return bool(self._completions)

    @property
    def any_awaited(self) -> bool:
        """Whether a completion is ready or will come."""
        return bool(self._completions or self._sleeps or self._awaited_calls)

    @property
    def idle(self) -> bool:
        """Whether everything that is not over waits for people, timers or jobs elsewhere."""
        if self._completions or self._shared.parking.waits.keys() != self._calls.keys():
            return False
        return bool(self._calls or self._sleeps)

    def sleeps_longer_than(self, seconds: float) -> bool:
        """Return whether no timer will wake an idle run within ``seconds``."""
        wake_at = self._shared.parking.wake_at(self._sleeps.dues)
        return wake_at is None or wake_at - time.time() > seconds

    def only_sleep_beyond(self, seconds: float) -> Sleeper | None:
        """Return the sleep that ends first, if nothing else is awaited and it lasts more than ``seconds``."""
        first = self._sleeps.first
        if self._completions or self._awaited_calls or first is None:
            return None
        return first if first.left_s > seconds else None

    def suspension(self) -> RunSuspended:
        """Return what suspends an idle run: what it waits for, and when a timer wakes it."""
        return self._shared.parking.suspension(self._sleeps.dues)

    def issue(self, call: Call, act: int, *, final: bool) -> None:
        """Note a call, to be begun by `start_issued`; one that came with the finish is never begun.

        Raises:
            RunStopped: a limit is reached, or the number is wrong.
        """
        self._number(call.seq)
        shared = self._shared
        if shared.redactor.holds_secret(call.tool):
            raise violation("the name of a tool holds a secret of the host")
        record = shared.ledger.open(call)
        args = _encode(call.args)
        # Of the raw arguments, also where what is kept is without a secret: a replay compares them.
        args_sha256 = digest_of(args)
        kept = shared.redactor.json(args)
        command = call_command(call.seq, call.tool, args_sha256, call.line)
        if self._replay is not None and self._replay.take_command(act, command):
            tool = shared.registry.get(call.tool)
            record.restore(self._replay.history.call(call.seq), tool)
            if tool is not None:
                shared.gate.recall(tool, record)
            shared.budget.result_bytes += record.result_bytes
        else:
            shared.journal.append(
                EventKind.CALL_ISSUED,
                kept,
                seq=call.seq,
                tool=call.tool,
                line=call.line,
                args_sha256=args_sha256,
                act=act,
            )
        if kept is not args:
            record.hide(kept)
        try:
            shared.budget.reserve_call(line=call.line)
        except LimitReached as limit:
            raise _limit(limit) from limit
        if not final:
            self._awaited_calls += 1
            self._calls[call.seq] = (record, None)
            self._unstarted.append(record)

    def start_issued(self) -> None:
        """Begin the calls that were noted; they are in the journal by now. After a replay, go live."""
        replay, self._replay = self._replay, None
        if replay is not None:
            self._go_live(replay.history)
        unstarted, self._unstarted = self._unstarted, []
        at_once = True
        for record in unstarted:
            seq = record.call.seq
            if self._calls.get(seq) != (record, None):
                continue
            # Calls are begun in the order of their issue: behind one that has a task, all have.
            at_once = at_once and _needs_no_task(record, self._shared.registry.get(record.call.tool))
            rest = begin(self._cross(record)) if at_once else self._cross(record)
            if rest is not None:
                self._calls[seq] = (record, asyncio.create_task(_finish(rest)))
                at_once = False

    def note_replayed(self, deliveries: Sequence[Delivery]) -> None:
        """Take note of recorded completions that are delivered again."""
        for delivery in deliveries:
            found = self._calls.pop(delivery.seq, None)
            if found is not None and not found[0].cancelled:
                self._awaited_calls -= 1
            self._sleeps.drop(delivery.seq)

    def _go_live(self, history: History) -> None:
        """Deliver what was completed and never delivered, and let time run again."""
        for seq in history.order:
            found = self._calls.pop(seq, None)
            if found is not None and not found[0].cancelled:
                self._awaited_calls -= 1
                past = history.call(seq)
                self._completions.add(seq, past.value, past.failure)
        self._sleeps.go_live()

    def start_sleep(self, sleep: Sleep, act: int, *, final: bool) -> None:
        """Begin a sleep.

        Raises:
            RunStopped: a limit is reached, or number or length are wrong.
        """
        self._number(sleep.seq)
        if not 0 <= sleep.seconds <= MAX_SLEEP_S:
            raise violation("a sleep of no sensible length")
        replay = self._replay
        if replay is not None and replay.take_command(act, sleep_command(sleep.seq, sleep.seconds)):
            if not final:
                due = replay.history.sleeps.get(sleep.seq, 0.0)
                self._sleeps.add(sleep.seq, Sleeper(due, sleep.seconds, sleep.line), live=False)
            return
        due = time.time() + sleep.seconds
        self._shared.journal.append(
            EventKind.SLEEP_ISSUED, seq=sleep.seq, seconds=sleep.seconds, due=due, act=act
        )
        if not final:
            self._sleeps.add(sleep.seq, Sleeper(due, sleep.seconds, sleep.line), live=replay is None)

    def cancel(self, seq: int, act: int) -> None:
        """Stop what can be stopped: a call whose tool was started goes on, its result is dropped.

        Raises:
            RunStopped: no such command was ever issued.
        """
        if not 0 < seq <= self._last_seq:
            raise violation(f"cancel of command {seq}, which was never issued")
        if self._replay is None or not self._replay.take_command(act, cancel_command(seq)):
            self._shared.journal.append(EventKind.CALL_CANCELLED, seq=seq, act=act)
        self._sleeps.drop(seq)
        found = self._calls.get(seq)
        if found is None:  # its completion is under way: in the Done just answered, or in the next one
            self._completions.drop(seq)
            return
        record, task = found
        if not record.cancelled:
            record.cancelled = True
            self._awaited_calls -= 1
        if not record.dispatched:
            del self._calls[seq]
            if task is not None:
                task.cancel()

    def take_ready(self) -> tuple[Delivery, ...]:
        """Return completions in the order they became ready, as many as one Done should carry."""
        batch = self._completions.take()
        self._shared.journal.append(
            EventKind.DELIVERED,
            seqs=[delivery.seq for delivery in batch],
            nows=[delivery.now for delivery in batch],
        )
        return batch

    async def end(self) -> None:
        """End what is left: undispatched calls never start, reads are dropped, effects are waited for."""
        self._sleeps.stop()
        effects: set[asyncio.Task[None]] = set()
        rest: set[asyncio.Task[None]] = set()
        for seq, (record, task) in self._calls.items():
            if task is None:
                continue
            if record.dispatched and record.effects != "read" and seq not in self._shared.parking.waits:
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
            self._completions.add(seq, failure=outcome)
        else:
            self._completions.add(seq, outcome)


def _needs_no_task(record: CallRecord, tool: AnyTool | None) -> bool:
    """Whether a call ends without a wait, unless somebody must be asked or it has to queue.

    What asks for the current task (a timeout around a business check, a preview, a wait by a rate)
    must have one of its own.
    """
    if tool is None or record.past is not None or not tool.inline or tool.effects != "read":
        return False
    return tool.check is None and tool.preview is None and tool.rate is None


async def _finish(rest: Awaitable[None]) -> None:
    await rest


def _limit(limit: LimitReached) -> RunStopped:
    status: Status = "cancelled" if isinstance(limit, RunTerminated) else "limit"
    return RunStopped(status, limit.kind, limit.message, line=limit.line)
