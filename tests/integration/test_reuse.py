"""Containers that serve several runs of one user: faster, and nothing of a run, or of a user, in the next."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator

import pytest

from bascule.bridge import Executor, Limits
from bascule.bridge.guest import sandbox_limits
from bascule.sandbox import PoolLimits, SandboxError, SandboxLimits, WarmPool, open_backend
from bascule.sandbox.container import ContainerBackend
from bascule.sandbox.engine import Engine
from bascule.sandbox.lease import WarmSandbox
from bascule.sandbox.reuse import ChildSandbox, Nursery
from bascule.sandbox.seccomp import seccomp_profile
from tests.integration import given_tools
from tests.integration.test_warm_pool import own_containers

pytestmark = [pytest.mark.engine, pytest.mark.anyio]

LIMITS = sandbox_limits(Limits())


@pytest.fixture(params=["container", "oci"])
async def pool(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncGenerator[WarmPool]:
    try:
        backend = await asyncio.to_thread(open_backend, request.param, build=True)
    except SandboxError as error:
        if error.code != "isolation_unsupported":
            raise
        pytest.skip(error.message)
    made = WarmPool(backend, limits=PoolLimits(floor=0, ceiling=3), reuse="principal")
    yield made
    await made.close()
    assert own_containers() == []


async def nursery_of(pool: WarmPool, principal: str) -> Nursery:
    """Lease a sandbox for somebody, end it well, and return the container it was in."""
    sandbox = await pool.lease(LIMITS, run_id="look", principal=principal)
    assert isinstance(sandbox, WarmSandbox)
    assert isinstance(sandbox.inner, ChildSandbox)
    await sandbox.kill()
    await sandbox.close()
    return sandbox.inner.nursery


async def until_ready(pool: WarmPool, count: int = 1) -> None:
    async with asyncio.timeout(30):
        while pool.state.ready < count:  # noqa: ASYNC110  # the pool announces nothing
            await asyncio.sleep(0.01)


async def test_runs_of_one_user_share_a_container_and_nothing_else(pool: WarmPool) -> None:
    async with Executor([given_tools.add], backend=pool, user="ada") as executor:
        first = await executor.run("import json\njson.left = 1\nleft = add(1)\nleft")
        await until_ready(pool)
        second = await executor.run("left = add(1)\nleft")
        await until_ready(pool)
        third = await executor.run("left")
    assert second.value == 2
    assert first.status == "refused"  # modules cannot be written
    assert third.error is not None
    assert "left" in third.error.message
    await until_ready(pool)
    assert (await nursery_of(pool, "ada")).runs == 4


async def test_another_user_never_gets_the_container(pool: WarmPool) -> None:
    async with Executor([given_tools.add], backend=pool, user="ada") as executor:
        assert (await executor.run("add(1)")).value == 2
    await until_ready(pool)
    bobs = await nursery_of(pool, "bob")
    assert bobs.runs == 1
    assert (await nursery_of(pool, "ada")).runs == 2


async def test_runs_of_nobody_share_no_container(pool: WarmPool) -> None:
    async with Executor([given_tools.add], backend=pool) as executor:
        assert (await executor.run("add(1)")).value == 2
    assert (await nursery_of(pool, "")).runs == 1


async def test_a_kept_container_makes_room_for_other_users(pool: WarmPool) -> None:
    for user in ("ada", "bob", "eve", "dan"):
        async with Executor([given_tools.add], backend=pool, user=user) as executor:
            assert (await executor.run("add(1)")).value == 2


async def test_a_child_that_is_killed_is_noticed_and_its_container_goes(pool: WarmPool) -> None:
    sandbox = await pool.lease(LIMITS, run_id="victim", principal="ada")
    assert isinstance(sandbox, WarmSandbox)
    child = sandbox.inner
    assert isinstance(child, ChildSandbox)
    os.kill(child.pid, signal.SIGKILL)
    ending = await sandbox.close()
    assert ending.exit_code == 128 + signal.SIGKILL
    assert not child.may_be_followed
    assert (await nursery_of(pool, "ada")) is not child.nursery


async def test_a_run_that_is_stopped_ends_its_container(pool: WarmPool) -> None:
    async with Executor([given_tools.add], backend=pool, user="ada", limits=Limits(wall_s=0.3)) as executor:
        assert (await executor.run("while True: pass")).status == "limit"
        assert (await executor.run("add(1)")).value == 2


async def test_a_session_keeps_its_child_and_leaves_nothing_to_the_next_run(pool: WarmPool) -> None:
    async with Executor([given_tools.add], backend=pool, user="ada") as executor:
        async with executor.session() as session:
            await session.run("kept = 1")
            assert (await session.run("kept + 1")).value == 2
        after = await executor.run("kept")
    assert after.status in ("failed", "refused")


async def test_an_executor_of_its_own_reuses_when_asked() -> None:
    async with Executor([given_tools.add], user="ada", reuse="principal", warm=0) as executor:
        took: list[float] = []
        for _ in range(3):
            began = time.monotonic()
            assert (await executor.run("add(1)")).value == 2
            took.append(time.monotonic() - began)
            await asyncio.sleep(0.5)
    assert own_containers() == []


async def test_an_engine_that_passes_no_sockets_is_refused_with_what_to_do() -> None:
    backend = open_backend("container")
    streams = ContainerBackend(Engine(), image="x", image_hash=backend.image_hash, seccomp=seccomp_profile())
    with pytest.raises(SandboxError) as caught:
        await streams.start_reusable(SandboxLimits(), run_id="x")
    assert caught.value.code == "isolation_unsupported"
    await streams.close()
    await backend.close()


async def test_processes_have_nothing_to_reuse() -> None:
    with pytest.raises(SandboxError) as caught:
        WarmPool(open_backend("process"), reuse="principal")
    assert caught.value.code == "isolation_unsupported"
