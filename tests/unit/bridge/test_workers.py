"""Threads for synchronous tools: bounded, replaceable when stuck, and honest about what was raised."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from bascule.bridge.workers import Workers

pytestmark = pytest.mark.anyio


async def test_a_job_runs_on_another_thread_in_the_callers_context() -> None:
    variable = contextvars.ContextVar[str]("variable")
    variable.set("here")
    workers = Workers(size=2)
    assert await workers.submit(variable.get) == "here"
    assert await workers.submit(threading.get_ident) != threading.get_ident()
    workers.close()


async def test_no_more_threads_run_than_the_pool_has_places() -> None:
    workers = Workers(size=3)
    lock = threading.Lock()
    inside = most = 0

    def job() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        with lock:
            inside -= 1

    await asyncio.gather(*(workers.submit(job) for _ in range(50)))
    assert 1 <= most <= 3
    workers.close()


async def test_a_stuck_job_gives_its_place_to_another_thread() -> None:
    workers = Workers(size=1)
    release = threading.Event()
    stuck = workers.submit(lambda: release.wait(10))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(stuck, 0.05)
    assert await asyncio.wait_for(workers.submit(lambda: "runs"), 5) == "runs"
    release.set()
    assert await asyncio.wait_for(workers.submit(lambda: "still runs"), 5) == "still runs"
    workers.close()


async def test_exceptions_arrive_and_those_that_would_end_the_loop_are_tamed() -> None:
    workers = Workers(size=1)

    def fail(error: BaseException) -> None:
        raise error

    with pytest.raises(ValueError, match="wrong"):
        await workers.submit(lambda: fail(ValueError("wrong")))
    with pytest.raises(RuntimeError, match="SystemExit raised"):
        await workers.submit(lambda: fail(SystemExit(3)))
    with pytest.raises(RuntimeError, match="StopIteration raised"):
        await workers.submit(lambda: fail(StopIteration()))
    workers.close()
