"""Engines of a test's own beside the machine's: in a folder and namespaces of their own, then stopped."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import docker

from bascule.sandbox import GuestImage, SandboxError, find_engine

USER = 54_321
FIRST_ID = 300_000
_START_S, _STOP_S = 90.0, 60.0
_PAUSE_S = 0.2

_REMAPPED = "scripts"


def rootless_program() -> str | None:
    """Return Docker's script for rootless engines; None where it or what it needs is missing."""
    found = shutil.which("dockerd-rootless.sh", path=f"{os.environ['PATH']}:/usr/share/docker.io/contrib")
    return found if shutil.which("rootlesskit") and shutil.which("newuidmap") else None


@contextlib.contextmanager
def remapped_engine(image: GuestImage) -> Generator[str]:
    """Give the address of an engine that maps every container's ids to ids without rights.

    It was told of Kata, which is not there.
    """
    with _folder() as folder:
        command = [
            *("unshare", "--net", "--", "dockerd", "--host", f"unix://{folder}/docker.sock"),
            *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"),
            *("--pidfile", f"{folder}/dockerd.pid", "--bridge", "none", "--iptables=false"),
            *("--userns-remap", _REMAPPED, "--add-runtime", "kata=/nowhere/kata-runtime"),
        ]
        with _started(command, folder, f"unix://{folder}/docker.sock", user=0) as host:
            copy_image(image, host)
            yield host


@contextlib.contextmanager
def rootless_engine(image: GuestImage) -> Generator[str]:
    """Give the address of an engine that an ordinary user started."""
    program = rootless_program()
    assert program is not None
    with _folder() as folder:
        os.chown(folder, USER, USER)
        command = [
            *("env", f"HOME={folder}", f"XDG_RUNTIME_DIR={folder}"),
            *("DOCKERD_ROOTLESS_ROOTLESSKIT_NET=host", "DOCKERD_ROOTLESS_ROOTLESSKIT_PORT_DRIVER=none"),
            *(
                "sh",
                program,
                "--host",
                f"unix://{folder}/docker.sock",
                "--bridge",
                "none",
                "--iptables=false",
            ),
        ]
        with _started(command, folder, f"unix://{folder}/docker.sock", user=USER) as host:
            copy_image(image, host)
            yield host


@contextlib.contextmanager
def podman_service(runtime: str) -> Generator[str]:
    """Give the address of a podman service with this runtime; its things are in a folder of its own."""
    with _folder() as folder:
        command = [
            *(
                "podman",
                "--root",
                f"{folder}/root",
                "--runroot",
                f"{folder}/run",
                "--tmpdir",
                f"{folder}/tmp",
            ),
            *("--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file"),
            *("--runtime", runtime, "system", "service", "--time", "0", f"unix://{folder}/podman.sock"),
        ]
        with _started(command, folder, f"unix://{folder}/podman.sock", user=0) as host:
            yield host


def copy_image(image: GuestImage, host: str) -> None:
    """Give an engine the machine's guest image, and the base that it names."""
    here: Any = docker.APIClient(timeout=300)
    there: Any = docker.APIClient(base_url=host, timeout=300)
    with tempfile.TemporaryFile() as file:
        for tag in (image.base.tag, image.tag):
            file.seek(0)
            file.truncate()
            for piece in here.get_image(tag):
                file.write(piece)
            file.seek(0)
            there.load_image(file)
    here.close()
    there.close()


@contextlib.contextmanager
def _folder() -> Generator[Path]:
    # Not pytest's own: other users may not enter that, and sockets' paths are short.
    folder = Path(tempfile.mkdtemp(prefix="bascule-test-engine-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _started(command: list[str], folder: Path, host: str, *, user: int) -> Generator[str]:
    tables = {
        "/etc/passwd": f"{_REMAPPED}:x:{USER}:{USER}::{folder}:/usr/sbin/nologin\n",
        "/etc/group": f"{_REMAPPED}:x:{USER}:\n",
    } | dict.fromkeys(("/etc/subuid", "/etc/subgid"), f"{_REMAPPED}:{FIRST_ID}:65536\n")
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, str(Path(__file__).with_name("unprivileged.py"))),
                *(str(user), "/usr", json.dumps(tables), *command),
            ],
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_for(host, process, log)
        yield host
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(host: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + _START_S
    while True:
        with contextlib.suppress(SandboxError):
            find_engine(host)
            return
        assert process.poll() is None, log.read_text("utf-8", "replace")[-2000:]
        assert time.monotonic() < until_s, log.read_text("utf-8", "replace")[-2000:]
        time.sleep(_PAUSE_S)
