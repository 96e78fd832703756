"""Writing a text file whole, never in place, and what would change, for whoever is asked about it."""

from __future__ import annotations

import contextlib
import difflib
import os
import secrets
import stat
from dataclasses import dataclass
from typing import Final

from bascule.tools.standard.confined import Confined, open_file

MAX_WRITE_BYTES: Final = 1 << 20
MAX_DIFF_LINES: Final = 200
_MAX_COMPARED_LINES: Final = 2000
"""Changed lines that are compared; comparing more could take long, and would not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written."""

    path: str
    size_bytes: int
    created: bool


def write_whole(folder: Confined, path: str, text: str, *, overwrite: bool) -> Written:
    """Make a file, or replace it; the same text again changes nothing."""
    data = text.encode()
    if len(data) > MAX_WRITE_BYTES:
        raise ValueError(f"{len(data)} bytes are more than may be written, {MAX_WRITE_BYTES}")
    with folder.folder_of(path) as (parent, name):
        if name == ".":
            raise IsADirectoryError(f"{path:.200} is a folder")
        before = _existing(parent, name, path)
        if before is not None and before[0] == data:
            return Written(path=path, size_bytes=len(data), created=False)
        if before is not None and not overwrite:
            raise FileExistsError(f"{path:.200} exists; pass overwrite=True to replace it")
        mode = 0o644 if before is None else before[1]
        _put(parent, name, data, mode, replace=overwrite)
    return Written(path=path, size_bytes=len(data), created=before is None)


def _existing(parent: int, name: str, path: str) -> tuple[bytes, int] | None:
    try:
        descriptor = open_file(parent, name, path)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        return file.read(MAX_WRITE_BYTES + 1), stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o777


def _put(parent: int, name: str, data: bytes, mode: int, *, replace: bool) -> None:
    """Write beside and move into place: nobody ever sees half a file, and no link is followed."""
    beside = f".{secrets.token_hex(8)}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(beside, flags, 0o600, dir_fd=parent), "wb") as file:
        try:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            if replace:
                os.replace(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
                return
            os.link(beside, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        except FileExistsError:
            raise FileExistsError(f"{name:.200} was made by somebody else meanwhile") from None
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=parent)


def describe_change(folder: Confined, path: str, text: str) -> str:
    """Return in words and as a unified diff what writing a text would do."""
    with folder.folder_of(path) as (parent, name):
        before = _existing(parent, name, path)
    if before is None:
        lines = text.split("\n")
        shown = [f"makes {path}, {len(text.encode())} bytes:", *(f"+{line}" for line in lines)]
    else:
        shown = [
            f"replaces {path}:",
            *_compare(before[0].decode("utf-8", "replace").split("\n"), text.split("\n")),
        ]
    if len(shown) > MAX_DIFF_LINES:
        left = len(shown) - MAX_DIFF_LINES
        shown = [*shown[:MAX_DIFF_LINES], f"({left} more lines)"]
    return "\n".join(shown)


def _compare(old: list[str], new: list[str]) -> list[str]:
    """Return the difference of two texts by lines; of long ones, that and where it is too long to show."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    if not gone and not come:
        return ["(no line changes)"]
    if max(len(gone), len(come)) > _MAX_COMPARED_LINES:
        return [
            f"lines {start + 1} to {start + len(gone)} give way to these {len(come)} lines (not compared):",
            *(f"+{line}" for line in come),
        ]
    first, last = max(start - 2, 0), 2 if end >= 2 else end
    around = (old[first : len(old) - end + last], new[first : len(new) - end + last])
    found = list(difflib.unified_diff(*around, lineterm="", n=2))[2:]
    return [f"from line {first + 1} on:", *found]
