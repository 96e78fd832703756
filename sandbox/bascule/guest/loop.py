"""The loop of the guest: what runs next, and the one way to the host. Deterministic, in lockstep.

It decides the order of everything from three inputs: the script, the order in which the host delivers, and
nothing else. There is no clock, no timer and no file descriptor in it. It is quiescent when nothing is ready;
then the commands of the stretch go out and deliveries come in, one stretch for each.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, Protocol

import msgspec

from bascule.guest.commands import Commands
from bascule.guest.delivery import decode_value
from bascule.guest.depth import check_depth
from bascule.guest.ending import Ender
from bascule.guest.errors import failure_exception
from bascule.guest.futures import Future, HostFuture, activate
from bascule.guest.position import calling_line
from bascule.guest.same_calls import SameCalls
from bascule.guest.threads import Threads
from bascule.guest.withheld import Withheld
from bascule.wire.frames import MAX_SLEEP_S

if TYPE_CHECKING:
    from bascule.guest.calls import ToolCall
    from bascule.guest.clock import Clock
    from bascule.guest.tasks import Task
    from bascule.wire import Act, Delivery, Done


class Host(Protocol):
    """What the loop needs of the channel."""

    def exchange(self, act: Act) -> Done:
        """Send the commands of a stretch and wait for completions."""
        ...

    def hand_over(self, act: Act) -> None:
        """Send output in the middle of a stretch."""
        ...


class Loop:
    """Scheduler, sequence numbers and the table of what the host still owes.

    Args:
        host: where commands go and completions come from.
        clock: set at each delivery.
        commands: what happened since the last Act.
        ender: ends the run when the script can never continue, or called too often.
        max_calls: tool calls in all.

    Attributes:
        threads: those of the script's pools.
    """

    def __init__(self, *, host: Host, clock: Clock, commands: Commands, ender: Ender, max_calls: int) -> None:
        self._host = host
        self._clock = clock
        self._commands = commands
        self._ender = ender
        self._max_calls = max_calls
        self._ready: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._deliveries: deque[Delivery] = deque()
        self._owed: dict[int, HostFuture] = {}
        self._seq = 0
        self._calls = 0
        self._same = SameCalls()
        self._numbers = 0
        self._names = 0
        self.threads = Threads()
        self._stopping = False
        self.closed = False
        self.running = False
        self.current_task: Task | None = None
        self.unstarted: dict[int, ToolCall] = {}
        self.tasks: dict[Task, None] = {}
        self.failed: list[Task] = []
        self.callback_failed: Callable[[Exception], None] = _ignore
        self.left_behind: Callable[[Task], None] = _ignore
        activate(self)

    # ------------------------------------------------------------ numbers

    def next_number(self) -> int:
        """Return the creation number of a future; they hash by it."""
        self._numbers += 1
        return self._numbers

    def next_task_name(self) -> str:
        """Return ``Task-1``, ``Task-2`` …"""
        self._names += 1
        return f"Task-{self._names}"

    def time(self) -> float:
        """Return the script's clock."""
        return self._clock.now

    # ------------------------------------------------------------ to the host

    def issue(self, tool: str, args: msgspec.Raw, line: int | None) -> HostFuture:
        """Call a tool; the future is done once the host delivers.

        Raises:
            RuntimeError: the script has ended.
            ToolArgumentError: the arguments alone exceed what one frame carries.
        """
        self._check_open()
        if self._calls >= self._max_calls:
            self._ender.stop(
                status="limit",
                kind="call_limit",
                message=f"the script made {self._calls} tool calls, the limit, and asked for one more",
                line=line,
                suggestion=self._same.advice(tool, args)
                or "Use a tool that answers for many items at once, or narrow what you loop over.",
            )
        self._same.count(tool, args)
        seq = self._seq + 1
        self._commands.add_call(seq, tool, args, line or 1)
        self._seq = seq
        self._calls += 1
        future = self._owed[seq] = HostFuture(seq)
        return future

    def start_sleep(self, seconds: float) -> HostFuture:
        """Ask the host for a completion after ``seconds``, at most `MAX_SLEEP_S`, after which no run goes on.

        Raises:
            ValueError: that is no number.
        """
        self._check_open()
        if math.isnan(seconds):
            raise ValueError("Invalid value NaN (not a number)")
        seq = self._seq + 1
        self._commands.add_sleep(seq, min(seconds, MAX_SLEEP_S), calling_line())
        self._seq = seq
        future = self._owed[seq] = HostFuture(seq)
        return future

    def abandon(self, seq: int) -> None:
        """Tell the host that nobody waits for this command any longer."""
        if self._owed.pop(seq, None) is not None and not self.closed:
            self._commands.add_cancel(seq)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> HostFuture:
        """Have ``callback()`` called after ``seconds``; cancel the future to take it back."""
        timer = self.start_sleep(seconds)

        def fire(timer: Future) -> None:
            if not timer.cancelled():
                callback()

        timer.add_done_callback(fire)
        return timer

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        """Have ``callback(*args)`` called at the next turn."""
        self._ready.append((callback, args))

    # ------------------------------------------------------------ running

    def run_until_complete(self, future: Future) -> object:
        """Drive everything until ``future`` is done; return its result or raise its exception."""
        self._check_open()
        self.running, outer = True, self.running
        runnable = self.threads.runnable
        future.add_done_callback(self._stop)
        try:
            while not self._stopping:
                if runnable:
                    self._beside_tasks(self.threads.run_next)
                elif self._ready:
                    self._run_turn()
                else:
                    self._next_delivery()
        finally:
            self._stopping = False
            self.running = outer
            future.remove_done_callback(self._stop)
        return future.result()

    def block(self, future: Future) -> object:
        """Wait for ``future`` where a coroutine cannot: in plain functions and in workers."""
        worker = self.threads.current
        if worker is not None:
            worker.wait(future)
            return future.result()
        while not future.done():
            if self.threads.runnable:
                self._beside_tasks(self.threads.run_next)
            else:
                # Tasks stand still meanwhile, as they do in asyncio when one of them blocks.
                self._next_delivery()
        return future.result()

    def sleep(self, seconds: float) -> None:
        """Block for ``seconds`` of the host's time."""
        self.block(self.start_sleep(max(float(seconds), 0.0)))

    def _stop(self, _: Future) -> None:
        self._stopping = True

    def _run_turn(self) -> None:
        for _ in range(len(self._ready)):
            callback, args = self._ready.popleft()
            try:
                callback(*args)
            except Exception as error:
                # As in asyncio, a failing callback fails nobody else; the author learns of it in a note.
                self.callback_failed(error)

    def _next_delivery(self) -> None:
        deliveries = self._deliveries
        if not deliveries and not self._owed:
            if not self.threads.can_spare:
                self._deadlock()
            self._beside_tasks(self.threads.run_parked)
            return
        self._commands.close_stretch()
        if not deliveries:
            deliveries.extend(self._host.exchange(self._commands.take_act()).deliveries)
        delivery = deliveries.popleft()
        self._clock.set(delivery.now)
        future = self._owed.pop(delivery.seq, None)
        if future is None or future.done():
            return
        if delivery.failure is not None and delivery.failure.kind == "withheld":
            future.set_result(Withheld(delivery.failure.message, self._ender))
        elif delivery.failure is not None:
            future.set_exception(failure_exception(delivery.failure))
        else:
            future.set_result(decode_value(delivery.value))

    def waiting_line(self) -> int | None:
        """Return the line at which the first of the unfinished tasks stands, None outside a running loop."""
        if not self.running:
            return None
        lines = (task.line() for task in self.tasks)
        return next((number for number in lines if number is not None), None)

    def _deadlock(self) -> NoReturn:
        message = "no tool call is under way and nothing is left to run"
        hint = "Check that something sets the event, puts the item or releases the lock."
        if self.threads.parked:
            message = (
                f"{self.threads.carried} functions in thread pools wait for others that have no thread left"
            )
            hint = "Use one pool, and submit to it from the outside, not from the functions it runs."
        self._ender.stop(
            status="failed",
            kind="deadlock",
            message=f"the script waits for something that never happens: {message}",
            line=self.waiting_line() or calling_line(),
            suggestion=hint,
        )

    def _check_open(self) -> None:
        if self.closed:
            raise RuntimeError("the script has ended; nothing can be called any more")
        check_depth()

    def finish_workers(self) -> None:
        """Run every function that was submitted to a pool to its end, as Python does before it exits."""
        while self.threads.runnable or self.threads.carried:
            if self.threads.runnable:
                self._beside_tasks(self.threads.run_next)
            else:
                self._next_delivery()

    def _beside_tasks(self, run: Callable[[], None]) -> None:
        task, self.current_task = self.current_task, None
        try:
            run()
        finally:
            self.current_task = task

    def reopen(self, *, max_calls: int) -> None:
        """Forget what the last script of a session left behind, and serve the next one."""
        self._max_calls = max_calls
        self._calls = 0
        self.threads.reopen()
        for left in (self._ready, self._deliveries, self._owed, self.unstarted, self.tasks, self.failed):
            left.clear()
        self.current_task = None
        self.running = self.closed = self._stopping = False

    def close(self) -> None:
        """Refuse everything from now on and unwind what still waits."""
        self.closed = True
        self.threads.close()


def _ignore(_: object) -> None:
    return None
