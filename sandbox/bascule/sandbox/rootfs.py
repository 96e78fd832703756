"""The base file system: an allow-list over somebody else's, in a fixed order with fixed modes and times.

What is not listed does not exist in the image: no shell, no package manager, no perl, no setuid file, no
documentation. The same rules cut down Debian packages and a public Python image.
"""

from __future__ import annotations

import io
import posixpath
import re
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO

from bascule.sandbox.sbom import CHANGELOG, DOC_LINK, PACKAGES_FILE, STATUS_FILE, packages_file

_KEEP = re.compile(
    r"""
    (usr/(local/)?)?bin/python3(\.\d+)?            # the interpreter, nothing else that can be executed ...
    | (usr/(local/)?)?lib(64)?/ld-linux[^/]*       # ... but the dynamic loader, which it needs
    | (usr/)?lib/[a-z0-9_]+-linux-gnu/[^/]+\.so[^/]*   # shared libraries
    | usr/local/lib/libpython3[^/]*
    | usr/(local/)?lib/python3\.\d+/.+             # the standard library, less _DROP
    | usr/share/zoneinfo/[A-Za-z+_-].*             # zoneinfo
    | etc/ld\.so\.(cache|conf.*)
    | usr/share/bascule/packages\.json             # what it was made from
    | (bin|lib|lib64)                              # symbolic links of a merged /usr
    """,
    re.VERBOSE,
)

_DROP = re.compile(
    r"""
    .*/python3\.\d+/(
        test|tests|idlelib|ensurepip|lib2to3|tkinter|turtledemo|turtle\.py|distutils|pydoc_data|venv
        |site-packages|dist-packages|config-[^/]*|sitecustomize\.py|EXTERNALLY-MANAGED|LICENSE\.txt
    )(/.*)?
    | .*/(lib-dynload/)?(_test[a-z]+|xxlimited[^/]*|_ctypes_test|_tkinter)\.[^/]*so
    | .*\.(a|pyc|pyo|exe|bat)
    | usr/share/zoneinfo/(posix|right)(/.*)?
    """,
    re.VERBOSE,
)
# ctypes, socket and os.memfd_create stay: with them `bascule doctor` proves that the kernel says no. A wall
# that only lacks a ladder on the inside is not a wall.

_PYTHON = re.compile(r"usr/(local/)?lib/python(3\.\d+)/os\.py")
_MACHINE = re.compile(r"(usr/)?lib/([a-z0-9_]+)-linux-gnu/libc\.so\.6")
_EXECUTABLE = re.compile(r".*/(python3(\.\d+)?|ld-linux[^/]*)")

FILE_TIME_S = 1
"""Modification time of everything, in seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rootfs:
    """A filtered file system.

    Attributes:
        tar: uncompressed archive; the same input gives the same bytes.
        python: version of the interpreter in it, ``3.11``.
        machine: processor it is for, ``x86_64``.
    """

    tar: bytes
    python: str
    machine: str


def filter_rootfs(source: IO[bytes], *, compiled: bool = False) -> Rootfs:
    """Return what the guest image may have of a root file system.

    Args:
        source: tar archive, uncompressed, read once.
        compiled: keep ``__pycache__`` (set when the guest's own Python made it).

    Raises:
        ValueError: the archive holds no Python or no C library.
    """
    kept: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    told: dict[str, bytes] = {}
    with tarfile.open(fileobj=source, mode="r:") as archive:
        for member in archive:
            path = posixpath.normpath(member.name.lstrip("/"))
            if member.issym() and DOC_LINK.fullmatch(path):
                told[path] = posixpath.basename(member.linkname).encode()
            if member.isreg() and (path == STATUS_FILE or CHANGELOG.fullmatch(path)):
                content = archive.extractfile(member)
                told[path] = content.read() if content is not None else b""
            if _is_kept(path, compiled=compiled) and not member.isdir():
                entry = _normalised(member, path)
                if entry is not None:
                    content = archive.extractfile(member) if entry.isreg() else None
                    data = content.read() if content is not None else b""
                    entry.size = len(data)
                    kept[path] = (entry, data)
    python = _first(_PYTHON, kept)
    machine = _first(_MACHINE, kept)
    if python is None or machine is None:
        raise ValueError("the base holds no Python 3 with the GNU C library")
    if not compiled and PACKAGES_FILE not in kept:  # a base of ours says already what it was made from
        kept[PACKAGES_FILE] = file_entry(PACKAGES_FILE, packages_file(told))
    return Rootfs(tar=pack(kept.values()), python=python, machine=machine)


def pack(entries: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """Return an uncompressed tar archive: sorted, with every parent folder once and before its contents."""
    sorted_entries = sorted(entries, key=lambda entry: entry[0].name)
    folders = {""}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for entry, data in sorted_entries:
            parents: list[str] = []
            parent = posixpath.dirname(entry.name)
            while parent not in folders:
                folders.add(parent)
                parents.append(parent)
                parent = posixpath.dirname(parent)
            for folder in reversed(parents):
                archive.addfile(_entry(folder, tarfile.DIRTYPE, 0o555))
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def file_entry(path: str, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
    """Return a plain read-only file for ``pack``."""
    entry = _entry(path, tarfile.REGTYPE, 0o444)
    entry.size = len(data)
    return entry, data


def _is_kept(path: str, *, compiled: bool) -> bool:
    if compiled and path.endswith(".pyc"):
        path = path.replace("/__pycache__", "").removesuffix("c")
    return _KEEP.fullmatch(path) is not None and _DROP.fullmatch(path) is None


def _normalised(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
    if member.issym():
        entry = _entry(path, tarfile.SYMTYPE, 0o777)
        entry.linkname = member.linkname
        return entry
    if member.isreg() or member.islnk():
        return _entry(path, tarfile.REGTYPE, 0o555 if _EXECUTABLE.fullmatch(path) else 0o444)
    return None  # devices and sockets have no place in an image


def _entry(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    entry.type = kind
    entry.mode = mode
    entry.mtime = FILE_TIME_S
    return entry


def _first(pattern: re.Pattern[str], paths: Iterable[str]) -> str | None:
    for path in paths:
        match = pattern.fullmatch(path)
        if match is not None:
            return match.group(2)
    return None
