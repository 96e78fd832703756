"""The walls as the engine built them, seen from inside a real sandbox; and what the image holds."""

from __future__ import annotations

import pytest

from bascule.sandbox import (
    Backend,
    GuestImage,
    SandboxError,
    SandboxLimits,
    build_image,
    ensure_image,
    inspect_contents,
)
from bascule.sandbox.limits import MIB
from bascule.sandbox.selfcheck import check_sandbox

pytestmark = [pytest.mark.engine, pytest.mark.anyio]


async def test_every_wall_holds(backend: Backend) -> None:
    limits = SandboxLimits(memory_bytes=128 * MIB, cpus=0.5, pids=32, tmpfs_bytes=2 * MIB, tmpfs_files=64)
    broken = [check for check in await check_sandbox(backend, limits=limits) if not check.holds]
    assert broken == []


async def test_a_probe_that_cannot_report_proves_nothing(backend: Backend) -> None:
    checks = await check_sandbox(backend, limits=SandboxLimits(frame_bytes=1))
    assert not any(check.holds for check in checks)
    assert "did not report" in checks[0].detail


async def test_the_image_holds_no_shell_no_setuid_file_and_nothing_writable(guest_image: GuestImage) -> None:
    contents = inspect_contents(guest_image.tag)
    assert contents.setuid == []
    assert contents.shells == []
    assert contents.writable == []
    assert contents.foreign == []
    assert contents.package_managers == []
    assert contents.bytes < 80 * MIB


async def test_the_image_can_execute_python_and_its_loader_only(guest_image: GuestImage) -> None:
    contents = inspect_contents(guest_image.tag)
    programs = [
        path for path in contents.executables if path.startswith(("/usr", "/lib", "/bin", "/bascule", "/opt"))
    ]
    assert all(path.rpartition("/")[2].startswith(("python3", "ld-linux")) for path in programs), programs


async def test_building_again_gives_the_same_hash(guest_image: GuestImage) -> None:
    first = inspect_contents(guest_image.tag).digest
    again = build_image()
    assert (again.tag, again.hash, again.built) == (guest_image.tag, guest_image.hash, True)
    assert inspect_contents(again.tag).digest == first  # every file, compiled ones included
    assert not ensure_image().built


async def test_any_image_with_a_python_can_be_the_base_and_is_cut_down_by_the_same_rules(
    guest_image: GuestImage,
) -> None:
    # Our own base stands for a public image: the same files in must give the same file system out.
    again = ensure_image(guest_image.base.tag)
    assert again.base.identity == guest_image.base.identity
    assert again.hash == guest_image.hash


async def test_a_base_that_cannot_be_pulled_says_which_base_can_be_made(guest_image: GuestImage) -> None:
    with pytest.raises(SandboxError) as caught:
        build_image("localhost:1/no/such:image")
    assert caught.value.code == "image_build_failed"
    assert "--base debian" in caught.value.message


async def test_looking_for_an_image_that_was_never_built_builds_nothing() -> None:
    with pytest.raises(SandboxError) as caught:
        ensure_image("localhost:1/no/such:image", build=False)
    assert caught.value.code == "image_missing"
