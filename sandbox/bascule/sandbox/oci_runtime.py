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
from bascule.sandbox.oci_rootless import UserMap, find_user_map

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
        users: ids of a user who is not root here, and has no control groups; None for root.
    """

    name: str
    path: str
    options: tuple[str, ...] = ()
    keeps: bool = True
    passes_sockets: bool = True
    keeps_errors: bool = True
    least_pids: int = 1
    users: UserMap | None = None

    @property
    def differences(self) -> dict[str, str]:
        """Checks that fail with this runtime, for this user, and why."""
        return DIFFERENCES.get(self.name, {}) | ({} if self.users is None else self.users.differences())


def find_runtime(asked: str | None = None) -> RuntimeProgram:
    """Return the runtime asked for (a name or path), the first of runc and crun when none is.

    Raises:
        SandboxError: ``isolation_unsupported`` with what to do: no such runtime, or not for this user.
    """
    for name in RUNTIMES[:2] if asked is None else (asked,):
        if os.path.basename(name) not in RUNTIMES:
            raise _unsupported(f"isolation oci runs {', '.join(RUNTIMES)}, not {name!r}")
        found = shutil.which(name)
        if found is None:
            continue
        if os.path.basename(name) == "runsc":
            return _gvisor(found)
        return _native(name, found)
    wanted = asked or "runc or crun"
    raise _unsupported(f"no {wanted} on this machine; install it (Debian or Ubuntu: `apt-get install runc`)")


def runtime_differences(runtime: str | None = None) -> dict[str, str]:
    """Return the checks of the self-check that fail with isolation ``oci`` here, for this user, and why.

    Raises:
        SandboxError: as ``find_runtime``.
    """
    return find_runtime(runtime).differences


def installed_runtimes() -> list[str]:
    """Return the names of the runtimes found on this machine."""
    return [name for name in RUNTIMES if shutil.which(name) is not None]


def _native(name: str, path: str) -> RuntimeProgram:
    runc, rootless = os.path.basename(name) == "runc", os.geteuid() != 0
    return RuntimeProgram(
        name=os.path.basename(name),
        path=path,
        # crun would look for control groups even where none are asked for.
        options=("--cgroup-manager=disabled",) if rootless and not runc else (),
        keeps=runc,
        users=find_user_map() if rootless else None,
    )


def _gvisor(path: str) -> RuntimeProgram:
    """gVisor: its own kernel between guest and host; counts its own threads, and keeps sockets out."""
    if os.geteuid() != 0:
        raise _unsupported("isolation oci runs gVisor as root only; use runc or crun, which need no root")
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
