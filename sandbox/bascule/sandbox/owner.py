"""Who owns a sandbox: the host process that started it, named so that a later process can tell if it lives.

The name is boot id, pid namespace, pid and start time of the process. Only a process of the same boot and
namespace can judge; anything else (another machine on the same engine, another container) is left alone.
Everything read back from the engine is checked, not trusted.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from pathlib import Path

_PROC = Path("/proc")
_NUMBER = re.compile(r"[0-9]{1,20}")


def own_name() -> str:
    """Return this process's name for the ``bascule.owner`` label."""
    pid = os.getpid()
    return f"{_host()}:{pid}:{_start_ticks(pid) or 0}"


def is_gone(name: str) -> bool:
    """Return True only when the named process certainly runs no more.

    Args:
        name: a label value from the engine; anything malformed counts as not ours to judge.
    """
    host, _, rest = name.partition(":")
    pid_text, _, ticks_text = rest.partition(":")
    if not (_NUMBER.fullmatch(pid_text) and _NUMBER.fullmatch(ticks_text)):
        return False
    if host != _host():
        return False
    ticks = _start_ticks(int(pid_text))
    return ticks is None or ticks != int(ticks_text)


def own_tag() -> str:
    """Return this process's name, short enough to be part of a folder's: there as soon as the folder is."""
    pid = os.getpid()
    return f"{_host_tag()}.{pid}.{_start_ticks(pid) or 0}"


def is_tag_gone(tag: str) -> bool:
    """Return True only when the process of that tag certainly runs no more; no other text is ours."""
    host, _, rest = tag.partition(".")
    return host == _host_tag() and is_gone(f"{_host()}:{rest.replace('.', ':')}")


def _host_tag() -> str:
    return hashlib.sha256(_host().encode()).hexdigest()[:8]


def _host() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return f"{platform.node()}/0"
    return f"{boot}/{namespace}"


def _start_ticks(pid: int) -> int | None:
    """Return when the process started, in clock ticks since boot; None when there is none."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        if _PROC.joinpath("self/stat").exists():
            return None
        return 0 if _answers(pid) else None
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    return int(fields[19])


def _answers(pid: int) -> bool:
    """Ask a kernel without /proc whether the process exists; there pids alone must do."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
