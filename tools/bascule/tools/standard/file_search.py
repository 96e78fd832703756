"""Searching the files below a folder for a text: bounded in files, bytes, time and matches.

The text is looked for literally; there is no pattern that could take long. Links are not followed.
"""

from __future__ import annotations

import fnmatch
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bascule.tools.standard.confined import Confined, open_file, printable_name

MAX_FOLDER_ENTRIES: Final = 100_000
MAX_SEARCHED_FILES: Final = 10_000
MAX_SEARCHED_BYTES: Final = 64 << 20
MAX_FILE_SEARCHED_BYTES: Final = 8 << 20
MAX_SEARCH_S: Final = 20.0
MAX_DEPTH: Final = 20
MAX_MATCHES: Final = 200
MAX_LINE_CHARS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One line that holds what was searched for."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Matches, and why some may be missing (empty when everything was looked at)."""

    matches: list[Found]
    files_searched: int
    incomplete: str


def search_below(folder: Confined, path: str, text: str, names: str, ignore_case: bool) -> SearchResult:
    """Return the lines below a folder that hold a text."""
    wanted = text.casefold() if ignore_case else text
    until = time.monotonic() + MAX_SEARCH_S
    matches: list[Found] = []
    files = read_bytes = passed_over = 0
    incomplete = ""
    for place, data in _walk(folder, path, names):
        if data is None:
            passed_over += 1
            continue
        files += 1
        read_bytes += len(data)
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
            if wanted in (line.casefold() if ignore_case else line):
                matches.append(Found(path=place, line=number, text=_around(line, text)))
                if len(matches) == MAX_MATCHES:
                    break
        if len(matches) == MAX_MATCHES:
            incomplete = f"stopped at {MAX_MATCHES} matches"
        elif files == MAX_SEARCHED_FILES or read_bytes >= MAX_SEARCHED_BYTES:
            incomplete = f"stopped after {files} files and {read_bytes} bytes; name a folder further down"
        elif time.monotonic() > until:
            incomplete = f"stopped after {MAX_SEARCH_S:g} s; name a folder further down"
        if incomplete:
            break
    if passed_over and not incomplete:
        incomplete = f"{passed_over} files are too large or not text and were passed over"
    return SearchResult(matches=matches, files_searched=files, incomplete=incomplete)


def _walk(folder: Confined, path: str, names: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield files below a folder with their content, or None where it is not searched."""
    waiting: list[tuple[str, int]] = [
        ("/".join(step for step in path.split("/") if step not in ("", ".")), 0)
    ]
    while waiting:
        place, depth = waiting.pop()
        try:
            descriptor = folder.open_folder(place)
        except OSError:
            if depth == 0:
                raise
            continue  # gone meanwhile, or not ours to read
        try:
            with os.scandir(descriptor) as scanned:
                entries = sorted(
                    (each.name for each in scanned if folder.is_visible(each.name)), reverse=True
                )
            below: list[tuple[str, int]] = []
            for name in entries[:MAX_FOLDER_ENTRIES]:
                inside = f"{place}/{name}" if place else name
                mode = _mode_of(descriptor, name)
                if stat.S_ISDIR(mode) and depth < MAX_DEPTH:
                    below.append((inside, depth + 1))
                elif stat.S_ISREG(mode) and fnmatch.fnmatchcase(name, names):
                    yield printable_name(inside), _content(descriptor, name)
            waiting += below
        finally:
            os.close(descriptor)


def _mode_of(descriptor: int, name: str) -> int:
    try:
        return os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
    except OSError:
        return 0


def _content(descriptor: int, name: str) -> bytes | None:
    try:
        with open(open_file(descriptor, name, name), "rb") as file:
            data = file.read(MAX_FILE_SEARCHED_BYTES + 1)
    except OSError:
        return None
    return None if len(data) > MAX_FILE_SEARCHED_BYTES or b"\x00" in data else data


def _around(line: str, text: str) -> str:
    """Return a line, or the part of a long one around what was found."""
    if len(line) <= MAX_LINE_CHARS:
        return line.rstrip("\r")
    at = max(line.casefold().find(text.casefold()), 0)
    start = max(at - MAX_LINE_CHARS // 3, 0)
    return f"{'…' if start else ''}{line[start : start + MAX_LINE_CHARS]}…"
