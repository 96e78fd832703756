"""What the kernel counted for a sandbox, read from its control group on this machine (version 1 or 2).

The files vanish with the sandbox, so they are read just before the host ends it. Where they cannot be read
(remote engine, other user, another driver) the answer is None, never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PROC = Path("/proc")

Folders = dict[str, list[str]]
"""Controller to the folders its group may be in; the empty name is the unified hierarchy of version 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What a control group counted until now; None where the kernel would not say.

    Attributes:
        peak_memory_bytes: highest use of memory.
        cpu_s: CPU seconds of all processes, dead ones included.
        oom_kills: processes the kernel killed for memory.
        refused_forks: times the limit of processes stopped a fork.
    """

    peak_memory_bytes: int | None = None
    cpu_s: float | None = None
    oom_kills: int | None = None
    refused_forks: int | None = None


def folders_of_container(container: str) -> Folders:
    """Return where an engine with the usual drivers keeps a container's groups.

    Args:
        container: full id, 64 hexadecimal digits.
    """
    groups = (f"docker/{container}", f"system.slice/docker-{container}.scope")
    return {
        "memory": [str(_ROOT / "memory" / group) for group in groups],
        "cpuacct": [str(_ROOT / name / group) for name in ("cpuacct", "cpu,cpuacct") for group in groups],
        "pids": [str(_ROOT / "pids" / group) for group in groups],
        "": [str(_ROOT / group) for group in groups],
    }


def folders_of_process(pid: int) -> Folders:
    """Return the groups a process is in; empty when there is no such process."""
    try:
        lines = (_PROC / str(pid) / "cgroup").read_text("utf-8").splitlines()
    except OSError:
        return {}
    folders: Folders = {}
    for line in lines:
        controllers, _, path = line.partition(":")[2].partition(":")
        for controller in controllers.split(","):
            roots = (_ROOT / controllers, _ROOT / controller) if controllers else (_ROOT,)
            places = [f"{root}{path}" for root in roots]
            folders[controller] = [place for place in places if Path(place).is_dir()]
    return folders


def read_counters(folders: Folders) -> Counters:
    """Return what was counted; ask before the control group is gone."""
    unified = folders.get("", [])
    memory = folders.get("memory", []) + unified
    cpu = folders.get("cpuacct", []) + unified
    pids = folders.get("pids", []) + unified
    cpu_s = _number(cpu, "cpuacct.usage", unit=1e-9)
    if cpu_s is None:
        cpu_s = _number(cpu, "cpu.stat", key="usage_usec", unit=1e-6)
    return Counters(
        peak_memory_bytes=_whole(
            _number(memory, "memory.max_usage_in_bytes"), _number(memory, "memory.peak")
        ),
        cpu_s=cpu_s,
        oom_kills=_whole(
            _number(memory, "memory.oom_control", key="oom_kill"),
            _number(memory, "memory.events", key="oom_kill"),
        ),
        refused_forks=_whole(_number(pids, "pids.events", key="max")),
    )


def read_limits(folders: Folders) -> dict[str, int]:
    """Return the limits in force: ``memory_bytes``, ``pids``, ``cpu_millis``; those that can be read."""
    unified = folders.get("", [])
    memory = folders.get("memory", []) + unified
    cpu = folders.get("cpu", []) + unified
    pids = folders.get("pids", []) + unified
    found = {
        "memory_bytes": _whole(_number(memory, "memory.limit_in_bytes"), _number(memory, "memory.max")),
        "pids": _whole(_number(pids, "pids.max")),
    }
    quota, period = _number(cpu, "cpu.cfs_quota_us"), _number(cpu, "cpu.cfs_period_us")
    if quota is None:
        quota, period = _pair(unified, "cpu.max")
    if quota is not None and period:
        found["cpu_millis"] = int(quota * 1000 / period)
    return {name: value for name, value in found.items() if value is not None}


def _number(folders: list[str], name: str, *, key: str | None = None, unit: float = 1) -> float | None:
    """Return the number in the first such file, or the one behind a key in it."""
    for folder in folders:
        try:
            lines = Path(folder, name).read_text("ascii").splitlines()
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[-1].isdecimal() and (key is None or words[0] == key):
                return int(words[-1]) * unit
    return None


def _pair(folders: list[str], name: str) -> tuple[float | None, float | None]:
    """Return the two numbers of the first such file; None where it says ``max`` or is not there."""
    for folder in folders:
        try:
            words = Path(folder, name).read_text("ascii").split()
        except OSError:
            continue
        if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal():
            return int(words[0]), int(words[1])
    return None, None


def _whole(*values: float | None) -> int | None:
    return next((int(value) for value in values if value is not None), None)
