"""A container that serves several runs, with the interpreter switched off: nothing of one run meets the next.

The parent is the product's, the host's side too; the children are plain Python that does what a row says. A
child before and one after a row describe everything a process inherits or sees; the descriptions must be the
same, or the container must be gone.
"""

from __future__ import annotations

import asyncio
import json
import secrets

import pytest

from bascule.sandbox import Ending, SandboxClosed, SandboxError, SandboxLimits, open_backend
from bascule.sandbox.container import ContainerBackend, _Order  # pyright: ignore[reportPrivateUsage]
from bascule.sandbox.meeting import MeetingPlace
from bascule.sandbox.reuse import ChildSandbox, first_child
from tests.escape.rows import Row, load

pytestmark = pytest.mark.engine

ROWS = load("reuse")
LIMITS = SandboxLimits(memory_bytes=96 << 20, pids=32, exit_grace_s=3.0)

PARENT = """
import os, sys
sys.path.insert(0, "/bascule")
from bascule.guest.init import leave_init_behind
from bascule.guest.nursery import bear_children, close_memory
def attempt(name, number, *args):
    import ctypes
    if os.uname().machine == "x86_64" and ctypes.CDLL(None, use_errno=True).syscall(number, *args) >= 0:
        print("ESCAPED:" + name)
close_memory()
leave_init_behind()
lines = os.dup(0), os.dup(1)
os.dup2(os.open("/dev/null", os.O_RDWR), 0)
os.dup2(2, 1)
bear_children(*lines)
import _socket
line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
line.connect("/channel/host")
exec(compile(os.read(line.fileno(), 1 << 20), "<raw>", "exec"), {"attempt": attempt, "line": line})
sys.stdout.flush()
"""

DESCRIBE = """
import json, os, resource
kinds = sorted(name for name in dir(resource) if name.startswith("RLIMIT_"))
status = open("/proc/self/status").read().splitlines()
places = [each for place in ("/tmp", "/dev", "/channel", "/run", "/var") for each in os.walk(place)]
files = sorted(os.path.join(folder, name) for folder, names, found in places for name in names + found)
shown = ("Sig", "Shd", "Cap", "Seccomp", "NoNew", "Umask", "Threads", "Cpus")
told = json.dumps({
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in kinds},
    "status": [each for each in status if each.startswith(shown)],
    "processes": sum(name.isdecimal() for name in os.listdir("/proc")),
    "descriptors": len(os.listdir("/proc/self/fd")),
    "files": files, "folder": os.getcwd(), "environment": dict(os.environ), "name": os.uname().nodename,
    "score": open("/proc/self/oom_score_adj").read(),
}).encode()
os.write(line.fileno(), len(told).to_bytes(4, "big") + told)
"""


async def start(backend: ContainerBackend) -> ChildSandbox:
    """Start a container whose children are plain Python."""
    name = f"bascule-escape-reuse-{secrets.token_hex(4)}"
    command = ["python3", "-S", "-c", PARENT]
    order = _Order(limits=LIMITS, name=name, run_id="escape-reuse", command=command, reuse=True)
    place = MeetingPlace()
    place.hush()
    container = await backend._start(order, place)  # pyright: ignore[reportPrivateUsage]
    return await first_child(container, place, name=container.container_id, limits=LIMITS)


async def run_code(child: ChildSandbox, code: str) -> tuple[bytes | None, Ending]:
    """Have a child do something; return what it told over its socket, and how it ended."""
    await child.send(code.encode())
    try:
        told: bytes | None = await asyncio.wait_for(child.receive(), 10)
    except SandboxClosed:
        told = None
    return told, await child.end()


async def describe(child: ChildSandbox) -> dict[str, object]:
    told, ending = await run_code(child, DESCRIBE)
    assert told is not None, ending
    assert child.may_be_followed
    found: dict[str, object] = json.loads(told)
    return found


async def attack(backend: ContainerBackend, row: Row) -> tuple[str, bool, bool]:
    """Return what the row printed, whether a run could follow, and whether that saw anything changed."""
    before = await start(backend)
    try:
        first = await describe(before)
        hostile = await before.nursery.bear()
        _, ending = await run_code(hostile, row.code)
        if not hostile.may_be_followed:
            return ending.stderr_tail, False, False
        second = await describe(await before.nursery.bear())
        return ending.stderr_tail, True, first != second
    finally:
        await before.nursery.remove()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[str, bool, bool]]:
    async def run() -> dict[str, tuple[str, bool, bool]]:
        backend = open_backend("container", build=True)
        assert isinstance(backend, ContainerBackend)
        slots = asyncio.Semaphore(3)

        async def one(row: Row) -> tuple[str, bool, bool]:
            async with slots:
                return await attack(backend, row)

        try:
            found = await asyncio.gather(*(one(row) for row in ROWS))
        finally:
            await backend.close()
        return {row.id: outcome for row, outcome in zip(ROWS, found, strict=True)}

    try:
        return asyncio.run(run())
    except SandboxError as error:
        if error.code == "isolation_unsupported":
            pytest.skip(error.message)
        raise


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_nothing_of_a_run_meets_the_next(row: Row, outcomes: dict[str, tuple[str, bool, bool]]) -> None:
    said, followed, changed = outcomes[row.id]
    assert "ESCAPED" not in said
    assert "SyntaxError" not in said, "the row itself is broken"
    assert not changed
    assert followed == (row.outcome == "inert"), said
