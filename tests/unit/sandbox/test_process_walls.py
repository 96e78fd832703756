"""The walls around processes: what this kernel gives holds, and what a kernel refuses is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bascule.sandbox import SandboxClosed, SandboxLimits, open_backend
from bascule.sandbox.process import ProcessBackend
from bascule.sandbox.process_walls import DIFFERENCES, WALLS, ProcessWalls
from bascule.sandbox.selfcheck import check_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")

REFUSING_KERNEL = """
import ctypes, json, os, struct, sys
from bascule.sandbox import seccomp
from bascule.sandbox.refused import SYSTEM_CALLS

names = json.loads(sys.argv[1])
seccomp.NUMBERS.update(SYSTEM_CALLS)
rules = [{"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]
code = seccomp.compile_filter({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules}, os.uname().machine)
block = ctypes.create_string_buffer(code, len(code))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(block))
assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0
from bascule.bridge import Executor
from bascule.sandbox import open_backend

backend = open_backend("process")
result = Executor([], backend=backend).run_sync("sum(range(5))")
print(json.dumps({"missing": backend.missing, "value": result.value}))
"""


def under_a_kernel_that_refuses(*names: str) -> tuple[dict[str, str], Any, str]:
    done = subprocess.run(
        [sys.executable, "-c", REFUSING_KERNEL, json.dumps(names)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return told["missing"], told["value"], done.stderr


@pytest.mark.anyio
async def test_every_wall_of_a_kernel_that_gives_them_all_holds() -> None:
    backend = ProcessBackend()
    if backend.missing:
        pytest.skip(f"this kernel gives processes no {', '.join(backend.missing)}")
    broken = {check.name for check in await check_sandbox(backend) if not check.holds}
    assert broken == set(DIFFERENCES)


@pytest.mark.skipif(bool(ProcessBackend().missing), reason="this kernel refuses more by itself")
@pytest.mark.parametrize(
    ("refused", "missing"),
    [
        (("unshare",), {"user", "network", "ipc", "files", "processes"}),
        (("landlock_create_ruleset",), {"landlock"}),
        (("pivot_root",), {"files"}),
    ],
)
def test_what_a_kernel_refuses_is_said_and_the_rest_stands(
    refused: tuple[str, ...], missing: set[str]
) -> None:
    found, value, stderr = under_a_kernel_that_refuses(*refused)
    assert missing <= found.keys() <= missing | {"user"}
    assert value == 10
    for wall in found:
        assert WALLS[wall] in stderr


@pytest.mark.anyio
async def test_a_wall_that_stood_before_is_required_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = ProcessBackend()
    if "files" in backend.missing:
        pytest.skip("this kernel gives processes no root of their own")
    settings = ProcessWalls.settings

    def without_a_source(self: ProcessWalls, *args: Any, **more: Any) -> str:
        told = json.loads(settings(self, *args, **more))
        return json.dumps({**told, "binds": {**told["binds"], "/no/such/place": "/x"}})

    monkeypatch.setattr(ProcessWalls, "settings", without_a_source)
    sandbox = await backend.start(SandboxLimits(), run_id="broken", command=["python3", "-c", "print('ran')"])
    with pytest.raises(SandboxClosed):
        await sandbox.receive()
    ending = await sandbox.close()
    assert ending.exit_code == 1
    assert "a wall could not be built here: files" in ending.stderr_tail


@pytest.mark.anyio
async def test_the_guest_reads_its_python_and_nothing_of_this_users(tmp_path: Path) -> None:
    backend = ProcessBackend()
    if {"files", "landlock"} & backend.missing.keys():
        pytest.skip("this kernel does not keep files from processes")
    secret = tmp_path / "secret"
    secret.write_text("x", "ascii")
    code = f"""
import os
for path in ({str(secret)!r}, "/etc/passwd", "/proc/1/environ", {str(Path(__file__))!r}):
    try:
        open(path).read()
        os.write(2, b"read " + path.encode())
    except OSError as error:
        os.write(2, b"refused ")
"""
    sandbox = await backend.start(SandboxLimits(), run_id="reader", command=["python3", "-S", "-c", code])
    assert (await sandbox.close()).stderr_tail.split() == ["refused"] * 4


@pytest.mark.anyio
async def test_memory_of_all_threads_and_the_number_of_processes_are_bounded() -> None:
    backend = ProcessBackend()
    if "seccomp" in backend.missing:
        pytest.skip("this kernel lets processes make others")
    code = """
import os
try:
    os.fork()
except OSError as error:
    os.write(2, f"{type(error).__name__} ".encode())
try:
    held = [bytearray(32 << 20) for _ in range(64)]
except MemoryError:
    os.write(2, b"MemoryError")
"""
    sandbox = await backend.start(
        SandboxLimits(memory_bytes=64 << 20), run_id="bomb", command=["python3", "-S", "-c", code]
    )
    assert (await sandbox.close()).stderr_tail == "PermissionError MemoryError"


def test_a_backend_of_processes_is_opened_by_name() -> None:
    assert open_backend("process").name == "process"
