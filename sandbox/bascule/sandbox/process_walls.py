"""The walls around a guest that is a child of this host: which there are, and which this kernel allows.

What the guest's Python needs of this machine is listed here; the launcher (``confine``) hides everything
else. Which walls can stand is found out by building them once around a trial; from then on each is required.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bascule.sandbox import confine
from bascule.sandbox.hardening import CONTEXT_DIR, ENVIRONMENT
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.seccomp import process_filter

WALLS: Final = {
    "user": "a user namespace: the guest would be nobody, without a right to anything of this user's",
    "network": "a network namespace: the guest would have no network at all",
    "ipc": "namespaces for shared memory and the host's name",
    "files": "a root of its own: the guest would see Python and its libraries, no other file",
    "processes": "a process namespace: the guest would see and signal nobody",
    "capabilities": "giving up all capabilities for good",
    "landlock": "Landlock: the guest could read what Python needs and write nothing",
    "seccomp": "the system-call filter: no socket, no other process, none of the calls exploits start from",
}
"""Every wall, and what it would give where it cannot stand."""

DIFFERENCES: Final = {
    "cpu": "CPU is limited by seconds in all and not by share: that needs a control group, hence an engine",
}
"""Checks that fail although every wall stands, and why."""

_TRIAL_S: Final = 30.0

_TRIAL: Final = """
import ctypes, decimal, hashlib, json, os, sys
assert open("/proc/self/statm").read(), "no /proc/self"
os.close(os.open(os.devnull, os.O_RDWR))
assert any(os.path.exists(folder + "/IMAGE") for folder in sys.argv[1:3]), "the guest's own files"
print(sys.argv[3])
"""

_LOADER_FOLDERS: Final = ("/lib64", "/usr/lib64")

ADDRESS_SPACE_EXTRA_BYTES: Final = 256 << 20
"""Address space is wider than what is resident."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessWalls:
    """What stands around the guests of one backend.

    Attributes:
        standing: walls that the trial could build; every start requires them.
        missing: the others, with the kernel's reason.
    """

    context: Path
    standing: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def guest_folder(self) -> str:
        """Where the guest finds its own program."""
        return CONTEXT_DIR if "files" in self.standing else str(self.context)

    def settings(self, argv: Sequence[str], *, limits: SandboxLimits, root: Path, trial: bool = False) -> str:
        """Return the launcher's argument.

        Args:
            argv: absolute path of a program, and its arguments.
            limits: of this sandbox.
            root: empty folder of this sandbox, to mount its root on.
            trial: say what cannot be built, instead of refusing to go on.
        """
        filter_ = process_filter(platform.machine())
        return json.dumps(
            {
                "argv": list(argv),
                "walls": list(self.standing),
                "trial": trial,
                "root": str(root),
                "binds": {path: path for path in _outermost(_python_files())}
                | {str(self.context): CONTEXT_DIR},
                "hidden": [path for path in _package_folders() if os.path.isdir(path)],
                "links": _links(),
                "executables": [python_program(), *_loaders()],
                "tmpfs": f"size={limits.tmpfs_bytes},nr_inodes={limits.tmpfs_files},mode=0700",
                "filter": base64.b64encode(filter_ or b"").decode("ascii"),
                "limits": resource_limits(limits),
            }
        )

    def describe(self) -> list[str]:
        """Return a sentence for every wall that does not stand on this host."""
        return [f"not on this host: {WALLS[wall]} ({why})" for wall, why in self.missing.items()]


def find_walls(context: Path) -> ProcessWalls:
    """Try all walls around a trial and return those that stand. Blocks for about a tenth of a second.

    Args:
        context: the guest's folder.
    """
    missing: dict[str, str] = {}
    reason = ""
    if sys.platform != "linux":
        return ProcessWalls(context=context, missing=dict.fromkeys(WALLS, "this is not Linux"))
    if process_filter(platform.machine()) is None:
        missing["seccomp"] = f"no table of calls for {platform.machine()}"
    standing = tuple(each for each in WALLS if each not in missing)
    for suspects in ((), ("files", "user"), standing):
        missing |= {each: f"Python does not start behind it: {reason}" for each in suspects if suspects}
        standing = tuple(each for each in WALLS if each not in missing)
        found = _try(ProcessWalls(context=context, standing=standing))
        if isinstance(found, dict):
            missing |= found
            break
        reason = found
    return ProcessWalls(
        context=context, standing=tuple(each for each in WALLS if each not in missing), missing=missing
    )


def resource_limits(limits: SandboxLimits) -> dict[str, int]:
    """Return the limits of the guest's process; as it can start no other, they hold for the sandbox."""
    return {
        "RLIMIT_AS": limits.memory_bytes + ADDRESS_SPACE_EXTRA_BYTES,
        "RLIMIT_NPROC": limits.pids,
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": limits.tmpfs_bytes,
        "RLIMIT_NOFILE": limits.nofile,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_CPU": 600,
    }


def python_program() -> str:
    """Return the interpreter itself, behind the links of a virtual environment."""
    return os.path.realpath(sys.executable)


def launch_command(settings: str) -> list[str]:
    """Return what starts the launcher."""
    return [sys.executable, "-S", "-s", "-P", str(Path(confine.__file__)), settings]


def _try(walls: ProcessWalls) -> dict[str, str] | str:
    """Return what could not be built, or why nothing started."""
    with tempfile.TemporaryDirectory(prefix="bascule-trial-") as folder:
        root = Path(folder, "root")
        root.mkdir()
        argv = [python_program(), "-S", "-s", "-P", "-c", _TRIAL, CONTEXT_DIR, str(walls.context)]
        settings = walls.settings(argv, limits=SandboxLimits(), root=root, trial=True)
        done = subprocess.run(
            launch_command(settings),
            cwd=folder,
            env=dict(ENVIRONMENT),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TRIAL_S,
        )
    if done.returncode != 0:
        return done.stderr.strip()[-300:] or f"exit status {done.returncode}"
    found: dict[str, str] = json.loads(done.stdout)
    return found


def _python_files() -> list[str]:
    """Return the files and folders that Python needs to start and to import its standard library."""
    names = sysconfig.get_config_vars("LIBDIR", "INSTSONAME", "LDLIBRARY", "MULTIARCH")
    libraries, shared, linked, multiarch = (str(each or "") for each in names)
    candidates = [
        *(python_program(), sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")),
        *(os.path.join(libraries, each) for each in (shared, linked) if each),
        *(f"{folder}/{multiarch}" for folder in ("/lib", "/usr/lib") if multiarch),
        *_LOADER_FOLDERS,
        *(() if multiarch else ("/lib", "/usr/lib")),
        *zoneinfo.TZPATH,
        *("/etc/ld.so.cache", "/etc/ld.so.conf"),
    ]
    return [path for path in candidates if os.path.exists(path) and os.path.realpath(path) == path]


def _package_folders() -> list[str]:
    """Return the folders of installed packages below the standard library, which are nobody's business."""
    stdlib = sysconfig.get_path("stdlib")
    return [f"{stdlib}/{name}" for name in ("site-packages", "dist-packages")]


def _links() -> dict[str, str]:
    """Return the links of a merged /usr, which programs have in their headers."""
    return {path: os.readlink(path) for path in ("/lib", "/lib64", "/bin") if os.path.islink(path)}


def _loaders() -> list[str]:
    """Return the programs that start programs: the dynamic loaders of this machine."""
    folders = [path for path in _python_files() if os.path.isdir(path)]
    found = {os.path.realpath(each) for path in folders for each in Path(path).glob("ld-*.so*")}
    return sorted(path for path in found if os.path.isfile(path))


def _outermost(paths: list[str]) -> list[str]:
    """Return the paths that lie in none of the others, once each and the shortest first."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda each: (len(each), each)):
        if not any(path.startswith(f"{other}/") for other in kept):
            kept.append(path)
    return kept
