"""Podman behind Docker's API: the same walls, by settings of its own. Needs a service, and time to build.

Run with ``BASCULE_PODMAN_HOST=unix:///run/podman/podman.sock``; skipped, and counted, without it.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from bascule.bridge import Executor
from bascule.sandbox import Backend, SandboxError, find_engine, open_backend, usable_runtimes
from bascule.sandbox.selfcheck import check_sandbox
from tests.integration import given_tools

HOST = os.environ.get("BASCULE_PODMAN_HOST", "")

pytestmark = [
    pytest.mark.engine,
    pytest.mark.anyio,
    pytest.mark.skipif(not HOST, reason="BASCULE_PODMAN_HOST names no podman service"),
]


@pytest.fixture
async def podman(anyio_backend: str) -> Backend:
    assert find_engine(HOST).is_podman
    return await asyncio.to_thread(open_backend, "container", docker_host=HOST, build=True)


async def test_every_wall_holds_under_podman(podman: Backend) -> None:
    assert [check for check in await check_sandbox(podman) if not check.holds] == []


async def test_podman_is_not_asked_for_a_runtime_that_it_would_not_use(podman: Backend) -> None:
    engine = find_engine(HOST)
    assert usable_runtimes(engine) == [engine.default_runtime]
    other = next(name for name in engine.runtimes if name != engine.default_runtime)
    with pytest.raises(SandboxError, match="whatever it is asked for") as caught:
        await asyncio.to_thread(open_backend, "container", docker_host=HOST, runtime=other)
    assert caught.value.code == "isolation_unsupported"
    await podman.close()


async def test_scripts_call_tools_under_podman(podman: Backend) -> None:
    async with Executor([given_tools.add], backend=podman) as executor:
        results = [await executor.run("add(add(1))") for _ in range(3)]
    assert [result.value for result in results] == [3, 3, 3]
    await podman.close()
