"""What the kernel counted for a container, read from its cgroup on this machine.

The files vanish with the container, so they are read just before the host ends it. Where they cannot be read
(remote engine, rootless, another driver) the answer is None, never a guess.
"""

from __future__ import annotations

from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


def read_usage(container: str) -> tuple[int | None, float | None]:
    """Return peak memory in bytes and CPU time in seconds of a running container.

    Args:
        container: full id, 64 hexadecimal digits.
    """
    peak = _first_number(
        f"memory/docker/{container}/memory.max_usage_in_bytes",
        f"memory/system.slice/docker-{container}.scope/memory.max_usage_in_bytes",
        f"docker/{container}/memory.peak",
        f"system.slice/docker-{container}.scope/memory.peak",
    )
    cpu_ns = _first_number(
        f"cpuacct/docker/{container}/cpuacct.usage",
        f"cpu,cpuacct/docker/{container}/cpuacct.usage",
        f"cpuacct/system.slice/docker-{container}.scope/cpuacct.usage",
    )
    if cpu_ns is not None:
        return peak, cpu_ns / 1e9
    for folder in (f"docker/{container}", f"system.slice/docker-{container}.scope"):
        for line in _lines(f"{folder}/cpu.stat"):
            if line.startswith("usage_usec "):
                return peak, int(line.split()[1]) / 1e6
    return peak, None


def _first_number(*paths: str) -> int | None:
    for path in paths:
        for line in _lines(path):
            return int(line)
    return None


def _lines(path: str) -> list[str]:
    try:
        return (_ROOT / path).read_text("ascii").splitlines()
    except OSError:
        return []
