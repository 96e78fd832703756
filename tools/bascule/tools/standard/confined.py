"""A folder that nothing leads out of: paths are walked step by step on open descriptors, links included.

Every component is opened relative to the descriptor of the one before, never by its full path, and never
followed: a symbolic link is read from its own descriptor and its target walked in the same way. So there is
no moment between check and use in which somebody could put a link in place (CWE-367). ``..`` goes back along
the way that was walked. What leads outside is refused, and names that begin with a dot unless allowed.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MAX_PATH_CHARS: Final = 1000
MAX_LINKS: Final = 20

_PATH_ONLY: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_NEVER_WAIT: Final = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Confined:
    """One folder and what is below it.

    Args:
        root: the folder; links in its own path are followed once, now.
        hidden: whether names that begin with a dot can be reached.

    Raises:
        OSError: there is no such folder.
    """

    def __init__(self, root: str | os.PathLike[str], *, hidden: bool = False) -> None:
        self.root = Path(root).resolve(strict=True)
        self._hidden = hidden
        os.close(self._open_root())

    @contextmanager
    def folder_of(self, path: str) -> Generator[tuple[int, str]]:
        """Give the descriptor of the folder in which the last step of a path lies, and its name there.

        Links are resolved, that of the last step too. The name need not exist; it is ``.`` for the root.

        Raises:
            PermissionError: the path leads out, or to a hidden name.
            OSError, ValueError: a step is missing or no folder; the path is none.
        """
        steps = self._steps(path)
        way = [self._open_root()]
        name, links = ".", 0
        try:
            while steps:
                step = steps.popleft()
                if step == "..":
                    if len(way) == 1:
                        raise PermissionError(f"{_shown(path)} leads out of the folder")
                    os.close(way.pop())
                    name = "."
                    continue
                if step.startswith(".") and not self._hidden:
                    raise PermissionError(f"{_shown(path)}: names that begin with a dot cannot be reached")
                try:
                    found = os.open(step, _PATH_ONLY, dir_fd=way[-1])
                except FileNotFoundError:
                    if steps:
                        raise FileNotFoundError(
                            f"there is no folder {_shown(step)} on the way to {_shown(path)}"
                        ) from None
                    name = step
                    break
                kind = os.fstat(found).st_mode
                if stat.S_ISLNK(kind):
                    links += 1
                    target = _read_link(found)
                    if links > MAX_LINKS:
                        raise PermissionError(f"{_shown(path)} goes through more than {MAX_LINKS} links")
                    if target.startswith("/"):
                        target = self._below_root(target, path)
                        _close_all(way[1:])
                        del way[1:]
                    steps.extendleft(reversed([each for each in target.split("/") if each not in ("", ".")]))
                    name = "."
                elif stat.S_ISDIR(kind):
                    way.append(found)
                    name = "."
                elif steps:
                    os.close(found)
                    raise NotADirectoryError(f"{_shown(step)} on the way to {_shown(path)} is no folder")
                else:
                    os.close(found)
                    name = step
            yield way[-1], name
        finally:
            _close_all(way)

    def open(self, path: str) -> int:
        """Return a descriptor for reading an ordinary file; it never waits for one that is something else.

        Raises:
            OSError: it is missing or no ordinary file; see `folder_of`.
        """
        with self.folder_of(path) as (folder, name):
            if name == ".":
                raise IsADirectoryError(f"{_shown(path)} is a folder")
            return open_file(folder, name, path)

    def open_folder(self, path: str) -> int:
        """Return a descriptor of a folder.

        Raises:
            OSError: it is missing or no folder; see `folder_of`.
        """
        with self.folder_of(path) as (folder, name):
            if name != ".":
                os.stat(name, dir_fd=folder, follow_symlinks=False)  # missing is said first
                raise NotADirectoryError(f"{_shown(path)} is no folder")
            return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)

    def is_visible(self, name: str) -> bool:
        """Tell whether a name can be reached."""
        return self._hidden or not name.startswith(".")

    def _open_root(self) -> int:
        return os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _steps(self, path: str) -> deque[str]:
        if len(path) > MAX_PATH_CHARS:
            raise ValueError(f"the path is longer than {MAX_PATH_CHARS} characters")
        if "\x00" in path or any("\ud800" <= each <= "\udfff" for each in path):
            raise ValueError("the path holds a character that no path has")
        if path.startswith(("/", "~")):
            raise PermissionError(f"{_shown(path)}: write a path relative to the folder")
        return deque(step for step in path.split("/") if step not in ("", "."))

    def _below_root(self, target: str, path: str) -> str:
        """Return the way from the root to the target of an absolute link; it is walked like any other."""
        inside = os.path.normpath(target)
        if inside == str(self.root):
            return ""
        if not inside.startswith(f"{self.root}/"):
            raise PermissionError(f"{_shown(path)} leads out of the folder")
        return (
            target.removeprefix(f"{self.root}/")
            if target.startswith(f"{self.root}/")
            else inside[len(str(self.root)) + 1 :]
        )


def open_file(folder: int, name: str, path: str) -> int:
    """Return a descriptor for reading an ordinary file in an open folder.

    Raises:
        OSError: it is missing or something else, a link included.
    """
    before = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(before.st_mode):  # opening a device may do something
        raise PermissionError(f"{_shown(path)} is no ordinary file")
    descriptor = os.open(name, os.O_RDONLY | _NEVER_WAIT, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PermissionError(f"{_shown(path)} is no ordinary file")
    return descriptor


def _read_link(descriptor: int) -> str:
    try:
        return os.readlink("", dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _close_all(descriptors: list[int]) -> None:
    for each in descriptors:
        os.close(each)


def _shown(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:200]}…"


def printable_name(name: str) -> str:
    """Return a name as Unicode; bytes that are not UTF-8 are replaced, and cannot be reached by that name."""
    return os.fsencode(name).decode("utf-8", "replace")
