"""Opens the isolation that was asked for by name, and never another one."""

from __future__ import annotations

import json
from typing import Literal

from bascule.sandbox.container import ContainerBackend
from bascule.sandbox.context import image_file
from bascule.sandbox.engine import Engine
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.image import ensure_image
from bascule.sandbox.process import ProcessBackend
from bascule.sandbox.sandbox import Backend

Isolation = Literal["container", "process"]


def open_backend(
    isolation: Isolation,
    *,
    docker_host: str | None = None,
    runtime: str | None = None,
    base: str = "auto",
    build: bool = False,
) -> Backend:
    """Open a backend. Blocks: call it outside the event loop, or in a thread.

    Args:
        isolation: ``container`` or ``process`` (weaker: see ``process.WEAKER``).
        docker_host: engine address, None for ``DOCKER_HOST`` and the usual sockets.
        runtime: a runtime the engine knows, None for its default.
        base: where a guest image that must be built starts from.
        build: build the guest image when it is missing, instead of saying so.

    Raises:
        SandboxError: ``engine_unavailable``, ``image_missing``, ``image_build_failed`` or
            ``isolation_unsupported``, each with what to do.
    """
    if isolation == "process":
        if runtime is not None:
            raise SandboxError("isolation_unsupported", "isolation process has no container runtime; drop it")
        return ProcessBackend()
    image = ensure_image(base, docker_host=docker_host, build=build)
    engine = Engine(docker_host=docker_host)
    return ContainerBackend(
        engine, image=image.tag, image_hash=image.hash, seccomp=seccomp_profile(), runtime=runtime
    )


def seccomp_profile() -> str:
    """Return our profile as the engine wants it: JSON text, without our comments."""
    profile = json.loads(image_file("seccomp.json"))
    for rule in profile["syscalls"]:
        rule.pop("comment", None)
    return json.dumps(profile, separators=(",", ":"))
