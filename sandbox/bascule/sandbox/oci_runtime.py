"""The runtimes that are driven without an engine, and in what they differ: data, found by name.

A difference is never a wall that is silently weaker: what a runtime cannot do is seen by the self-check.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Final

from bascule.sandbox.errors import SandboxError

RUNTIMES: Final = ("runc", "crun", "runsc")

DIFFERENCES: Final = {
    "runsc": {
        "new_privileges": "gVisor does not show the flag; its kernel gives a guest no privilege to raise",
        "temporary_folder": "gVisor ignores the size of /tmp; what is written there counts as memory",
        "devices": "gVisor shows devices of its own kernel, none of the host's",
    }
}
"""Checks that fail inside a runtime although nothing of the host is behind them, and why."""

_GVISOR_PIDS: Final = 256
_SYSTRAP_SINCE: Final = 20230501
_RELEASE = re.compile(r"release-([0-9]{8})")
_ASK_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeProgram:
    """One runtime on this machine.

    Attributes:
        name: one of ``RUNTIMES``.
        path: of its program.
        options: given before every command.
        keeps: can be told to keep what it made after the exit, counters included.
        passes_sockets: a guest can connect to a socket of this host that is mounted.
        keeps_errors: its filter answers with the error a rule names; else with EPERM always.
        least_pids: threads the runtime itself needs within the limit of processes.
    """

    name: str
    path: str
    options: tuple[str, ...] = ()
    keeps: bool = True
    passes_sockets: bool = True
    keeps_errors: bool = True
    least_pids: int = 1


def find_runtime(asked: str | None = None) -> RuntimeProgram:
    """Return the runtime asked for (a name or path), the first of runc and crun when none is.

    Raises:
        SandboxError: ``isolation_unsupported`` with what to do: no runtime, or a user without limits.
    """
    for name in RUNTIMES[:2] if asked is None else (asked,):
        if os.path.basename(name) not in RUNTIMES:
            raise _unsupported(f"isolation oci runs {', '.join(RUNTIMES)}, not {name!r}")
        found = shutil.which(name)
        if found is None:
            continue
        if os.geteuid() != 0:
            raise _unsupported(
                "isolation oci needs root here: an unprivileged user cannot have memory, processes and CPU "
                'limited by the kernel. Run as root, or use isolation="container" with a rootless engine'
            )
        return _gvisor(found) if os.path.basename(name) == "runsc" else _native(name, found)
    wanted = asked or "runc or crun"
    raise _unsupported(f"no {wanted} on this machine; install it (Debian or Ubuntu: `apt-get install runc`)")


def installed_runtimes() -> list[str]:
    """Return the names of the runtimes found on this machine."""
    return [name for name in RUNTIMES if shutil.which(name) is not None]


def _native(name: str, path: str) -> RuntimeProgram:
    return RuntimeProgram(name=os.path.basename(name), path=path, keeps=os.path.basename(name) == "runc")


def _gvisor(path: str) -> RuntimeProgram:
    """gVisor: its own kernel between guest and host; counts its own threads, and keeps sockets out."""
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=_ASK_S)
    release = _RELEASE.search(told.stdout)
    old = release is not None and int(release.group(1)) < _SYSTRAP_SINCE
    platform = ("--platform=ptrace",) if old else ()  # the default of old ones needs /dev/kvm or hangs
    return RuntimeProgram(
        name="runsc",
        path=path,
        options=(*platform, "--network=none", "--oci-seccomp"),
        keeps=False,
        passes_sockets=False,
        keeps_errors=False,
        least_pids=_GVISOR_PIDS,
    )


def _unsupported(why: str) -> SandboxError:
    return SandboxError("isolation_unsupported", why)
