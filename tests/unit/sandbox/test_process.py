"""Process isolation: the same protocol as a container, nothing inherited, nothing left."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bascule.sandbox import SandboxClosed, SandboxError, SandboxLimits, open_backend
from bascule.sandbox.process import ProcessBackend, ProcessSandbox
from bascule.wire import FrameError

ECHO = """
import os
while head := os.read(0, 4):
    os.write(1, head + os.read(0, int.from_bytes(head, "big")))
"""

REPORT = """
import json, os, resource, sys
told = json.dumps({
    "environment": dict(os.environ), "path": os.getcwd(), "files": os.listdir("/proc/self/fd"),
    "core": resource.getrlimit(resource.RLIMIT_CORE), "nofile": resource.getrlimit(resource.RLIMIT_NOFILE),
}).encode()
os.write(1, len(told).to_bytes(4, "big") + told)
"""


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def is_there(path: str) -> bool:
    return Path(path).exists()


def ends(pid: int) -> bool:
    """Wait for the end of a process that was sent SIGKILL; the kernel may take its time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ended = bool(poll.poll(20_000))
    os.close(descriptor)
    return ended


async def start(code: str, limits: SandboxLimits | None = None) -> ProcessSandbox:
    command = ["python3", "-S", "-c", code]
    return await ProcessBackend().start(limits or SandboxLimits(), run_id="test", command=command)


@pytest.mark.anyio
async def test_frames_go_in_and_come_out() -> None:
    sandbox = await start(ECHO)
    for size in (0, 1, 70_000):
        payload = bytes(size)
        await sandbox.send(frame(payload))
        assert await sandbox.receive() == payload
    await sandbox.kill()
    ending = await sandbox.close()
    assert (ending.exit_code, ending.signal, ending.killed) == (137, signal.SIGKILL, True)


@pytest.mark.anyio
async def test_the_child_gets_our_environment_an_empty_folder_and_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "secret")
    sandbox = await start(REPORT, SandboxLimits(nofile=32))
    told = json.loads(await sandbox.receive())
    ending = await sandbox.close()
    assert "SECRET_TOKEN" not in told["environment"]
    assert told["environment"]["PYTHONHASHSEED"] == "0"
    assert told["core"] == [0, 0]
    assert told["nofile"] == [32, 32]
    assert len(told["files"]) <= 4
    assert told["path"] == "/" or not is_there(told["path"])
    assert (ending.exit_code, ending.killed) == (0, False)


def processes_below(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return [pid, *(each for child in children for each in processes_below(int(child)))]


@pytest.mark.anyio
async def test_killing_ends_the_launcher_and_all_below_it() -> None:
    sandbox = await start("import os, time; os.write(1, bytes(4)); time.sleep(1000)")
    await sandbox.receive()
    family = processes_below(sandbox.pid)
    assert len(family) in (1, 3)
    await sandbox.kill()
    await sandbox.close()
    assert all(ends(pid) for pid in family)


@pytest.mark.anyio
async def test_a_guest_that_does_not_exit_is_killed_after_its_grace() -> None:
    sandbox = await start("import time; time.sleep(1000)", SandboxLimits(exit_grace_s=0.05))
    ending = await sandbox.close()
    assert (ending.killed, ending.signal) == (True, signal.SIGKILL)


@pytest.mark.anyio
async def test_closing_twice_gives_the_same_ending() -> None:
    sandbox = await start("import sys; sys.stderr.write('gone'); sys.exit(3)")
    first = await sandbox.close()
    assert await sandbox.close() == first
    assert (first.exit_code, first.stderr_tail) == (3, "gone")


@pytest.mark.anyio
async def test_a_guest_that_is_gone_neither_takes_nor_gives() -> None:
    sandbox = await start("pass")
    with pytest.raises(SandboxClosed):
        await sandbox.receive()
    await sandbox.close()
    with pytest.raises(SandboxClosed):
        await sandbox.send(frame(b"x"))


@pytest.mark.anyio
async def test_a_flood_on_both_outputs_is_bounded_and_ends_with_a_kill() -> None:
    code = "import os\nwhile True:\n os.write(1, bytes(65536)); os.write(2, bytes(65536))"
    sandbox = await start(code, SandboxLimits(frame_bytes=1024))
    await sandbox.receive()
    await sandbox.kill()
    ending = await sandbox.close()
    assert len(ending.stderr_tail) <= 8192


@pytest.mark.anyio
async def test_an_oversized_frame_is_an_error_of_the_frame() -> None:
    sandbox = await start("import os; os.write(1, b'\\xff' * 100)")
    with pytest.raises(FrameError):
        await sandbox.receive()
    await sandbox.close()


@pytest.mark.anyio
async def test_a_cancelled_start_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other tests make such folders at the same time
    starting = asyncio.ensure_future(start(ECHO))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert os.listdir(tmp_path) == []


KILLED_HOST = """
import asyncio, os, signal
from pathlib import Path
from bascule.sandbox import SandboxLimits, open_backend

def processes_below(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return [pid, *(each for child in children for each in processes_below(int(child)))]

GUEST = "import os, time; os.write(1, bytes(4)); time.sleep(1000)"

async def main():
    command = ["python3", "-S", "-c", GUEST]
    sandbox = await open_backend("process").start(SandboxLimits(), run_id="orphan", command=command)
    await sandbox.receive()
    for pid in processes_below(sandbox.pid):
        print(pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""

SWEEP = """
import asyncio
from bascule.sandbox import open_backend
print(asyncio.run(open_backend("process").sweep()))
"""


def test_a_killed_host_takes_its_guest_along_and_its_folder_is_swept(tmp_path: Path) -> None:
    def run(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    host = run(KILLED_HOST)
    assert host.returncode == -signal.SIGKILL, host.stderr
    (folder,) = tmp_path.glob("bascule-process-*")
    assert run(SWEEP).stdout.strip() == "1"
    assert not folder.exists()
    assert all(ends(int(pid)) for pid in host.stdout.split())


def test_a_runtime_makes_no_sense_for_a_process() -> None:
    with pytest.raises(SandboxError) as caught:
        open_backend("process", runtime="runsc")
    assert caught.value.code == "isolation_unsupported"
