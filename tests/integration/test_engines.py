"""Engines of other kinds, started for the purpose: with remapped ids, an ordinary user's, and podman.

``make engines`` runs these (``BASCULE_ENGINES=1``); skipped, and counted, without. Needs root.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from bascule.bridge import Executor
from bascule.sandbox import (
    GuestImage,
    SandboxError,
    SandboxLimits,
    WarmPool,
    engine_differences,
    find_engine,
    open_backend,
    usable_runtimes,
)
from bascule.sandbox.selfcheck import check_sandbox
from tests.integration import given_tools
from tests.integration.private_engine import (
    podman_service,
    remapped_engine,
    rootless_engine,
    rootless_program,
)
from tests.integration.rootless_driver import MEMORY_BOMB, PROCESS_BOMB

pytestmark = [
    pytest.mark.engine,
    pytest.mark.anyio,
    pytest.mark.skipif(
        os.environ.get("BASCULE_ENGINES") != "1" or os.geteuid() != 0,
        reason="`make engines` runs these, as root",
    ),
]

REPOSITORY = Path(__file__).parents[2]
SUITES = ("test_sandbox_container.py", "test_sandbox_walls.py", "test_warm_pool.py", "test_reuse.py")


@pytest.fixture(scope="module")
def remapped(guest_image: GuestImage) -> Generator[str]:
    with remapped_engine(guest_image) as host:
        yield host


@pytest.fixture(scope="module")
def rootless(guest_image: GuestImage) -> Generator[str]:
    if rootless_program() is None:
        pytest.skip("no rootless Docker here (Debian: apt-get install rootlesskit uidmap docker.io)")
    with rootless_engine(guest_image) as host:
        yield host


async def test_every_wall_holds_with_remapped_ids(remapped: str) -> None:
    assert find_engine(remapped).userns_remap
    backend = await asyncio.to_thread(open_backend, "container", docker_host=remapped)
    assert [check for check in await check_sandbox(backend) if not check.holds] == []
    await backend.close()


async def test_a_runtime_that_the_engine_was_told_of_and_that_is_not_there_is_quoted(remapped: str) -> None:
    assert "kata" in usable_runtimes(find_engine(remapped))
    backend = await asyncio.to_thread(open_backend, "container", docker_host=remapped, runtime="kata")
    with pytest.raises(SandboxError) as caught:
        await backend.start(SandboxLimits(), run_id="kata")
    await backend.close()
    assert caught.value.code == "engine_failed"
    assert "/nowhere/kata-runtime" in caught.value.message


def test_the_doctor_calls_a_runtime_that_is_not_there_unusable_and_goes_on(remapped: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bascule.cli.main", "doctor", "--docker-host", remapped],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kata" in done.stdout
    assert "unusable" in done.stdout
    assert "BROKEN" not in done.stdout


def test_the_tests_of_containers_pass_with_remapped_ids(remapped: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not oci"),
            *(f"tests/integration/{each}" for each in SUITES),
            *("tests/escape/test_container_alone.py", "tests/escape/test_reuse_alone.py"),
        ],
        env={**os.environ, "DOCKER_HOST": remapped},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]


async def test_a_rootless_engine_without_control_groups_holds_all_but_a_share_of_cpu(
    rootless: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = find_engine(rootless)
    assert engine.rootless
    if not engine.cannot_limit:
        pytest.skip("this engine has control groups: then all walls hold, as with any other")
    with caplog.at_level(logging.WARNING, "bascule.sandbox"):
        backend = await asyncio.to_thread(open_backend, "container", docker_host=rootless)
    differences = engine_differences(engine.cannot_limit)
    assert all(any(why in said for said in caplog.messages) for why in differences.values())
    assert {check.name for check in await check_sandbox(backend) if not check.holds} == set(differences)
    async with Executor([given_tools.add], backend=backend) as executor:
        called = await executor.run("add(add(1))")
        bombed = await executor.run(MEMORY_BOMB)
    assert (called.status, called.value) == ("ok", 3), called.error
    assert bombed.error is not None
    assert bombed.error.kind == "memory_limit"
    sandbox = await backend.start(
        SandboxLimits(), run_id="second", command=["python3", "-S", "-c", PROCESS_BOMB]
    )
    assert await sandbox.receive() == b"Operation not permitted"
    await sandbox.close()
    await backend.close()


async def test_reuse_is_refused_where_nothing_tells_guests_apart(rootless: str) -> None:
    backend = await asyncio.to_thread(open_backend, "container", docker_host=rootless)
    pool = WarmPool(backend, reuse="principal", principal="ada")
    with pytest.raises(SandboxError) as caught:
        await pool.start(SandboxLimits(), run_id="reuse")
    assert caught.value.code == "isolation_unsupported"
    await pool.close()


def test_the_tests_of_podman_pass_with_a_service_of_their_own() -> None:
    # Not with Debian 12's crun: it refuses hosts whose control groups are of both versions, under podman too.
    if shutil.which("podman") is None or shutil.which("runc") is None:
        pytest.skip("no podman here (Debian: apt-get install podman runc)")
    with podman_service("runc") as host:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "tests/integration/test_podman.py",
            ],
            env={**os.environ, "BASCULE_PODMAN_HOST": host},
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "skipped" not in done.stdout
