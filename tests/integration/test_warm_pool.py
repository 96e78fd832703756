"""The warm pool over real containers: both transports, dead guests, and nothing left."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from bascule.bridge import Executor, Limits
from bascule.bridge.guest import sandbox_limits
from bascule.sandbox import (
    Backend,
    GuestImage,
    PoolLimits,
    SandboxClosed,
    SandboxLimits,
    WarmPool,
    open_backend,
)
from bascule.sandbox.container import ContainerBackend
from bascule.sandbox.engine import Engine
from bascule.sandbox.hardening import OWNER_LABEL
from bascule.sandbox.owner import own_name
from bascule.sandbox.seccomp import seccomp_profile
from tests.integration import given_tools

pytestmark = [pytest.mark.engine, pytest.mark.anyio]


def own_containers() -> list[dict[str, Any]]:
    engine = Engine()
    try:
        label = f"{OWNER_LABEL}={own_name()}"
        return engine.call_now(engine.api.containers, all=True, filters={"label": label})
    finally:
        engine.close()


async def until_ready(pool: WarmPool, count: int) -> None:
    async with asyncio.timeout(30):
        while pool.state.ready < count:  # noqa: ASYNC110  # the pool announces nothing
            await asyncio.sleep(0.02)


def stdio_backend(image: GuestImage) -> ContainerBackend:
    return ContainerBackend(Engine(), image=image.tag, image_hash=image.hash, seccomp=seccomp_profile())


@pytest.mark.parametrize("transport", ["channel", "stdio", "oci"])
async def test_runs_from_a_pool_are_correct_and_leave_nothing(
    guest_image: GuestImage, transport: str
) -> None:
    if transport == "stdio":
        backend: Backend = stdio_backend(guest_image)
    else:
        backend = open_backend("oci" if transport == "oci" else "container", build=True)
    pool = WarmPool(backend, limits=PoolLimits(floor=2, ceiling=6))
    pool.keep_ready(sandbox_limits(Limits()))
    await until_ready(pool, 2)
    async with Executor([given_tools.add], backend=pool, user="ada") as executor:
        results = await asyncio.gather(*(executor.run(f"add({n})") for n in range(6)))
    assert [result.value for result in results] == [n + 1 for n in range(6)]
    await pool.close()
    assert own_containers() == []


async def test_a_container_that_dies_while_idle_is_replaced(guest_image: GuestImage) -> None:
    pool = WarmPool(open_backend("container"), limits=PoolLimits(floor=1))
    pool.keep_ready(sandbox_limits(Limits()))
    await until_ready(pool, 1)
    engine = Engine()
    (first,) = own_containers()
    engine.call_now(engine.api.kill, str(first["Id"]), signal="SIGKILL")
    engine.close()
    async with asyncio.timeout(30):
        while pool.state.ready < 1 or first["Id"] in {each["Id"] for each in own_containers()}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    async with Executor([given_tools.add], backend=pool) as executor:
        assert (await executor.run("add(1)")).value == 2
    await pool.close()
    assert own_containers() == []


async def test_no_file_stays_open_after_many_runs(guest_image: GuestImage) -> None:
    counts: list[int] = []
    for _ in range(3):
        async with Executor([given_tools.add], warm=1) as executor:
            for _ in range(3):
                assert (await executor.run("add(1)")).status == "ok"
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[2] <= counts[0]
    assert own_containers() == []


async def test_a_crash_over_the_channel_is_told_with_its_last_words(guest_image: GuestImage) -> None:
    backend = open_backend("container")
    sandbox = await backend.start(SandboxLimits(), run_id="crash")
    await sandbox.receive()
    await sandbox.send((5).to_bytes(4, "big") + b"wrong")
    with pytest.raises(SandboxClosed):
        await sandbox.receive()
    ending = await sandbox.close()
    await backend.close()
    assert ending.exit_code not in (0, None)
    assert "frame" in ending.stderr_tail
    assert ending.peak_memory_bytes is not None
