"""What is in an image: listed by unpacking it, judged by what must not be there, with its bill of materials.

Decides what counts as a shell, a package manager, a foreign or writable path. The engine is trusted.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass, field
from hashlib import sha256

from bascule.sandbox.base import run_and_export
from bascule.sandbox.engine import Engine
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.hardening import CONTEXT_DIR
from bascule.sandbox.sbom import SBOM_FILE, digest_of

BUILD_TIMEOUT_S = 900.0
"""Deadline of one engine call of a build."""

SBOM_LABEL = "bascule.sbom"
"""Label of an image: the digest of its bill of materials."""

_SHELLS = ("sh", "bash", "dash", "busybox", "ash", "zsh", "ksh", "fish")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageContents:
    """What an inspection found in an image; the first five lists should be empty.

    Attributes:
        setuid: files with a setuid or setgid bit.
        shells: files with the name of a shell.
        writable: paths that the guest's user may write by their mode.
        foreign: paths not owned by root.
        package_managers: dpkg, apt, pip and their like.
        executables: everything with an execute bit; what remains is said in the threat model.
        digest: SHA-256 over path, mode and content of everything below /usr and the guest's folder.
        bytes: size of all files.
        files: their number.
    """

    setuid: list[str] = field(default_factory=list[str])
    shells: list[str] = field(default_factory=list[str])
    writable: list[str] = field(default_factory=list[str])
    foreign: list[str] = field(default_factory=list[str])
    package_managers: list[str] = field(default_factory=list[str])
    executables: list[str] = field(default_factory=list[str])
    digest: str = ""
    bytes: int = 0
    files: int = 0


def inspect_contents(tag: str, *, docker_host: str | None = None) -> ImageContents:
    """List what is in an image, by unpacking a container of it that runs nothing but ``pass``."""
    engine = Engine(docker_host=docker_host, timeout_s=BUILD_TIMEOUT_S)
    try:
        exported = run_and_export(engine, tag, ["python3", "-S", "-c", "pass"])
    finally:
        engine.close()
    contents = ImageContents()
    size = files = 0
    digests: list[str] = []
    with tarfile.open(fileobj=exported, mode="r:") as archive:
        for member in archive:
            _judge(member, contents)
            size += member.size
            files += member.isreg()
            if member.name.lstrip("./").startswith(("usr/", f"{CONTEXT_DIR.strip('/')}/")):
                data = archive.extractfile(member) if member.isreg() else None
                content = member.linkname.encode() if data is None else data.read()
                digests.append(f"{member.name}\0{member.mode}\0{sha256(content).hexdigest()}")
    return ImageContents(
        setuid=contents.setuid,
        shells=contents.shells,
        writable=contents.writable,
        foreign=contents.foreign,
        package_managers=contents.package_managers,
        executables=contents.executables,
        digest=sha256("\n".join(sorted(digests)).encode()).hexdigest(),
        bytes=size,
        files=files,
    )


def read_sbom(tag: str, *, docker_host: str | None = None) -> bytes:
    """Return the bill of materials of an image of ours, compared with its label.

    Raises:
        SandboxError: ``image_mismatch``: it has none, or another than the one it was built with; build anew.
    """
    engine = Engine(docker_host=docker_host, timeout_s=BUILD_TIMEOUT_S)
    try:
        found = engine.call_now(engine.api.inspect_image, tag)
        labels: dict[str, str] = found["Config"].get("Labels") or {}
        exported = run_and_export(engine, tag, ["python3", "-S", "-c", "pass"])
    finally:
        engine.close()
    path = f"{CONTEXT_DIR.strip('/')}/{SBOM_FILE}"
    with tarfile.open(fileobj=exported, mode="r:") as archive:
        member = next((each for each in archive if each.name.lstrip("./") == path), None)
        content = None if member is None else archive.extractfile(member)
        sbom = b"" if content is None else content.read()
    if digest_of(sbom) != labels.get(SBOM_LABEL):
        raise SandboxError(
            "image_mismatch",
            f"{tag} does not hold the bill it was built with; run `bascule image build --fresh`",
        )
    return sbom


def _judge(member: tarfile.TarInfo, contents: ImageContents) -> None:
    path = "/" + member.name.removeprefix("./").lstrip("/")  # /.dockerenv keeps its dot
    name = path.rpartition("/")[2]
    if member.issym():
        return
    if member.isreg() and member.mode & 0o6000:
        contents.setuid.append(path)
    if name in _SHELLS:
        contents.shells.append(path)
    if member.mode & 0o002 and not member.ischr():
        contents.writable.append(path)
    if member.uid or member.gid:
        contents.foreign.append(path)
    if name in ("dpkg", "apt", "apt-get", "pip", "pip3", "ensurepip", "apk", "rpm"):
        contents.package_managers.append(path)
    if member.isreg() and member.mode & 0o111:
        contents.executables.append(path)
