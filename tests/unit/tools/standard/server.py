"""A PostgreSQL server for tests: started as a user of its own, in a folder of its own, without a port."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_INSTALLED = "/usr/lib/postgresql/*/bin"
_START_S = 60


def find_binaries() -> Path:
    """Return the folder of initdb and postgres, installing Debian's package as root, or skip and say why."""
    found = _find()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update"], ["install", "-y", "--no-install-recommends", "postgresql"]):
            subprocess.run(["apt-get", "-qq", *arguments], env=environment, capture_output=True, check=False)
        found = _find()
    if found is None:
        pytest.skip("there is no PostgreSQL server on this machine and it cannot be installed")
    return found


def _find() -> Path | None:
    folders = sorted(glob.glob(_INSTALLED), reverse=True)
    which = shutil.which("initdb")
    if which is not None:
        folders.append(os.path.dirname(which))
    for folder in folders:
        if all(os.access(os.path.join(folder, name), os.X_OK) for name in ("initdb", "postgres")):
            return Path(folder)
    return None


@contextmanager
def running_server() -> Generator[str]:
    """Give the address of a fresh server for its superuser."""
    binaries = find_binaries()
    folder = Path(tempfile.mkdtemp(prefix="bascule-pg-"))
    owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    user = owner.pw_uid if os.geteuid() == 0 else None
    group = owner.pw_gid if os.geteuid() == 0 else None
    data = folder / "data"
    process: subprocess.Popen[Any] | None = None
    try:
        as_owner: dict[str, Any] = {"user": user, "group": group, "cwd": folder}
        if user is not None:
            as_owner["extra_groups"] = []
        make = ["-A", "trust", "-U", "admin", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run([binaries / "initdb", "-D", data, *make], check=True, capture_output=True, **as_owner)
        settings = ["-c", "listen_addresses=", "-c", "fsync=off"]
        started: subprocess.Popen[Any] = subprocess.Popen(
            [binaries / "postgres", "-D", data, "-k", folder, *settings],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **as_owner,
        )
        address = f"postgresql://admin@/postgres?host={folder}"
        process = started
        _wait_for(address, started)
        yield address
    finally:
        if process is not None:
            process.terminate()
            process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(address: str, process: subprocess.Popen[Any]) -> None:
    import psycopg

    until = time.monotonic() + _START_S
    while True:
        try:
            psycopg.connect(address, connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.1)  # it tells nobody when it is ready
