"""Real threads of which only one runs at any time. Decides who runs; trusts no timing.

A function that the script submits to a pool may block in the middle of a tool call, so it needs a stack of
its own. Control is handed over explicitly, from the loop to a worker and back, which makes the order of
everything the same in every run.
"""

from __future__ import annotations

import _thread
import resource
from collections.abc import Callable
from typing import TYPE_CHECKING

from bascule.guest.ending import Abandoned, RunEnded

if TYPE_CHECKING:
    from bascule.guest.futures import Future
    from bascule.guest.loop import Loop

MAX_WORKERS = 32
"""Threads alive at once; further functions wait for their turn."""

STACK_BYTES = 8 << 20
"""Stack of a thread, as large as that of the main thread: the recursion limit is the same on both."""


class Worker:
    """One thread and the lock that lets it run.

    Args:
        loop: gets control back whenever the worker waits or ends.
        function: what to run; reports its outcome itself and lets only Abandoned out.
    """

    __slots__ = ("_abandoned", "_function", "_loop", "_may_run", "_started", "ident")

    def __init__(self, loop: Loop, function: Callable[[], None]) -> None:
        self._loop = loop
        self._function = function
        self._may_run = _thread.allocate_lock()
        self._may_run.acquire()
        self._started = False
        self._abandoned = False
        self.ident: int | None = None

    def resume(self) -> None:
        """Let the thread run; called by the loop, which then waits for ``yield_control``."""
        if self._started:
            self._may_run.release()
            return
        self._started = True
        _make_room()
        previous = _thread.stack_size(STACK_BYTES)
        try:
            self.ident = _thread.start_new_thread(self._run, ())
        finally:
            _thread.stack_size(previous)

    @property
    def started(self) -> bool:
        """Whether the thread exists."""
        return self._started

    def wait(self, future: Future) -> None:
        """Give control back until ``future`` is done; called on the worker's own thread."""
        future.on_done(lambda _: self._loop.wake(self))
        self._loop.regain_control()
        self._may_run.acquire()
        if self._abandoned:
            raise Abandoned

    def abandon(self) -> bool:
        """Unwind the thread where it waits; False when it never started."""
        self._abandoned = True
        if self._started:
            self._may_run.release()
        return self._started

    def _run(self) -> None:
        try:
            self._function()
        except Abandoned:
            pass
        except RunEnded as ended:
            self._loop.run_ended = ended
        finally:
            self._loop.worker_ended(self)


def _make_room() -> None:
    """Let the address space grow by one stack, so that a pool does not eat into the script's memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_AS, (min(soft + STACK_BYTES, hard), hard))
