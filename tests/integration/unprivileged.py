"""Becomes an ordinary user and runs a command: ``unprivileged.py UID FOLDER[:FOLDER...] TABLES COMMAND ...``.

Needs root, and changes nothing of the machine: in a mount namespace of this process's own the folders
(interpreter, checkout) are readable although their parents may be root's alone, and the tables (JSON: path to
lines) have more lines.
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import sys
import tempfile
from pathlib import Path

_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Call mount(2).

    Raises:
        OSError: as the kernel says.
    """
    result = _libc.mount(
        *(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    )
    if result != 0:
        raise OSError(ctypes.get_errno(), f"mount on {target}: {os.strerror(ctypes.get_errno())}")


def closed_parent(path: str) -> str | None:
    """Return the outermost folder above a path that other users may not enter."""
    parts = path.strip("/").split("/")
    for count in range(1, len(parts) + 1):
        folder = "/" + "/".join(parts[:count])
        if not os.stat(folder).st_mode & stat.S_IXOTH:
            return folder
    return None


def take_own_mounts() -> None:
    """From here on this process's mounts are its own."""
    if _libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount("none", "/", "", _MS_REC | _MS_PRIVATE)


def keep_readable(folders: list[str]) -> None:
    """Let everybody reach the folders."""
    closed = {each: parent for each in folders if (parent := closed_parent(each)) is not None}
    shown = [
        place
        for folder, parent in closed.items()
        for place in (
            [os.path.join(folder, name) for name in os.listdir(folder)] if parent == folder else [folder]
        )
    ]
    opened = {each: os.open(each, os.O_PATH | os.O_NOFOLLOW) for each in shown if not os.path.islink(each)}
    for parent in sorted(set(closed.values())):
        mount("tmpfs", parent, "tmpfs", 0, "mode=755")
    for place, descriptor in opened.items():
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.makedirs(place, exist_ok=True)
        else:
            Path(place).touch()
        mount(f"/proc/self/fd/{descriptor}", place, "", _MS_BIND | _MS_REC)
        os.close(descriptor)


def add_lines(table: str, lines: str) -> None:
    """Let a file of the machine have more lines."""
    there = Path(table)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as longer:
        longer.write((there.read_text("utf-8") if there.exists() else "") + lines)
        longer.flush()
        os.fchmod(longer.fileno(), 0o644)
        mount(longer.name, table, "", _MS_BIND)


def main() -> None:
    """Become the user and run the command."""
    uid = int(sys.argv[1])
    take_own_mounts()
    keep_readable(sorted(set(sys.argv[2].split(":")), key=len))
    for table, lines in json.loads(sys.argv[3]).items():
        add_lines(table, lines)
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    os.execvp(sys.argv[4], sys.argv[4:])


if __name__ == "__main__":
    main()
