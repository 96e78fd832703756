"""The guest image: made from the installed packages, named by the hash of all that goes into it.

Decides what an image is called and when it is rebuilt. The engine and the installed distribution are trusted;
whether a running guest really is this image is for the bridge to check (Hello).
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from bascule.sandbox.base import (
    IMAGE_LABEL,
    BaseImage,
    choose_source,
    compile_files,
    find_base,
    make_base,
)
from bascule.sandbox.cache import locked
from bascule.sandbox.context import build_context, context_files, image_file
from bascule.sandbox.engine import Engine
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.hardening import CONTEXT_DIR
from bascule.sandbox.image_contents import BUILD_TIMEOUT_S, SBOM_LABEL
from bascule.sandbox.rootfs import file_entry, pack
from bascule.sandbox.sbom import SBOM_FILE, digest_of, make_sbom
from bascule.sandbox.wheels import Target

__all__ = [
    "GuestImage",
    "build_context",
    "build_image",
    "ensure_image",
    "remove_images",
]

REPOSITORY = "bascule-guest"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestImage:
    """A guest image that the engine has.

    Attributes:
        tag: ``bascule-guest:`` and the first 12 digits of the hash.
        hash: SHA-256 of the build context, the Dockerfile and the base's identity.
        base: what it stands on.
        built: True when this call made it.
    """

    tag: str
    hash: str
    base: BaseImage
    built: bool


def build_image(base: str = "auto", *, docker_host: str | None = None, fresh: bool = False) -> GuestImage:
    """Build the guest image, whether or not the engine has it.

    Args:
        base: ``debian`` (from packages, nothing pulled), an image reference, or ``auto``: Debian where its
            tools are here or can be installed, else the public reference.
        docker_host: engine address, None for the usual ones.
        fresh: make the base anew too, with the newest packages.

    Raises:
        SandboxError: ``engine_unavailable`` or ``image_build_failed``, with what to do.
    """
    engine = Engine(docker_host=docker_host, timeout_s=BUILD_TIMEOUT_S)
    try:
        with locked("image"):
            source = choose_source(base)
            found = None if fresh else find_base(engine, source)
            return _build(engine, found or make_base(engine, source))
    finally:
        engine.close()


def ensure_image(base: str = "auto", *, docker_host: str | None = None, build: bool = True) -> GuestImage:
    """Return the image for the installed packages, building it when missing; one process at a time builds.

    Args:
        build: False only looks.

    Raises:
        SandboxError: ``image_missing`` when not allowed to build; else as ``build_image``.
    """
    engine = Engine(docker_host=docker_host, timeout_s=BUILD_TIMEOUT_S)
    try:
        source = choose_source(base)
        found = _find(engine, source)
        if found is not None:
            return found
        if not build:
            raise SandboxError(
                "image_missing", "the guest image for this installation is missing; run `bascule image build`"
            )
        with locked("image"):
            found = _find(engine, source)  # another process may have built it while this one waited
            if found is not None:
                return found
            return _build(engine, find_base(engine, source) or make_base(engine, source))
    finally:
        engine.close()


def remove_images(*, docker_host: str | None = None, keep: str | None = None) -> list[str]:
    """Remove our images, all or all but one tag and its base; return the names removed.

    Waits for a build under way. What a killed build left goes too; an image that a container uses stays.
    """
    engine = Engine(docker_host=docker_host, timeout_s=BUILD_TIMEOUT_S)
    try:
        with locked("image"):
            stages = {"label": f"{IMAGE_LABEL}=stage"}
            for container in engine.call_now(engine.api.containers, all=True, filters=stages):
                engine.call_now(engine.api.remove_container, str(container["Id"]), force=True, v=True)
            kept = _kept_tags(engine, keep)
            images = engine.call_now(engine.api.images, filters={"label": IMAGE_LABEL})
            names = [name for image in images for name in _names(image) if name not in kept]
            return [name for name in names if _is_removed(engine, name)]
    finally:
        engine.close()


def _names(image: dict[str, Any]) -> list[str]:
    return [str(tag) for tag in image.get("RepoTags") or [image["Id"]]]


def _is_removed(engine: Engine, name: str) -> bool:
    try:
        engine.call_now(engine.api.remove_image, name, force=False)
    except SandboxError as error:
        if error.code in ("engine_failed", "image_missing"):
            return False  # used by a container, or gone with the image that stood on it
        raise
    return True


def _kept_tags(engine: Engine, keep: str | None) -> set[str]:
    if keep is None:
        return set()
    found = engine.call_now(engine.api.inspect_image, keep)
    labels: dict[str, str] = found["Config"].get("Labels") or {}
    return {keep, str(labels.get("bascule.base", ""))}


def _find(engine: Engine, source: str) -> GuestImage | None:
    base = find_base(engine, source)
    if base is None:
        return None
    _, image_hash = context_files(target=_target(base), base=base.identity)
    tag = f"{REPOSITORY}:{image_hash[:12]}"
    try:
        engine.call_now(engine.api.inspect_image, tag)
    except SandboxError as error:
        if error.code == "image_missing":
            return None
        raise
    return GuestImage(tag=tag, hash=image_hash, base=base, built=False)


def _build(engine: Engine, base: BaseImage) -> GuestImage:
    files, image_hash = context_files(target=_target(base), base=base.identity)
    compiled, packages = compile_files(engine, base, files, CONTEXT_DIR)
    files.update(compiled)
    sbom = files[SBOM_FILE] = make_sbom(
        packages, requirements=image_file("requirements.txt"), target=_target(base), image_hash=image_hash
    )
    archive = pack(
        [
            file_entry("Dockerfile", image_file("Dockerfile")),
            *(file_entry(f"context/{path}", content) for path, content in files.items()),
        ]
    )
    tag = f"{REPOSITORY}:{image_hash[:12]}"
    log = engine.call_now(_run_build, engine, archive, tag, base, digest_of(sbom))
    for line in log:
        if "error" in line:
            raise SandboxError("image_build_failed", f"the engine's build failed: {line['error']}")
    return GuestImage(tag=tag, hash=image_hash, base=base, built=True)


def _run_build(
    engine: Engine, archive: bytes, tag: str, base: BaseImage, sbom_digest: str
) -> list[dict[str, Any]]:
    return list(
        engine.api.build(
            fileobj=io.BytesIO(archive),
            custom_context=True,
            tag=tag,
            buildargs={"BASE": base.tag},
            labels={IMAGE_LABEL: "guest", "bascule.base": base.tag, SBOM_LABEL: sbom_digest},
            rm=True,
            forcerm=True,
            decode=True,
            network_mode="none",
        )
    )


def _target(base: BaseImage) -> Target:
    return Target(python=base.python, machine=base.machine)
