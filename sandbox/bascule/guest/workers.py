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
    from bascule.guest.threads import Threads

MAX_WORKERS = 32
"""Threads alive at once; further functions wait for their turn."""

SPARE_WORKERS = 16
"""Threads beyond those, for functions that all others wait for: a pool inside the functions of a pool."""

STACK_BYTES = 12 << 20
"""Address space of a thread's stack, enough for ``limits.MAX_RECURSION``; memory is taken as it is used."""


class Worker:
    """One function that runs beside the script, and the thread that carries it once it has started.

    Args:
        threads: get control back whenever the function waits or ends.
        function: what to run; reports its outcome itself and lets only the end of the run out.
    """

    __slots__ = ("_function", "_threads", "carrier")

    def __init__(self, threads: Threads, function: Callable[[], None]) -> None:
        self._threads = threads
        self._function = function
        self.carrier: Carrier | None = None

    def run(self) -> None:
        """Run the function; called on the carrier's thread."""
        try:
            self._function()
        except Abandoned:
            pass
        except RunEnded as ended:
            self._threads.run_ended = ended
        finally:
            self._threads.worker_ended(self)

    def wait(self, future: Future) -> None:
        """Give control back until ``future`` is done; called on the carrier's thread."""
        assert self.carrier is not None
        future.on_done(self._wake)
        self._threads.regain_control()
        self.carrier.pause()

    def _wake(self, _: Future) -> None:
        self._threads.wake(self)


class Carrier:
    """One thread, used by one worker after the other."""

    __slots__ = ("_abandoned", "_may_run", "ident", "worker")

    def __init__(self) -> None:
        self._may_run = _thread.allocate_lock()
        self._may_run.acquire()
        self._abandoned = False
        self.worker: Worker | None = None
        _make_room()
        previous = _thread.stack_size(STACK_BYTES)
        try:
            self.ident = _thread.start_new_thread(self._serve, ())
        finally:
            _thread.stack_size(previous)

    def resume(self) -> None:
        """Let the thread run; the caller then waits until control comes back."""
        self._may_run.release()

    def pause(self) -> None:
        """Wait for ``resume``; called on the thread itself.

        Raises:
            Abandoned: the run is over.
        """
        self._may_run.acquire()
        if self._abandoned:
            raise Abandoned

    def abandon(self) -> None:
        """Unwind what the thread is in the middle of, and end it."""
        self._abandoned = True
        self._may_run.release()

    def _serve(self) -> None:
        while True:
            self._may_run.acquire()
            if self.worker is None:
                return
            self.worker.run()


def _make_room() -> None:
    """Let the address space grow by one stack, so that a pool does not eat into the script's memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_AS, (min(soft + STACK_BYTES, hard), hard))
