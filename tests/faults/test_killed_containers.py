"""The same with real containers: the host killed, the container killed, the run suspended."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from bascule.bridge import Decision, Executor, Limits, approve_all, ask_elsewhere
from bascule.bridge.sqlite_store import SqliteStore
from bascule.sandbox import Backend, open_backend
from bascule.sandbox.engine import Engine
from bascule.tools import tool
from tests.faults.test_killed_hosts import die, go_on

pytestmark = [pytest.mark.engine, pytest.mark.anyio]


@pytest.fixture
async def backend(anyio_backend: str) -> AsyncGenerator[Backend]:
    """Give a container backend and close it."""
    opened = open_backend("container", build=True)
    yield opened
    await opened.close()


def containers_of(run_id: str) -> list[dict[str, Any]]:
    """Return what the engine still has of a run."""
    engine = Engine()
    try:
        return engine.call_now(engine.api.containers, all=True, filters={"label": f"bascule.run={run_id}"})
    finally:
        engine.close()


def kill_container(run_id: str) -> None:
    """Kill the container of a run behind the host's back."""
    engine = Engine()
    try:
        (found,) = engine.call_now(
            engine.api.containers, all=False, filters={"label": f"bascule.run={run_id}"}
        )
        engine.call_now(engine.api.kill, found["Id"], signal="SIGKILL")
    finally:
        engine.close()


@pytest.mark.parametrize("point", ["done-put", "after-dispatched:2", "before-frame:3", "before-finished"])
async def test_a_run_goes_on_after_its_host_was_killed_and_the_orphan_is_removed(
    point: str, tmp_path: Path, backend: Backend
) -> None:
    await anyio.to_thread.run_sync(die, tmp_path, point, "--isolation", "container")
    store = SqliteStore(tmp_path / "runs.db")
    run_id = store.runs()[0].run_id
    store.close()
    await go_on(tmp_path, backend)
    await backend.sweep()
    assert await anyio.to_thread.run_sync(containers_of, run_id) == []


async def test_a_run_goes_on_in_a_new_container_when_its_own_is_killed(
    tmp_path: Path, backend: Backend
) -> None:
    ran: list[int] = []
    store = SqliteStore(tmp_path / "runs.db")

    @tool(effects="once")
    async def put(n: int) -> int:
        """Put; the second time somebody kills the container meanwhile."""
        ran.append(n)
        if n == 2:
            (row,) = store.runs()
            await anyio.to_thread.run_sync(kill_container, row.run_id)
        return n * 10

    async with Executor([put], backend=backend, approver=approve_all, store=store) as executor:
        result = await executor.run("print('a')\nx = put(1)\ny = put(2)\nprint('b')\n[x, y, put(3)]")
    assert (result.status, result.value, result.output) == ("ok", [10, 20, 30], "a\nb\n"), result.error
    assert ran == [1, 2, 3]
    assert await anyio.to_thread.run_sync(containers_of, result.run_id) == []
    store.close()


async def test_a_suspended_run_holds_no_container_and_another_process_goes_on(
    tmp_path: Path, backend: Backend
) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('asks')\nput(2)")
    command = [sys.executable, "-m", "tests.faults.host", str(tmp_path), "--script", str(script)]
    done = await anyio.run_process([*command, "--isolation", "container", "--elsewhere"], check=False)
    assert b'"status":"suspended"' in done.stdout, done.stderr
    store = SqliteStore(tmp_path / "runs.db")
    (row,) = store.runs(status="suspended")
    assert await anyio.to_thread.run_sync(containers_of, row.run_id) == []
    ran: list[int] = []

    @tool(effects="once")
    def put(n: int) -> int:
        """Do something nobody can ask about, on a thread."""
        ran.append(n)
        return n * 10

    limits = Limits(hold_warm_s=0.0)
    async with Executor(
        [put], backend=backend, approver=ask_elsewhere, store=store, limits=limits
    ) as executor:
        waits = await executor.resume(row.run_id, wait=False)
        assert waits.status == "suspended"
        for record in store.approvals.find(run_id=row.run_id, states=["pending"]):
            executor.decide(record.id, Decision(verdict="approve", by="ops"), digest=record.digest)
        (result,) = await executor.resume_due()
    assert (result.status, result.value, result.output) == ("ok", 20, "asks\n"), result.error
    assert ran == [2]
    store.close()
