"""The guest's two dependencies, as the bytes of pinned wheels for one Python.

Trusts nothing but the hashes in ``images/guest/requirements.txt``: pip checks them when it downloads, this
module checks them again whenever it unpacks.
"""

from __future__ import annotations

import hashlib
import importlib.util
import platform
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from bascule.sandbox.cache import cache_dir, locked
from bascule.sandbox.errors import SandboxError

_KEPT_SUFFIXES = (".py", ".so")

_DOWNLOAD_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The Python that will import the packages.

    Attributes:
        python: ``3.11``.
        machine: as the kernel names it, ``x86_64`` or ``aarch64``.
        native: it is this very interpreter; pip then picks by itself.
    """

    python: str
    machine: str
    native: bool = False


def native_target() -> Target:
    """Return the interpreter that runs this."""
    return Target(
        python=f"{sys.version_info[0]}.{sys.version_info[1]}", machine=platform.machine(), native=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One pinned wheel: distribution, version, and the hash that was checked."""

    name: str
    version: str
    sha256: str


def pinned_wheels(requirements: bytes, target: Target) -> list[Wheel]:
    """Return what is pinned for one Python.

    Raises:
        SandboxError: as ``dependency_files``.
    """
    found: list[Wheel] = []
    for path in _wheels(requirements, target):
        name, version = path.name.split("-")[:2]
        found.append(Wheel(name=name, version=version, sha256=hashlib.sha256(path.read_bytes()).hexdigest()))
    return found


def dependency_files(requirements: bytes, target: Target) -> dict[str, bytes]:
    """Return path and content of every module in the pinned wheels.

    Raises:
        SandboxError: ``image_build_failed``: pip is missing, the index cannot be reached, or a hash differs.
    """
    files: dict[str, bytes] = {}
    for wheel in _wheels(requirements, target):
        content = wheel.read_bytes()
        if hashlib.sha256(content).hexdigest().encode() not in requirements:
            raise SandboxError(
                "image_build_failed", f"{wheel} is not a pinned wheel; delete that folder and build again"
            )
        with zipfile.ZipFile(wheel) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith(_KEPT_SUFFIXES) and ".dist-info/" not in name:
                    files[name] = archive.read(name)
    return files


def _wheels(requirements: bytes, target: Target) -> list[Path]:
    key = hashlib.sha256(
        b"\0".join((requirements, target.python.encode(), target.machine.encode(), sys.platform.encode()))
    ).hexdigest()
    folder = cache_dir("wheels") / key[:16]
    if not folder.exists():
        with locked("wheels"):
            if not folder.exists():
                _download(requirements, target, folder)
    return sorted(folder.glob("*.whl"))


def _download(requirements: bytes, target: Target, folder: Path) -> None:
    if importlib.util.find_spec("pip") is None:
        raise SandboxError(
            "image_build_failed", f"{sys.executable} has no pip; run `{sys.executable} -m ensurepip`"
        )
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        pins = Path(temporary, "requirements.txt")
        pins.write_bytes(requirements)
        wheels = Path(temporary, "wheels")
        command = [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"),
            *("--require-hashes", "--only-binary=:all:", "--dest", str(wheels), "-r", str(pins)),
            *_platform_options(target),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_DOWNLOAD_TIMEOUT_S
        )
        if done.returncode != 0:
            raise SandboxError(
                "image_build_failed",
                "pip could not fetch the guest's pinned packages; check the package index and try again: "
                + done.stderr.strip()[-600:],
            )
        wheels.rename(folder)


def _platform_options(target: Target) -> list[str]:
    if target.native:
        return []
    abi = "cp" + target.python.replace(".", "")
    options = ["--python-version", target.python, "--implementation", "cp"]
    for name in (abi, "abi3", "none"):
        options += ["--abi", name]
    for glibc in ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_35"):
        options += ["--platform", f"{glibc}_{target.machine}"]
    return options
