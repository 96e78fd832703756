"""The base's allow-list: what is not listed is not in the image, and the bytes repeat."""

from __future__ import annotations

import io
import tarfile

import pytest

from bascule.sandbox.rootfs import filter_rootfs
from bascule.sandbox.sbom import PACKAGES_FILE

KEPT = {
    "usr/bin/python3.11": b"elf",
    "usr/lib/python3.11/os.py": b"import sys",
    "usr/lib/python3.11/json/__init__.py": b"",
    "usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so": b"elf",
    "usr/share/zoneinfo/Europe/Berlin": b"TZif",
    "lib/x86_64-linux-gnu/libc.so.6": b"elf",
    "lib64/ld-linux-x86-64.so.2": b"elf",
}
DROPPED = {
    "bin/sh": b"elf",
    "bin/bash": b"elf",
    "usr/bin/dpkg": b"elf",
    "usr/bin/perl": b"elf",
    "usr/bin/python3.11-config": b"#!/bin/sh",
    "usr/bin/passwd": b"elf",
    "etc/passwd": b"root",
    "usr/lib/python3.11/ensurepip/__init__.py": b"",
    "usr/lib/python3.11/test/test_os.py": b"",
    "usr/lib/python3.11/site-packages/evil.pth": b"",
    "usr/lib/python3.11/__pycache__/os.cpython-311.pyc": b"code",
    "usr/lib/python3/dist-packages/apt.py": b"",
    "usr/lib/x86_64-linux-gnu/perl-base/Config.pm": b"",
    "usr/share/doc/libc6/copyright": b"",
    "usr/share/zoneinfo/right/Europe/Berlin": b"TZif",
    "../../etc/cron.d/x": b"",
}


def archive(files: dict[str, bytes], *, mode: int = 0o6777, mtime: int = 12345) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"./{path}")
            entry.size, entry.mode, entry.mtime, entry.uid, entry.gid = len(data), mode, mtime, 1000, 1000
            tar.addfile(entry, io.BytesIO(data))
    packed.seek(0)
    return packed


def members(tar: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        return opened.getmembers()


def test_only_what_is_listed_stays() -> None:
    made = filter_rootfs(archive({**DROPPED, **KEPT}))
    assert {member.name for member in members(made.tar) if member.isfile()} == {*KEPT, PACKAGES_FILE}
    assert (made.python, made.machine) == ("3.11", "x86_64")


def test_nothing_is_writable_setuid_or_owned_by_anybody_but_root() -> None:
    for member in members(filter_rootfs(archive(KEPT)).tar):
        assert member.mode & 0o7222 == 0, member.name
        assert (member.uid, member.gid) == (0, 0)


def test_equal_contents_give_equal_bytes_whatever_the_order_and_times() -> None:
    first = filter_rootfs(archive(KEPT, mtime=1))
    second = filter_rootfs(archive(dict(reversed(KEPT.items())), mtime=2, mode=0o644))
    assert first == second


def test_compiled_files_stay_only_when_they_are_ours() -> None:
    files = {**KEPT, "usr/lib/python3.11/__pycache__/os.cpython-311.pyc": b"code"}
    names = {member.name for member in members(filter_rootfs(archive(files), compiled=True).tar)}
    assert "usr/lib/python3.11/__pycache__/os.cpython-311.pyc" in names


def test_devices_and_links_to_dropped_files_carry_nothing() -> None:
    packed = archive(KEPT)
    packed.seek(0)
    with tarfile.open(fileobj=packed, mode="a") as tar:
        device = tarfile.TarInfo("usr/lib/python3.11/null")
        device.type = tarfile.CHRTYPE
        tar.addfile(device)
    packed.seek(0)
    assert all(member.isfile() or member.isdir() for member in members(filter_rootfs(packed).tar))


def test_a_base_without_python_is_refused() -> None:
    with pytest.raises(ValueError, match="no Python"):
        filter_rootfs(archive({"lib/x86_64-linux-gnu/libc.so.6": b"elf"}))
