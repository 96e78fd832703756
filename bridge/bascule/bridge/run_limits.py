"""What ends a run that takes too long: when that is certain, and in which words."""

from __future__ import annotations

from typing import Literal

from bascule.bridge.clock import RunClock
from bascule.bridge.limits import Limits
from bascule.bridge.outstanding import Outstanding
from bascule.bridge.verdict import RunStopped


def out_of_time(kind: Literal["wall_limit", "run_limit"], limits: Limits) -> RunStopped:
    """Return what ends a run at a limit that is reached."""
    if kind == "wall_limit":
        return RunStopped("limit", kind, f"stopped after {limits.wall_s:g} s of running")
    return RunStopped("limit", kind, f"stopped: the run with its tools took more than {limits.run_s:g} s")


def check_sleep(outstanding: Outstanding, clock: RunClock, limits: Limits, *, suspended_in_s: float) -> None:
    """End a blocked run at once that would only sleep past ``run_s``, for nothing can happen before that.

    Args:
        suspended_in_s: seconds until the run is suspended, from when on nothing counts; 0 is never, for a
            sandbox that is needed again too soon.

    Raises:
        RunStopped: ``run_s`` would end first.
    """
    left_s = clock.remaining_s()
    if left_s is None or 0 < suspended_in_s < left_s:
        return
    sleeper = outstanding.only_sleep_beyond(left_s)
    if sleeper is None:
        return
    raise RunStopped(
        "limit",
        "run_limit",
        f"stopped, waiting for {sleeper.seconds:,.10g} s: the run with its tools may take {limits.run_s:g} s",
        line=sleeper.line,
    )
