"""The containment self-check: runs the probe inside a real sandbox and says what holds on this host.

Any operator can run it (`bascule doctor`). It proves the walls as the engine really built them, not as they
were asked for.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from bascule.sandbox import probe
from bascule.sandbox.errors import SandboxClosed
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.process_walls import ADDRESS_SPACE_EXTRA_BYTES
from bascule.sandbox.refused import SOCKET_FAMILIES, SYSTEM_CALLS
from bascule.sandbox.sandbox import Backend
from bascule.wire import FrameError

MEANING = {
    "user": "runs as nobody, in no group of the host",
    "capabilities": "holds no capability and can gain none",
    "new_privileges": "no program can raise its privileges",
    "seccomp": "a system-call filter is active",
    "system_calls": "the filter refuses the calls that kernel exploits start from",
    "namespaces": "cannot make namespaces of its own",
    "sockets": "cannot make a socket of any family, but the one kind its channel to the host needs",
    "interfaces": "has no network interface but loopback, and no route",
    "read_only_root": "cannot write in any folder of the image",
    "writable_places": "the image holds nothing it may write",
    "temporary_folder": "/tmp is small, counted and not executable",
    "setuid_files": "the image holds no setuid or setgid file",
    "shells": "the image holds no shell",
    "devices": "sees no device of the host",
    "shared_memory": "has no shared memory with others",
    "process_view": "sees no process of the host or of other runs",
    "kernel_files": "cannot open the kernel's controls or memory",
    "environment": "was told nothing of the host",
    "open_files": "inherited no file of the host",
    "memory": "memory is limited and swap adds nothing",
    "processes": "processes and threads are limited together",
    "cpu": "CPU time per second is limited",
    "resource_limits": "files, file size, core dumps and queues are limited",
}
"""What each check means when it holds, in words for the operator."""

_DEADLINE_S = 30.0

_OUTSIDE = {"memory": "memory_bytes", "processes": "pids", "cpu": "cpu_millis"}
"""Checks of limits that hold although a guest with a kernel of its own cannot see them."""

_RUNTIME_THREADS = 256
"""Threads that such a kernel needs within the limit of processes."""


@runtime_checkable
class SeenFromOutside(Protocol):
    """A sandbox whose limits this host can read."""

    def limits_in_force(self) -> dict[str, int]:
        """Return limits by name; those that can be read."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One wall.

    Attributes:
        name: key of ``MEANING``.
        holds: whether the attempt failed as it should.
        meaning: what that means.
        detail: what was seen; text from inside the sandbox.
    """

    name: str
    holds: bool
    meaning: str
    detail: str


async def check_sandbox(backend: Backend, *, limits: SandboxLimits | None = None) -> list[Check]:
    """Run the probe in a fresh sandbox of this backend and return a verdict for every wall.

    In process isolation the attempts reach the host: where a folder can be written, a file ``bascule-probe``
    is made there and removed at once. A probe that reports nothing gives one failed check per wall, with the
    reason.

    Raises:
        SandboxError: the sandbox could not be started.
    """
    limits = limits or SandboxLimits()
    expected = {
        "memory_bytes": limits.memory_bytes,
        "pids": limits.pids,
        "cpu_millis": round(limits.cpus * 1000),
        "tmpfs_bytes": limits.tmpfs_bytes,
        "tmpfs_files": limits.tmpfs_files,
        "nofile": limits.nofile,
        "address_space_bytes": limits.memory_bytes + ADDRESS_SPACE_EXTRA_BYTES,
    }
    command = ["python3", "-S", "-s", "-P", "-c", _probe_text()]
    command += [json.dumps(each) for each in (expected, SYSTEM_CALLS, SOCKET_FAMILIES)]
    sandbox = await backend.start(limits, run_id="selfcheck", command=command)
    report: dict[str, tuple[bool, str]] = {}
    outside = sandbox.limits_in_force() if isinstance(sandbox, SeenFromOutside) else {}
    reason = ""
    try:
        report = _parse(await asyncio.wait_for(sandbox.receive(), _DEADLINE_S))
    except (TimeoutError, SandboxClosed, FrameError, ValueError) as error:
        reason = f"the probe did not report: {type(error).__name__}: {error}"
    finally:
        ending = await sandbox.close()
    if reason:
        reason += f"; exit code {ending.exit_code}; {ending.stderr_tail[-300:]}"
    for name, limit in _OUTSIDE.items():
        if limit in outside and report.get(name, (True, ""))[0] is False:
            holds = outside[limit] <= max(expected[limit], _RUNTIME_THREADS if limit == "pids" else 0)
            report[name] = (holds, f"seen from outside: {limit} {outside[limit]}")
    return [_check(name, report, reason) for name in MEANING]


def _probe_text() -> str:
    return Path(probe.__file__).read_text("utf-8")


def _check(name: str, report: dict[str, tuple[bool, str]], reason: str) -> Check:
    holds, detail = report.get(name, (False, reason or "not reported"))
    return Check(name=name, holds=holds, meaning=MEANING[name], detail=detail)


def _parse(payload: bytes) -> dict[str, tuple[bool, str]]:
    found: object = json.loads(payload.decode("utf-8"))
    if not isinstance(found, dict):
        raise ValueError("the report is not an object")
    report: dict[str, tuple[bool, str]] = {}
    for name, verdict in cast("dict[str, object]", found).items():
        match verdict:
            case [bool(holds), str(detail)]:
                report[name] = (holds, detail[:500])
            case _:
                raise ValueError(f"check {name!r} gave no verdict")
    return report
