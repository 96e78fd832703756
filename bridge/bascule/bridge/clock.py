"""The clock of one run: how long the guest was running, how long the run took, and what of it people took.

Only two things count against limits: the guest running (``wall_s``), and everything but people (``run_s``).

The guest is running from a frame that was sent to it to the frame it answers with. What the host works
meanwhile, for this run or for others on the same event loop, it works while that answer may be waiting to be
read: as much is taken off. A hostile guest gains no more by it than the host is busy, and that within
``run_s``; an honest one keeps its own, exact time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Literal

from bascule.bridge.limits import GUEST_GRACE_S, Limits


class RunClock:
    """Measures one run; begins when it is made.

    Args:
        limits: of the run.
        changed: called when a wait for a person begins or ends, because deadlines move with it.
        used_s: what earlier workers used of ``run_s``, when the run was suspended and resumed.
        read: a clock that only rises, in seconds.
        worked: CPU seconds of the thread that serves the run, which is the one that asks.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        changed: Callable[[], None] = lambda: None,
        used_s: float = 0.0,
        read: Callable[[], float] = time.monotonic,
        worked: Callable[[], float] = time.thread_time,
    ) -> None:
        self._limits = limits
        self._changed = changed
        self._read = read
        self._worked = worked
        self._begun = read()
        self._used_s = used_s
        self._active_s = 0.0
        self._active_since: float | None = None
        self._worked_before = 0.0
        self._people = 0
        self._people_s = 0.0
        self._people_since = 0.0

    def begin(self) -> None:
        """Count from now on: what the sandbox took to start is not the run's."""
        self._begun = self._read()

    def guest_runs(self) -> None:
        """Note that the guest was given something to do."""
        self._active_since = self._read()
        self._worked_before = self._worked()

    def guest_waits(self) -> None:
        """Note that the guest said it is blocked, or ended."""
        self._active_s = self.active_s
        self._active_since = None

    @contextmanager
    def people(self) -> Generator[None]:
        """Keep the run's time from counting while a person is asked."""
        if self._people == 0:
            self._people_since = self._read()
        self._people += 1
        self._changed()
        try:
            yield
        finally:
            self._people -= 1
            if self._people == 0:
                self._people_s += self._read() - self._people_since
            self._changed()

    @property
    def wall_s(self) -> float:
        """Seconds since the run began, people included."""
        return self._read() - self._begun

    @property
    def active_s(self) -> float:
        """Seconds in which the guest was running."""
        if self._active_since is None:
            return self._active_s
        worked_s = self._worked() - self._worked_before
        return self._active_s + max(0.0, self._read() - self._active_since - worked_s)

    @property
    def used_s(self) -> float:
        """Seconds that count against ``run_s``, those of earlier workers among them."""
        people_s = self._people_s
        if self._people:
            people_s += self._read() - self._people_since
        return self._used_s + self.wall_s - people_s

    def remaining_s(self) -> float | None:
        """Return the seconds until a limit is reached, None while only people are waited for."""
        left: list[float] = []
        if self._active_since is not None:
            left.append(self._wall_left_s())
        if self._people == 0:
            left.append(self._limits.run_s - self.used_s)
        return max(0.0, min(left)) if left else None

    def expired(self) -> Literal["wall_limit", "run_limit"] | None:
        """Return which limit is reached, the script's own first."""
        if self._active_since is not None and self._wall_left_s() <= 0:
            return "wall_limit"
        if self._people == 0 and self.used_s >= self._limits.run_s:
            return "run_limit"
        return None

    def _wall_left_s(self) -> float:
        """Return the seconds the guest has left; what the host worked is slow to read, so only at the end."""
        assert self._active_since is not None
        longest_s = self._limits.wall_s + GUEST_GRACE_S
        left_s = longest_s - self._active_s - (self._read() - self._active_since)
        return left_s if left_s > 0 else longest_s - self.active_s
