"""The meeting place: who may come, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bascule.sandbox.evidence import Evidence
from bascule.sandbox.meeting import MeetingPlace, sweep_meeting_places

pytestmark = pytest.mark.anyio


def own_group() -> str:
    return Path("/proc/self/cgroup").read_text("utf-8").splitlines()[0].rpartition(":")[2]


def connect(place: MeetingPlace) -> socket.socket:
    channel = socket.socket(socket.AF_UNIX)
    channel.setblocking(False)
    channel.connect(str(place.folder / "host"))
    return channel


async def test_a_process_of_the_right_group_is_let_in() -> None:
    place = MeetingPlace()
    try:
        with connect(place):
            connected, evidence = await asyncio.wait_for(place.accept(own_group()), 5)
            connected.close()
            assert evidence.pid == os.getpid()
            evidence.close()
    finally:
        place.close()


async def test_a_process_of_another_group_is_dropped() -> None:
    place = MeetingPlace()
    try:
        with connect(place) as stranger:
            accepting = asyncio.ensure_future(place.accept("0123456789abcdef"))
            assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(stranger, 1), 5) == b""
            assert not accepting.done()
            accepting.cancel()
    finally:
        place.close()


async def test_other_users_cannot_reach_the_folder_and_nothing_is_left_of_it() -> None:
    place = MeetingPlace()
    outer = place.folder.parent
    assert stat.S_IMODE(outer.stat().st_mode) == 0o700
    place.close()
    place.close()
    assert not outer.exists()


async def test_the_folder_of_a_dead_host_is_swept_and_a_living_ones_is_not() -> None:
    code = "from bascule.sandbox.meeting import MeetingPlace; print(MeetingPlace().folder)"
    done = subprocess.run(  # noqa: ASYNC221  # nothing else runs on this loop
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    left, there = Path(done.stdout.strip()), os.path.exists
    living = MeetingPlace()
    try:
        assert there(left)
        assert left.is_relative_to(tempfile.gettempdir())
        assert sweep_meeting_places() >= 1
        assert not there(left.parent)
        assert there(living.folder)
    finally:
        living.close()


@pytest.mark.parametrize(("code", "status"), [("pass", 0), ("raise SystemExit(3)", 3 << 8)])
async def test_evidence_tells_how_a_process_exited(code: str, status: int) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-c", f"import sys; sys.stdin.read(); {code}", stdin=asyncio.subprocess.PIPE
    )
    evidence = Evidence(child.pid)
    assert child.stdin is not None
    child.stdin.close()
    found = await evidence.wait_exit(10)
    await child.wait()
    evidence.close()
    if found is None:
        pytest.skip("this kernel does not tell exit statuses (Linux 6.15 does)")
    assert found == status


async def test_evidence_says_that_a_process_still_runs() -> None:
    evidence = Evidence(os.getpid())
    with pytest.raises(TimeoutError):
        await evidence.wait_exit(0.01)
    assert (evidence.read().cpu_s or 1) > 0
    evidence.close()
    evidence.close()
