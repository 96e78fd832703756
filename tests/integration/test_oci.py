"""Containers without an engine: the same image by the same name, and what this isolation refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bascule.bridge import Executor
from bascule.sandbox import (
    RUNTIME_DIFFERENCES,
    Backend,
    GuestImage,
    SandboxError,
    SandboxLimits,
    build_bundle,
    installed_runtimes,
    open_backend,
)
from bascule.sandbox.selfcheck import check_sandbox
from tests.integration import given_tools

pytestmark = [pytest.mark.engine, pytest.mark.anyio]


@pytest.fixture
def oci() -> Backend:
    if os.geteuid() != 0:
        pytest.skip("control groups are root's; test_oci_rootless.py is about everybody else")
    try:
        return open_backend("oci", build=True)
    except SandboxError as error:
        if error.code != "isolation_unsupported":
            raise
        pytest.skip(error.message)


def test_the_unpacked_image_is_the_engines_image(guest_image: GuestImage, oci: Backend) -> None:
    assert oci.image_hash == guest_image.hash
    assert not build_bundle().built


def test_nothing_in_the_unpacked_image_is_writable_or_setuid(oci: Backend) -> None:
    root = build_bundle().rootfs
    wrong = [
        str(path)
        for path in root.rglob("*")
        if not path.is_symlink() and (path.stat().st_mode & 0o6022 or path.stat().st_uid != 0)
    ]
    assert wrong == []


async def test_scripts_call_tools_without_an_engine(oci: Backend) -> None:
    async with Executor([given_tools.add], backend=oci) as executor:
        result = await executor.run("add(add(1))")
    assert (result.status, result.value) == ("ok", 3)


async def test_an_oom_kill_is_known_for_what_it_was(oci: Backend) -> None:
    limits = SandboxLimits(memory_bytes=64 << 20)
    code = """
import os, sys
child = os.fork()
if child == 0:
    x = []
    while True: x.append(bytearray(1 << 20))
os.waitpid(child, 0)
sys.exit(0)
"""
    sandbox = await oci.start(limits, run_id="oom", command=["python3", "-S", "-c", code])
    ending = await sandbox.close()
    assert (ending.exit_code, ending.oom_killed) == (0, True)
    assert ending.peak_memory_bytes == limits.memory_bytes


def test_a_runtime_that_is_not_here_is_named_with_the_remedy() -> None:
    with pytest.raises(SandboxError) as caught:
        open_backend("oci", runtime="no-such-runtime")
    assert caught.value.code == "isolation_unsupported"
    assert "runc, crun, runsc" in caught.value.message


async def test_a_runtime_that_fails_is_quoted_and_leaves_nothing(oci: Backend, tmp_path: Path) -> None:
    broken = tmp_path / "runc"
    broken.write_text("#!/bin/sh\necho 'the kernel said no' >&2\nexit 1\n", encoding="ascii")
    broken.chmod(0o755)
    backend = open_backend("oci", runtime=str(broken))
    with pytest.raises(SandboxError) as caught:
        await backend.start(SandboxLimits(), run_id="broken")
    assert caught.value.code == "engine_failed"
    assert "the kernel said no" in caught.value.message


async def test_gvisor_gives_the_same_walls_but_for_the_differences_that_are_told() -> None:
    if "runsc" not in installed_runtimes():
        pytest.skip("gVisor is not installed (Debian: apt-get install runsc)")
    backend = open_backend("oci", runtime="runsc", build=True)
    broken = {check.name for check in await check_sandbox(backend) if not check.holds}
    assert broken <= set(RUNTIME_DIFFERENCES["runsc"])


async def test_scripts_run_under_gvisor_too() -> None:
    if "runsc" not in installed_runtimes():
        pytest.skip("gVisor is not installed (Debian: apt-get install runsc)")
    async with Executor([given_tools.add], backend=open_backend("oci", runtime="runsc")) as executor:
        result = await executor.run("add(1)")
    assert (result.status, result.value) == ("ok", 2), result.error
