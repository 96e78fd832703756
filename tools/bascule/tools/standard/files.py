"""Files below one folder: list, read, search, and, only where it was asked for, write.

Paths, patterns and texts are hostile; `confined` keeps them inside. Everything is bounded: bytes of one part,
entries, files and bytes a search looks at, its time, and the size of what is written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from bascule.tools.context import ToolContext
from bascule.tools.standard.confined import Confined, printable_name
from bascule.tools.standard.file_search import MAX_FOLDER_ENTRIES, MAX_SEARCH_S, SearchResult, search_below
from bascule.tools.standard.file_writing import Written, describe_change, write_whole
from bascule.tools.tool import AnyTool, tool

MAX_READ_BYTES: Final = 1 << 18
MAX_ENTRIES: Final = 1000

Path = Annotated[str, Field(max_length=1000)]
Kind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a folder; ``modified`` is in UTC."""

    name: str
    kind: Kind
    size_bytes: int
    modified: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Entries of a folder by name; ``next_offset`` is where the next page begins."""

    entries: list[Entry]
    total: int
    next_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """Text of a file from a byte offset on; ``next_offset`` is where the next part begins."""

    text: str
    offset: int
    next_offset: int | None
    size_bytes: int


def tools(
    root: str | os.PathLike[str], *, writable: bool = False, hidden: bool = False, name: str = "files"
) -> list[AnyTool]:
    """Return ``files.list``, ``files.read``, ``files.search`` for a folder, and ``files.write`` if writable.

    Args:
        root: the folder; nothing outside can be reached, whatever links it holds.
        writable: whether files can be made and replaced; never folders, and nothing is ever deleted.
        hidden: whether names that begin with a dot (``.git``, ``.env``) can be reached.
        name: the namespace of the tools.

    Raises:
        OSError: there is no such folder.
    """
    folder = Confined(root, hidden=hidden)

    @tool(name=f"{name}.list", effects="read", parallel_safe=True)
    def list_folder(
        path: Path = "",
        offset: Annotated[int, Field(ge=0)] = 0,
        limit: Annotated[int, Field(ge=1, le=MAX_ENTRIES)] = 200,
    ) -> Listing:
        """List files and folders by name.

        Args:
            path: a folder, relative; empty for the topmost.
            offset: where to begin.
            limit: how many entries.
        """
        return _list(folder, path, offset, limit)

    @tool(name=f"{name}.read", effects="read", parallel_safe=True)
    def read_file(
        path: Path,
        offset: Annotated[int, Field(ge=0)] = 0,
        limit: Annotated[int, Field(ge=1, le=MAX_READ_BYTES)] = 1 << 16,
    ) -> FilePart:
        """Read text of a file, a part at a time.

        Args:
            path: a file, relative.
            offset: the byte to begin at; next_offset of the part before.
            limit: how many bytes at most.
        """
        return _read(folder, path, offset, limit)

    @tool(name=f"{name}.search", effects="read", parallel_safe=True, timeout_s=MAX_SEARCH_S + 10)
    def search_files(
        text: Annotated[str, Field(min_length=1, max_length=200)],
        path: Path = "",
        names: Annotated[str, Field(max_length=100)] = "*",
        ignore_case: bool = True,
    ) -> SearchResult:
        """Find lines that hold a text, in all files below a folder.

        Args:
            text: what to look for, literally.
            path: the folder to begin at; empty for the topmost.
            names: only files with such names, like *.py.
            ignore_case: whether small and capital letters are the same.
        """
        return search_below(folder, path, text, names, ignore_case)

    def show_change(values: Mapping[str, Any], context: ToolContext) -> str:
        return describe_change(folder, values["path"], values["text"])

    @tool(name=f"{name}.write", effects="idempotent", resource=f"{name}:write", preview=show_change)
    def write_file(path: Path, text: str, overwrite: bool = False) -> Written:
        """Make a text file, or replace one whole.

        Args:
            path: the file, relative; its folder must exist.
            text: all of its content, at most 1 MiB.
            overwrite: whether a file that is there already may be replaced.
        """
        return write_whole(folder, path, text, overwrite=overwrite)

    made: list[AnyTool] = [list_folder, read_file, search_files]
    return [*made, write_file] if writable else made


# ------------------------------------------------------------ list and read


def _list(folder: Confined, path: str, offset: int, limit: int) -> Listing:
    descriptor = folder.open_folder(path)
    try:
        names: list[str] = []
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if folder.is_visible(entry.name):
                    names.append(entry.name)
                if len(names) > MAX_FOLDER_ENTRIES:
                    raise ValueError(f"the folder has more than {MAX_FOLDER_ENTRIES} entries")
        names.sort()
        page = [_entry(descriptor, name) for name in names[offset : offset + limit]]
    finally:
        os.close(descriptor)
    end = offset + limit
    return Listing(
        entries=[entry for entry in page if entry is not None],
        total=len(names),
        next_offset=end if end < len(names) else None,
    )


def _entry(descriptor: int, name: str) -> Entry | None:
    try:
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return None  # gone meanwhile
    kind: Kind = "other"
    if stat.S_ISREG(found.st_mode):
        kind = "file"
    elif stat.S_ISDIR(found.st_mode):
        kind = "folder"
    elif stat.S_ISLNK(found.st_mode):
        kind = "link"
    return Entry(
        name=printable_name(name),
        kind=kind,
        size_bytes=found.st_size,
        modified=datetime.fromtimestamp(max(found.st_mtime, 0.0), UTC),
    )


def _read(folder: Confined, path: str, offset: int, limit: int) -> FilePart:
    with open(folder.open(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(offset)
        data = file.read(limit)
    if b"\x00" in data:
        raise ValueError(f"{path:.200} is not text: it holds zero bytes")
    whole = _whole_characters(data) if offset + len(data) < size else data
    text = whole.decode("utf-8", "replace")
    end = offset + len(whole)
    return FilePart(
        text=text.removeprefix("\ufeff") if offset == 0 else text,
        offset=offset,
        next_offset=end if end < size and whole else None,
        size_bytes=size,
    )


def _whole_characters(data: bytes) -> bytes:
    """Cut before a character of UTF-8 that is only begun."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        cut = data[:-back] if needed > back else data
        return cut or data
    return data
