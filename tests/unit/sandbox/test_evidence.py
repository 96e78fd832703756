"""How a process exited is known from the moment on that its parent has learnt of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from bascule.sandbox.evidence import Evidence


def exited_child(code: int) -> subprocess.Popen[bytes]:
    """Start a process that exits at once; wait until it has, without reaping it."""
    child = subprocess.Popen([sys.executable, "-S", "-c", f"import os; os._exit({code})"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return child


async def learn(evidence: Evidence, reap: Callable[[], object]) -> int | None:
    learning = asyncio.ensure_future(evidence.wait_exit(60))
    await asyncio.sleep(0)
    reap()
    return await learning


@pytest.mark.parametrize("code", [0, 7])
def test_the_status_comes_with_the_reaping(code: int) -> None:
    child = exited_child(code)
    evidence = Evidence(child.pid, grouped=False)
    try:
        status = asyncio.run(learn(evidence, child.wait))
    finally:
        evidence.close()
    # A kernel before 6.15 does not tell, and the engine is asked.
    assert status is None or os.waitstatus_to_exitcode(status) == code


def test_a_process_that_nobody_reaps_is_not_waited_for() -> None:
    child = exited_child(3)
    evidence = Evidence(child.pid, grouped=False)
    try:
        assert asyncio.run(learn(evidence, lambda: None)) is None
    finally:
        evidence.close()
        child.wait()


def test_a_process_that_still_runs_is_waited_for_only_so_long() -> None:
    evidence = Evidence(os.getpid(), grouped=False)
    try:
        with pytest.raises(TimeoutError):
            asyncio.run(evidence.wait_exit(0.05))
    finally:
        evidence.close()
