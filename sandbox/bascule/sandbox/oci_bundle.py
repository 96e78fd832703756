"""The guest image unpacked to a folder, made without any engine: same files, same hash, same base.

Lives in the user's cache, is written once per hash and only ever mounted read-only. The base's own Python
compiles it, run by the runtime without network and with no capability but to write there.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from bascule.sandbox import rootfs
from bascule.sandbox.base import (
    base_tag,
    choose_source,
    compile_command,
    debian_tar,
    library_folder,
    public_tar,
)
from bascule.sandbox.cache import cache_dir, locked
from bascule.sandbox.context import context_files, image_file
from bascule.sandbox.engine import Engine
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.hardening import CONTEXT_DIR
from bascule.sandbox.oci_config import MOUNT_POINTS
from bascule.sandbox.oci_rootless import make_rootless, own_id
from bascule.sandbox.oci_runtime import RuntimeProgram
from bascule.sandbox.sbom import PACKAGES_FILE, SBOM_FILE, make_sbom
from bascule.sandbox.wheels import Target

_BUILD_TIMEOUT_S = 900.0
_UNUSED_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """An unpacked image.

    Attributes:
        rootfs: its root folder.
        hash: what its guests say in their Hello; the same as of an engine's image from the same base.
        built: True when this call made it.
    """

    rootfs: Path
    hash: str
    built: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    tar: Path
    identity: str
    target: Target


def bundle_sbom(bundle: Bundle) -> bytes:
    """Return the bill of materials of an unpacked image."""
    return (bundle.rootfs / CONTEXT_DIR.strip("/") / SBOM_FILE).read_bytes()


def ensure_bundle(
    base: str = "auto",
    *,
    runtime: RuntimeProgram,
    docker_host: str | None = None,
    build: bool = True,
    fresh: bool = False,
) -> Bundle:
    """Return the bundle for the installed packages, made when missing; one process at a time makes it.

    Args:
        base: as for an engine's image; a public reference needs an engine to pull it, once.
        runtime: program that runs the steps.
        build: False only looks.
        fresh: make the base anew too, with the newest packages.

    Raises:
        SandboxError: ``image_missing`` when not allowed to build, ``image_build_failed``.
    """
    source = choose_source(base)
    found = _find_base(source)
    bundle = None if found is None else _find(found)
    if bundle is not None and not fresh:
        return bundle
    if not build:
        raise SandboxError(
            "image_missing",
            "the unpacked guest image for this installation is missing; "
            "run `bascule image build --isolation oci`",
        )
    with locked("oci"):
        found = (None if fresh else _find_base(source)) or _make_base(source, runtime, docker_host)
        return _find(found) or _make(found, runtime)


def _folder(source: str) -> Path:
    return cache_dir("oci", base_tag(source).replace(":", "-"))


def _find_base(source: str) -> _Base | None:
    folder = _folder(source)
    try:
        told = json.loads((folder / "base.json").read_text("utf-8"))
    except OSError:
        return None
    target = Target(python=told["python"], machine=told["machine"])
    return _Base(tar=folder / "base.tar", identity=told["identity"], target=target)


def _make_base(source: str, runtime: RuntimeProgram, docker_host: str | None) -> _Base:
    try:
        made = rootfs.filter_rootfs(_source_tar(source, docker_host))
    except ValueError as error:
        raise SandboxError("image_build_failed", f"base {source}: {error}") from error
    with tempfile.TemporaryDirectory(dir=cache_dir("oci")) as temporary:
        root = Path(temporary, "rootfs")
        _unpack(made.tar, root)
        _run_inside(root, compile_command(library_folder(made.python, made.tar)), runtime)
        compiled = rootfs.filter_rootfs(_pack_folder(root), compiled=True)
    folder = _folder(source)
    (folder / "base.tar").write_bytes(compiled.tar)
    told = {"identity": sha256(made.tar).hexdigest(), "python": made.python, "machine": made.machine}
    (folder / "base.json").write_text(json.dumps(told), "utf-8")
    found = _find_base(source)
    assert found is not None
    return found


def _source_tar(source: str, docker_host: str | None) -> io.BytesIO:
    if source == "debian":
        return debian_tar()
    engine = Engine(docker_host=docker_host, timeout_s=_BUILD_TIMEOUT_S)
    try:
        return public_tar(engine, source)
    finally:
        engine.close()


def _find(base: _Base) -> Bundle | None:
    _, image_hash = context_files(target=base.target, base=base.identity)
    root = base.tar.parent / image_hash[:16]
    if not root.is_dir():
        return None
    os.utime(root)  # in use; see _remove_unused
    return Bundle(rootfs=root, hash=image_hash, built=False)


def _remove_unused(folder: Path) -> None:
    """Remove bundles that nobody opened for long; another installation's is not ours to judge earlier."""
    for old in folder.glob("?" * 16):
        if time.time() - old.stat().st_mtime > _UNUSED_S:
            with contextlib.suppress(OSError):
                _open_folders(old)
            shutil.rmtree(old, ignore_errors=True)


def _open_folders(root: Path) -> None:
    """Let the owner of an unpacked image write in its folders, which are read-only for root too."""
    for folder, _, _ in os.walk(root):
        os.chmod(folder, 0o755)


def _make(base: _Base, runtime: RuntimeProgram) -> Bundle:
    files, image_hash = context_files(target=base.target, base=base.identity)
    context = rootfs.pack(
        rootfs.file_entry(f"{CONTEXT_DIR.strip('/')}/{path}", content) for path, content in files.items()
    )
    place = base.tar.parent / image_hash[:16]
    with tempfile.TemporaryDirectory(dir=place.parent) as temporary:
        root = Path(temporary, "rootfs")
        _unpack(base.tar.read_bytes(), root)
        _unpack(context, root)
        packages = (root / PACKAGES_FILE).read_bytes()
        sbom = make_sbom(
            packages, requirements=image_file("requirements.txt"), target=base.target, image_hash=image_hash
        )
        (root / CONTEXT_DIR.strip("/")).chmod(0o755)
        _unpack(rootfs.pack([rootfs.file_entry(f"{CONTEXT_DIR.strip('/')}/{SBOM_FILE}", sbom)]), root)
        _run_inside(root, compile_command(CONTEXT_DIR), runtime)
        for name, mode in MOUNT_POINTS.items():
            (root / name).mkdir(exist_ok=True)
            (root / name).chmod(mode)
        root.rename(place)
    _remove_unused(place.parent)
    return Bundle(rootfs=place, hash=image_hash, built=True)


def _unpack(tar: bytes, root: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as archive:
        archive.extractall(root, filter="fully_trusted")  # made by ``rootfs.pack`` on this machine
    root.chmod(0o755)


def _pack_folder(root: Path) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(root, arcname=".")
    packed.seek(0)
    return packed


def _run_inside(root: Path, command: list[str], runtime: RuntimeProgram) -> None:
    """Run a step of the build in the folder: no network, no capability but to write in it."""
    with tempfile.TemporaryDirectory(prefix="bascule-build-") as temporary:
        config = _build_config(root, command)
        if runtime.users is not None:
            make_rootless(config, own_id())
        Path(temporary, "config.json").write_text(json.dumps(config), "utf-8")
        done = subprocess.run(
            [
                *(runtime.path, "--root", f"{temporary}/state", *runtime.options),
                *("run", "--bundle", temporary, f"build-{os.getpid()}"),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_TIMEOUT_S,
        )
    if done.returncode != 0:
        raise SandboxError(
            "image_build_failed",
            f"{' '.join(command)} by {runtime.path} failed: {done.stderr.strip()[-600:]}",
        )


def _build_config(root: Path, command: list[str]) -> dict[str, Any]:
    capabilities = ["CAP_DAC_OVERRIDE"]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": command,
            "env": ["PATH=/usr/local/bin:/usr/bin:/bin", "PYTHONHASHSEED=0"],
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), capabilities),
            "noNewPrivileges": True,
        },
        "root": {"path": str(root), "readonly": False},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},  # or its nodes would be in the image
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")],
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        },
    }
