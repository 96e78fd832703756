"""The base image: a Python and its libraries, from Debian packages or from a public image.

Decides where the files come from; ``rootfs`` decides which stay. Debian's archive signatures are checked by
mmdebstrap. A public image is trusted as far as its name: give a digest to pin it.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bascule.sandbox import rootfs
from bascule.sandbox.engine import Engine
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.oci_rootless import find_user_map
from bascule.sandbox.sbom import PACKAGES_FILE

DEBIAN_SUITE = "bookworm"

DEBIAN_PACKAGES = ("libpython3-stdlib", "python3-minimal", "tzdata")

PUBLIC_BASE = (
    "docker.io/library/python:3.13-slim-bookworm"
    "@sha256:01f42367a0a94ad4bc17111776fd66e3500c1d87c15bbd6055b7371d39c124fb"
)
"""Used where no Debian packages can be had. `image build --base REF@sha256:...` pins another one."""

IMAGE_LABEL = "bascule.image"
"""On every image we make; its value is ``base`` or ``guest``."""

_REPOSITORY = "bascule-base"
_STEP_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseImage:
    """A base image that the engine has.

    Attributes:
        tag: its name in the engine.
        identity: SHA-256 of its file system before compilation; part of the guest image's hash.
        python: version of its interpreter.
        machine: processor.
    """

    tag: str
    identity: str
    python: str
    machine: str


def base_tag(source: str) -> str:
    """Return the tag under which a base from ``debian`` or an image reference is kept."""
    recipe = "\0".join((source, DEBIAN_SUITE, *DEBIAN_PACKAGES, inspect.getsource(rootfs)))
    return f"{_REPOSITORY}:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def choose_source(base: str) -> str:
    """Return ``debian`` or an image reference for what the user asked (``auto``, ``debian``, a reference)."""
    if base != "auto":
        return base
    return "debian" if _has_debian_tools() else PUBLIC_BASE


def find_base(engine: Engine, source: str) -> BaseImage | None:
    """Return the base made earlier from this source, None when the engine does not have it."""
    tag = base_tag(source)
    try:
        found = engine.call_now(engine.api.inspect_image, tag)
    except SandboxError as error:
        if error.code == "image_missing":
            return None
        raise
    labels: dict[str, str] = found["Config"].get("Labels") or {}
    return BaseImage(
        tag=tag,
        identity=str(labels["bascule.identity"]),
        python=str(labels["bascule.python"]),
        machine=str(labels["bascule.machine"]),
    )


def make_base(engine: Engine, source: str) -> BaseImage:
    """Make the base image, compile its standard library with its own Python, and tag it.

    Raises:
        SandboxError: ``image_build_failed`` names the step and the remedy.
    """
    try:
        made = rootfs.filter_rootfs(debian_tar() if source == "debian" else public_tar(engine, source))
    except ValueError as error:
        raise SandboxError("image_build_failed", f"base {source}: {error}") from error
    identity = hashlib.sha256(made.tar).hexdigest()
    stage = f"bascule-stage:{identity[:12]}"
    _import(engine, made.tar, stage, {IMAGE_LABEL: "stage"})
    try:
        compiled = rootfs.filter_rootfs(
            run_and_export(engine, stage, compile_command(library_folder(made.python, made.tar))),
            compiled=True,
        )
    finally:
        engine.call_now(engine.api.remove_image, stage, force=True)
    tag = base_tag(source)
    labels = {
        IMAGE_LABEL: "base",
        "bascule.identity": identity,
        "bascule.python": made.python,
        "bascule.machine": made.machine,
    }
    _import(engine, compiled.tar, tag, labels)
    return BaseImage(tag=tag, identity=identity, python=made.python, machine=made.machine)


def compile_files(
    engine: Engine, base: BaseImage, files: dict[str, bytes], folder: str
) -> tuple[dict[str, bytes], bytes]:
    """Compile Python files with the base's own interpreter; return the ``.pyc`` files, and ``PACKAGES_FILE``.

    Args:
        files: path below ``folder`` to content.
        folder: absolute path the files will have in the image; it is compiled into tracebacks.
    """
    archive = rootfs.pack(rootfs.file_entry(f"{folder.strip('/')}/{path}", files[path]) for path in files)
    exported = run_and_export(engine, base.tag, compile_command(folder), archive)
    compiled: dict[str, bytes] = {}
    packages = b"[]"
    with tarfile.open(fileobj=exported, mode="r:") as found:
        for member in found:
            path = "/" + member.name.lstrip("./")
            if path.startswith(f"{folder}/") and path.endswith(".pyc"):
                content = found.extractfile(member)
                assert content is not None
                compiled[path.removeprefix(f"{folder}/")] = content.read()
            elif path == f"/{PACKAGES_FILE}":
                content = found.extractfile(member)
                assert content is not None
                packages = content.read()
    return compiled, packages


def run_and_export(
    engine: Engine, image: str, command: list[str], archive: bytes | None = None
) -> io.BytesIO:
    """Run a command in a throw-away container without network; return its file system as tar."""
    api = engine.api
    settings: dict[str, object] = {
        "Image": image,
        "Entrypoint": [],
        "Cmd": command,
        "Env": ["PYTHONHASHSEED=0", "PATH=/usr/local/bin:/usr/bin:/bin"],
        "NetworkDisabled": True,
        "HostConfig": {
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "CapAdd": ["DAC_OVERRIDE"],
            # podman's own are more than a confined root may set
            "Ulimits": [{"Name": name, "Soft": 4096, "Hard": 4096} for name in ("nofile", "nproc")],
        },
        "Labels": {IMAGE_LABEL: "stage"},
    }
    container = str(engine.call_now(api.create_container_from_config, settings)["Id"])
    try:
        if archive is not None:
            engine.call_now(api.put_archive, container, "/", archive)
        engine.call_now(api.start, container)
        status = engine.call_now(api.wait, container, timeout=_STEP_TIMEOUT_S)["StatusCode"]
        if status != 0:
            log = engine.call_now(api.logs, container, tail=20).decode("utf-8", "replace")
            raise SandboxError("image_build_failed", f"{' '.join(command)} in {image} failed: {log[-600:]}")
        return io.BytesIO(b"".join(engine.call_now(api.export, container)))
    finally:
        engine.call_now(api.remove_container, container, force=True, v=True)


def compile_command(folder: str) -> list[str]:
    """Return what compiles a folder of the base with the base's own Python."""
    # unchecked-hash: no time stamps, so equal builds are equal and nothing is looked up at start.
    return ["python3", "-S", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", folder]


def library_folder(python: str, tar: bytes) -> str:
    """Return where the base keeps its standard library."""
    local = f"usr/local/lib/python{python}/os.py".encode() in tar
    return f"/usr/local/lib/python{python}" if local else f"/usr/lib/python{python}"


def _import(engine: Engine, tar: bytes, tag: str, labels: dict[str, str]) -> None:
    repository, _, version = tag.partition(":")
    changes = [f"LABEL {name}={value}" for name, value in labels.items()]
    told = engine.call_now(
        engine.api.import_image_from_data, tar, repository=repository, tag=version, changes=changes
    )
    try:
        engine.call_now(engine.api.inspect_image, tag)
    except SandboxError as error:
        if error.code != "image_missing":
            raise
        # podman before 5 takes the image and not its name; its answer ends with the image's id.
        image = str(json.loads(told.strip().splitlines()[-1])["status"])
        engine.call_now(engine.api.tag, image, repository, version)


def _has_debian_tools() -> bool:
    return shutil.which("mmdebstrap") is not None or (
        os.geteuid() == 0 and shutil.which("apt-get") is not None
    )


def debian_tar() -> io.BytesIO:
    """Return a root file system made from Debian packages."""
    if shutil.which("mmdebstrap") is None:
        _install_mmdebstrap()
    with tempfile.TemporaryDirectory(prefix="bascule-base-") as folder:
        tar = Path(folder, "base.tar")
        _run(
            [
                *(*_mmdebstrap(), "--quiet", "--variant=extract", "--format=tar"),
                *("--include=" + ",".join(DEBIAN_PACKAGES), DEBIAN_SUITE, str(tar)),
            ],
            remedy="check that Debian's package archive can be reached, or name another base with --base",
        )
        return io.BytesIO(tar.read_bytes())


def _mmdebstrap() -> list[str]:
    """Return the program, for an unprivileged user without subordinate ids as root of a namespace."""
    if os.geteuid() == 0 or find_user_map().has_nobody:
        return ["mmdebstrap"]
    # That root has one id: apt cannot become its own user there.
    return ["unshare", "--map-root-user", "mmdebstrap", "--mode=root", '--aptopt=APT::Sandbox::User "root"']


def _install_mmdebstrap() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SandboxError(
            "image_build_failed", "base debian needs mmdebstrap; run `apt-get install mmdebstrap` as root"
        )
    remedy = "run `apt-get update && apt-get install mmdebstrap` and look at what it says"
    _run(["apt-get", "update", "-q"], remedy=remedy)
    _run(
        [
            *("apt-get", "install", "-q", "-y", "--no-install-recommends"),
            *("mmdebstrap", "debian-archive-keyring"),
        ],
        remedy=remedy,
    )


def _run(command: list[str], *, remedy: str) -> None:
    done = subprocess.run(
        command,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "SOURCE_DATE_EPOCH": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=_STEP_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise SandboxError(
            "image_build_failed",
            f"`{' '.join(command[:2])}` failed ({done.returncode}); {remedy}: {done.stderr.strip()[-600:]}",
        )


def public_tar(engine: Engine, reference: str) -> io.BytesIO:
    """Return the file system of an image that the engine has or can pull."""
    try:
        engine.call_now(engine.api.inspect_image, reference)
    except SandboxError:
        try:
            engine.call_now(engine.api.pull, reference)
        except SandboxError as error:
            raise SandboxError(
                "image_build_failed",
                f"base image {reference} is not here and cannot be pulled ({error}); on Debian or Ubuntu use "
                "`bascule image build --base debian`",
            ) from error
    return run_and_export(engine, reference, ["python3", "-S", "-c", "pass"])
