"""Real containers: frames, limits, kills, and nothing left in any path."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from bascule.sandbox import (
    Backend,
    Sandbox,
    SandboxClosed,
    SandboxError,
    SandboxLimits,
    open_backend,
)
from bascule.sandbox.container import ContainerBackend
from bascule.sandbox.engine import Engine
from bascule.sandbox.limits import MIB
from bascule.sandbox.seccomp import seccomp_profile
from bascule.wire import PROTOCOL, FrameError, Hello, decode_guest_frame

pytestmark = [pytest.mark.engine, pytest.mark.anyio]

Containers = Callable[[str], list[dict[str, Any]]]

ECHO = """
import os
def read(size):
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            os._exit(0)
        data += piece
    return data
def write(data):
    while data:
        data = data[os.write(1, data):]
while True:
    head = read(4)
    write(head + read(int.from_bytes(head, "big")))
"""


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def python(code: str) -> list[str]:
    return ["python3", "-S", "-s", "-P", "-c", code]


async def test_the_guest_says_hello_with_the_hash_of_its_image(backend: Backend, run_id: str) -> None:
    sandbox = await backend.start(SandboxLimits(), run_id=run_id)
    try:
        hello = decode_guest_frame(await sandbox.receive())
    finally:
        await sandbox.kill()
        ending = await sandbox.close()
    assert isinstance(hello, Hello), ending.stderr_tail
    assert (hello.protocol, hello.image) == (PROTOCOL, backend.image_hash)


async def test_frames_of_every_size_come_back(backend: Backend, run_id: str) -> None:
    sandbox = await backend.start(SandboxLimits(), run_id=run_id, command=python(ECHO))
    for size in (0, 1, 4096, 100_000, MIB):
        payload = os.urandom(size)
        await sandbox.send(frame(payload))
        assert await sandbox.receive() == payload
    await sandbox.kill()
    await sandbox.close()


async def test_no_byte_that_is_written_before_the_host_reads_is_lost(backend: Backend, run_id: str) -> None:
    code = "import os; [os.write(1, (2).to_bytes(4, 'big') + i.to_bytes(2, 'big')) for i in range(2000)]"
    sandbox = await backend.start(SandboxLimits(), run_id=run_id, command=python(code))
    got = [int.from_bytes(await sandbox.receive(), "big") for _ in range(2000)]
    ending = await sandbox.close()
    assert got == list(range(2000))
    assert (ending.exit_code, ending.signal, ending.killed) == (0, None, False)


@pytest.mark.parametrize(
    ("code", "exit_code", "ended_by"),
    [
        ("import os; os._exit(0)", 0, None),
        ("import sys; sys.exit(3)", 3, None),
        ("import os; os.kill(os.getpid(), 11)", 139, 11),
        ("import os; os.kill(os.getpid(), 9)", 137, 9),
    ],
)
async def test_the_exit_status_is_reported_as_it_was(
    backend: Backend, run_id: str, code: str, exit_code: int, ended_by: int | None
) -> None:
    sandbox = await backend.start(SandboxLimits(), run_id=run_id, command=python(code))
    with pytest.raises(SandboxClosed):
        await sandbox.receive()
    ending = await sandbox.close()
    assert (ending.exit_code, ending.signal) == (exit_code, ended_by)
    assert not ending.killed
    assert not ending.oom_killed


async def test_a_memory_bomb_is_killed_by_the_kernel_and_reported_as_that(
    backend: Backend, run_id: str
) -> None:
    limits = SandboxLimits(memory_bytes=64 * MIB)
    code = "x = []\nwhile True: x.append(bytearray(1 << 20))"
    sandbox = await backend.start(limits, run_id=run_id, command=python(code))
    with pytest.raises(SandboxClosed):
        await sandbox.receive()
    ending = await sandbox.close()
    assert ending.oom_killed
    assert (ending.exit_code, ending.killed) == (137, False)
    assert ending.peak_memory_bytes == limits.memory_bytes


async def test_a_fork_bomb_stops_at_the_limit(backend: Backend, run_id: str) -> None:
    code = """
import os, time
made = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
    except OSError:
        break
    made += 1
os.write(1, (2).to_bytes(4, "big") + made.to_bytes(2, "big"))
time.sleep(1000)
"""
    sandbox = await backend.start(SandboxLimits(pids=20), run_id=run_id, command=python(code))
    made = int.from_bytes(await sandbox.receive(), "big")
    await sandbox.kill()
    await sandbox.close()
    assert 10 <= made < 20


async def test_the_temporary_folder_is_full_at_its_limit(backend: Backend, run_id: str) -> None:
    code = """
import os
told = []
made = 0
try:
    for made in range(1000):
        os.close(os.open(f"/tmp/{made}", os.O_CREAT | os.O_WRONLY))
except OSError as error:
    told.append(f"{error.strerror} {made < 32}")
try:
    file = os.open("/tmp/0", os.O_WRONLY)
    while True:
        os.write(file, bytes(65536))
except OSError as error:
    told.append(error.strerror)
text = ", ".join(told).encode()
os.write(1, len(text).to_bytes(4, "big") + text)
"""
    limits = SandboxLimits(tmpfs_bytes=MIB, tmpfs_files=32)
    sandbox = await backend.start(limits, run_id=run_id, command=python(code))
    told = (await sandbox.receive()).decode()
    await sandbox.close()
    # Past its own file size limit the kernel says EFBIG; at the same number the tmpfs says ENOSPC.
    assert told in (
        "No space left on device True, File too large",
        "No space left on device True, No space left on device",
    )


@pytest.mark.parametrize("descriptor", [1, 2])
async def test_a_flood_that_nobody_reads_does_not_wedge_kill_or_removal(
    backend: Backend, run_id: str, containers_of: Containers, descriptor: int
) -> None:
    code = f"import os\nos.write(1, b'\\0\\0\\0\\1x')\nwhile True: os.write({descriptor}, bytes(1 << 16))"
    sandbox = await backend.start(SandboxLimits(), run_id=run_id, command=python(code))
    assert await sandbox.receive() == b"x"
    # Zero-length frames without end on stdout, waste on stderr: the host does not read on.
    await asyncio.wait_for(sandbox.kill(), 20)
    ending = await asyncio.wait_for(sandbox.close(), 20)
    assert ending.killed
    assert len(ending.stderr_tail) <= 8192
    assert containers_of(run_id) == []


async def test_a_host_that_stalls_with_full_buffers_can_still_kill(
    backend: Backend, run_id: str, containers_of: Containers
) -> None:
    code = (
        "import os\nframe = (1 << 20).to_bytes(4, 'big') + bytes(1 << 20)\nwhile True:\n os.write(1, frame)"
    )
    sandbox = await backend.start(SandboxLimits(), run_id=run_id, command=python(code))
    await sandbox.receive()
    blocking_the_loop_on_purpose(0.3)
    await asyncio.wait_for(sandbox.kill(), 20)
    await asyncio.wait_for(sandbox.close(), 20)
    assert containers_of(run_id) == []


def blocking_the_loop_on_purpose(seconds: float) -> None:
    """Stand for a host that is busy: the test is about what the guest piles up meanwhile."""
    time.sleep(seconds)


async def test_a_frame_above_the_limit_is_an_error_and_the_guest_can_be_ended(
    backend: Backend, run_id: str, containers_of: Containers
) -> None:
    code = "import os, time; os.write(1, b'not a frame at all'); time.sleep(1000)"
    sandbox = await backend.start(SandboxLimits(), run_id=run_id, command=python(code))
    with pytest.raises(FrameError):
        await sandbox.receive()
    await sandbox.kill()
    await sandbox.close()
    assert containers_of(run_id) == []


async def test_a_guest_that_closes_its_outputs_and_stays_is_killed(backend: Backend, run_id: str) -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(1000)"
    sandbox = await backend.start(SandboxLimits(exit_grace_s=0.3), run_id=run_id, command=python(code))
    ending = await sandbox.close()
    assert (ending.exit_code, ending.killed) == (137, True)


async def test_killing_and_closing_twice_changes_nothing(
    backend: Backend, run_id: str, containers_of: Containers
) -> None:
    sandbox = await backend.start(SandboxLimits(), run_id=run_id, command=python(ECHO))
    await sandbox.kill()
    await sandbox.kill()
    first, second = await asyncio.gather(sandbox.close(), sandbox.close())
    await sandbox.kill()
    assert first == second == await sandbox.close()
    assert containers_of(run_id) == []


async def test_a_cancelled_close_still_removes(
    backend: Backend, run_id: str, containers_of: Containers
) -> None:
    sandbox = await backend.start(SandboxLimits(), run_id=run_id, command=python(ECHO))
    closing = asyncio.ensure_future(sandbox.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await sandbox.close()
    assert containers_of(run_id) == []


async def test_a_cancelled_start_leaves_nothing(
    backend: Backend, run_id: str, containers_of: Containers
) -> None:
    starting = asyncio.ensure_future(backend.start(SandboxLimits(), run_id=run_id, command=python(ECHO)))
    await asyncio.sleep(0.02)  # any moment will do; create is under way or done
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert containers_of(run_id) == []


async def test_a_start_past_its_deadline_is_an_error_and_leaves_nothing(
    backend: Backend, run_id: str, containers_of: Containers
) -> None:
    with pytest.raises(SandboxError) as caught:
        await backend.start(SandboxLimits(start_timeout_s=0.001), run_id=run_id, command=python(ECHO))
    assert caught.value.code == "start_timeout"
    assert containers_of(run_id) == []


async def test_there_is_no_shell_to_start(backend: Backend, run_id: str, containers_of: Containers) -> None:
    sandbox = await backend.start(SandboxLimits(), run_id=run_id, command=["/bin/sh", "-c", "id"])
    with pytest.raises(SandboxClosed):
        await sandbox.receive()
    ending = await sandbox.close()
    assert ending.exit_code == 127
    assert "No such file" in ending.stderr_tail
    assert containers_of(run_id) == []


async def test_a_missing_image_says_how_to_build_it(run_id: str) -> None:
    backend = ContainerBackend(
        Engine(), image="bascule-guest:000000000000", image_hash="0" * 64, seccomp=seccomp_profile()
    )
    with pytest.raises(SandboxError) as caught:
        await backend.start(SandboxLimits(), run_id=run_id)
    await backend.close()
    assert caught.value.code == "image_missing"
    assert "bascule image build" in caught.value.message


async def test_an_engine_that_is_not_there_is_named_with_the_remedy() -> None:
    with pytest.raises(SandboxError) as caught:
        open_backend("container", docker_host="unix:///nowhere/engine.sock")
    assert caught.value.code == "engine_unavailable"
    assert "unix:///nowhere/engine.sock" in caught.value.message


async def test_an_unknown_runtime_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(SandboxError) as caught:
        open_backend("container", runtime="no-such-runtime", build=True)
    assert caught.value.code == "isolation_unsupported"
    assert "runc" in caught.value.message


KILLED_HOST = """
import asyncio, os, signal, sys
from bascule.sandbox import SandboxLimits, open_backend

async def main():
    backend = open_backend(sys.argv[2], build=True)
    command = ["python3", "-S", "-c", "import os, time; os.write(1, bytes(4)); time.sleep(1000)"]
    sandbox = await backend.start(SandboxLimits(), run_id=sys.argv[1], command=command)
    await sandbox.receive()
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def run_host_that_is_killed(run_id: str, isolation: str) -> int:
    return subprocess.run([sys.executable, "-c", KILLED_HOST, run_id, isolation], check=False).returncode


async def test_what_a_killed_host_left_is_swept_and_what_lives_is_not(
    backend: Backend, run_id: str, containers_of: Containers
) -> None:
    living = await backend.start(SandboxLimits(), run_id=f"{run_id}-living", command=python(ECHO))
    assert run_host_that_is_killed(run_id, backend.name) == -signal.SIGKILL
    assert len(containers_of(run_id)) == 1
    assert await backend.sweep() >= 1
    assert containers_of(run_id) == []
    await echoes(living)
    await living.kill()
    await living.close()


async def echoes(sandbox: Sandbox) -> None:
    await sandbox.send(frame(b"still here"))
    assert await sandbox.receive() == b"still here"


async def test_the_evidence_of_a_killed_guest_is_read_from_the_kernel(backend: Backend, run_id: str) -> None:
    code = "import os, time; x = bytearray(40 << 20); os.write(1, b'\\0\\0\\0\\1x'); time.sleep(1000)"
    sandbox = await backend.start(SandboxLimits(), run_id=run_id, command=python(code))
    await sandbox.receive()
    await sandbox.kill()
    ending = await sandbox.close()
    if ending.peak_memory_bytes is None:
        pytest.skip("this engine's control groups cannot be read from here")
    assert ending.peak_memory_bytes >= 40 * MIB
    assert ending.cpu_s is not None
    assert ending.cpu_s > 0
