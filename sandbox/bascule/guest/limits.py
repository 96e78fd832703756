"""The guest's own limits, a little before the host's, so that the message can name the line.

Signals interrupt Python code; a loop in C never lets a handler run, so half a second later faulthandler,
which needs no interpreter, writes the traceback to stderr and exits, and the host reads the line there.
Memory is bounded by address space. The host's kill is final; nothing here is relied upon.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Literal, NoReturn

from bascule.guest.workers import MAX_WORKERS, SPARE_WORKERS, STACK_BYTES
from bascule.wire import GuestLimits

GRACE_S = 0.5
"""Seconds between the Python handler and the one that needs no interpreter."""

MAX_RECURSION = 2_000
"""Deepest recursion, whatever Start asks. Nesting through ``sorted`` takes most stack, 4.6 KiB a call: with
8 MiB, CPython 3.13 crashes between 1,500 and 1,800 calls, 3.11 above 3,000; with 12 MiB neither."""

_MAIN_STACK_BYTES = 64 << 20
"""Stack of the main thread, which grows as it is used. CPython 3.12 and 3.13 count calls from C to C apart
and allow 10,000 of them."""

_AGAIN_S = 0.02

_LAST_FRAME_S = 5.0
"""Time that sending the last frame may take before faulthandler could end it."""

_OWN_FRAMES = 180
"""Frames of the guest above and below the script's own, ``depth.EXCHANGE_FRAMES`` among them."""

Kind = Literal["wall_limit", "cpu_limit"]
Stop = Callable[[Kind, float, "FrameType | None"], NoReturn]


class Deadlines:
    """Wall and CPU limits of one run. Time in which the host works does not count as wall time.

    Args:
        limits: what Start asks for.
        stop: ends the run; gets the kind, the limit in seconds and the frame of the main thread.
    """

    def __init__(self, limits: GuestLimits, stop: Stop) -> None:
        self._wall_s = limits.wall_s
        self._cpu_s = limits.cpu_s
        self._stop = stop
        self._used_s = 0.0
        self._since: float | None = None
        self._armed = False
        self._fired = False

    def start(self) -> None:
        """Arm everything; the script runs from now on."""
        signal.signal(signal.SIGALRM, self._on_alarm)
        signal.signal(signal.SIGPROF, self._on_cpu)
        signal.setitimer(signal.ITIMER_PROF, self._cpu_s, _AGAIN_S)
        self._since = time.monotonic()
        self._arm(self._wall_s)

    def pause(self) -> None:
        """The script waits for the host. The timers stay as they are: a spurious alarm is cheaper."""
        since, self._since = self._since, None
        if since is not None:
            self._used_s += time.monotonic() - since

    def resume(self) -> None:
        """The script runs again."""
        self._since = time.monotonic()
        if not self._armed:
            self._arm(max(self._wall_s - self._used_s, 0.001))

    def cancel(self) -> None:
        """Disarm everything; the run is over and only the last frame has to go out."""
        self.pause()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        # Joining faulthandler's thread costs more than the rest of a short run; the process ends first.
        if self._wall_s - self._used_s < _LAST_FRAME_S:
            faulthandler.cancel_dump_traceback_later()

    def _arm(self, seconds: float) -> None:
        self._armed = True
        # The alarm repeats: a handler that fails, too deep or out of memory, gets another chance.
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)
        faulthandler.dump_traceback_later(seconds + GRACE_S, exit=True, file=sys.__stderr__ or 2)

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        since = self._since
        if self._fired:
            self._end("wall_limit", self._wall_s, frame)
            return
        if since is None:
            # Waiting for the host: stop ringing until the script runs again.
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
            return
        left = self._wall_s - self._used_s - (time.monotonic() - since)
        if left > 0:
            self._arm(left)
            return
        self._end("wall_limit", self._wall_s, frame)

    def _on_cpu(self, number: int, frame: FrameType | None) -> None:
        if self._since is not None or self._fired:
            self._end("cpu_limit", self._cpu_s, frame)

    def _end(self, kind: Kind, limit_s: float, frame: FrameType | None) -> None:
        self._fired = True
        # The script may stand at its recursion limit; ending it needs some frames more.
        sys.setrecursionlimit(sys.getrecursionlimit() + _OWN_FRAMES)
        try:
            self._stop(kind, limit_s, frame)
        except (RecursionError, MemoryError):
            # The next alarm tries again, and faulthandler ends what cannot be ended here.
            return


class NoDeadlines:
    """For runs inside a test's process, which must not be interrupted or killed."""

    def pause(self) -> None:
        """Do nothing."""

    def resume(self) -> None:
        """Do nothing."""


def recursion_of(limits: GuestLimits) -> int:
    """Return the recursion limit that is in force."""
    return min(limits.recursion, MAX_RECURSION)


def apply_process_limits(limits: GuestLimits, *, session: bool = False) -> None:
    """Bound memory, CPU time, core files and recursion of this process, for good.

    A session gets CPU time anew for each script, which a bound for good cannot give; there the timers alone
    hold, and the host's own limit on running time.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    _lower(resource.RLIMIT_STACK, _MAIN_STACK_BYTES, hard)
    with open("/proc/self/statm", "rb") as statm:
        used_bytes = int(statm.read().split()[0]) * resource.getpagesize()
    # Threads add their stacks one by one: see Worker.
    memory_bytes = used_bytes + limits.memory_bytes
    _lower(resource.RLIMIT_AS, memory_bytes, memory_bytes + (MAX_WORKERS + SPARE_WORKERS) * STACK_BYTES)
    if not session:
        used_s = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = int(used_s.ru_utime + used_s.ru_stime + limits.cpu_s + GRACE_S) + 2
        _lower(resource.RLIMIT_CPU, cpu_s, cpu_s)
    sys.setrecursionlimit(recursion_of(limits) + _OWN_FRAMES)


def _lower(which: int, soft: int, hard: int) -> None:
    _, before = resource.getrlimit(which)
    if before != resource.RLIM_INFINITY:
        soft, hard = min(soft, before), min(hard, before)
    resource.setrlimit(which, (soft, hard))


def exit_now() -> NoReturn:
    """Leave without unwinding anything."""
    os._exit(0)
