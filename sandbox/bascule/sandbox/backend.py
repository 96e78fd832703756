"""Opens the isolation that was asked for by name, and never another one."""

from __future__ import annotations

import logging
import os
from typing import Literal

from bascule.sandbox.container import ContainerBackend
from bascule.sandbox.engine import Engine
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.image import ensure_image
from bascule.sandbox.oci import OciBackend
from bascule.sandbox.oci_bundle import Bundle, ensure_bundle
from bascule.sandbox.oci_runtime import RuntimeProgram, find_runtime
from bascule.sandbox.process import ProcessBackend
from bascule.sandbox.sandbox import Backend
from bascule.sandbox.seccomp import seccomp_profile
from bascule.sandbox.ungrouped import engine_differences, must_be_alone

_log = logging.getLogger("bascule.sandbox")

Isolation = Literal["container", "oci", "process"]


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
        isolation: ``container``, ``oci`` (runc or crun directly; weaker for a user who is not root, and says
            so), or ``process`` (weaker: see ``process.WEAKER``).
        docker_host: engine address, None for ``DOCKER_HOST`` and the usual sockets.
        runtime: a runtime the engine knows, or with ``oci`` runc or crun; None for the default.
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
    if isolation == "oci":
        program = find_runtime(runtime)
        if program.users is not None:
            for difference in program.users.differences().values():
                _log.warning("isolation oci: %s", difference)
        bundle = ensure_bundle(base, runtime=_builder(program), docker_host=docker_host, build=build)
        seccomp = seccomp_profile(channel=program.passes_sockets, alone=program.users is not None)
        return OciBackend(bundle, seccomp=seccomp, runtime=program)
    image = ensure_image(base, docker_host=docker_host, build=build)
    engine = Engine(docker_host=docker_host)
    try:
        check_runtime(engine, runtime)
        is_podman_here(engine)
        info = engine.info()
    except SandboxError:
        engine.close()
        raise
    for difference in engine_differences(info.cannot_limit).values():
        _log.warning("isolation container: %s", difference)
    alone = must_be_alone(info.cannot_limit)
    return ContainerBackend(
        engine,
        image=image.tag,
        image_hash=image.hash,
        seccomp=seccomp_profile(alone=alone),
        channel_seccomp=seccomp_profile(channel=True) if may_use_channel(engine, runtime) else None,
        runtime=runtime,
        podman=info.is_podman,
        cannot_limit=info.cannot_limit,
    )


def is_podman_here(engine: Engine) -> bool:
    """Whether the engine is podman, which takes system-call filters as paths only.

    Raises:
        SandboxError: ``isolation_unsupported``: it does, and is on another machine.
    """
    if not engine.info().is_podman:
        return False
    if not engine.local:
        raise SandboxError(
            "isolation_unsupported",
            f"podman at {engine.host} takes system-call filters from its own machine's files only; "
            "run bascule on that machine, or use Docker Engine there",
        )
    return True


def build_bundle(base: str = "auto", *, docker_host: str | None = None, fresh: bool = False) -> Bundle:
    """Unpack the guest image for isolation ``oci``, if it is not there yet.

    Raises:
        SandboxError: ``isolation_unsupported`` or ``image_build_failed``, with what to do.
    """
    return ensure_bundle(base, runtime=find_runtime(), docker_host=docker_host, fresh=fresh)


def _builder(program: RuntimeProgram) -> RuntimeProgram:
    """Return the program that runs the steps of a build: gVisor would be slow at it, and gains nothing."""
    return program if program.name != "runsc" else find_runtime()


def check_runtime(engine: Engine, runtime: str | None) -> None:
    """Refuse a runtime that the engine does not have, or would not use.

    Raises:
        SandboxError: ``isolation_unsupported`` with those it has.
    """
    info = engine.info()
    if info.is_podman and runtime not in (None, info.default_runtime):
        # Its API takes the name of any runtime, one that is not installed too, and runs its own.
        raise SandboxError(
            "isolation_unsupported",
            f"podman at {engine.host} runs every container with {info.default_runtime}, whatever it is asked "
            f"for; start its service with `podman --runtime {runtime} system service`",
        )
    if runtime is None or runtime.startswith("io.containerd."):
        return  # the second is a path of its own that newer engines take without configuration
    known = info.runtimes
    if runtime not in known:
        raise SandboxError(
            "isolation_unsupported",
            f"the engine at {engine.host} has no runtime {runtime!r}, only {', '.join(known)}; "
            "install it and add it to the engine's configuration (dockerd: `runtimes` in daemon.json)",
        )


def may_use_channel(engine: Engine, runtime: str | None) -> bool:
    """Whether guests may meet this host at a unix socket: same kernel, a runtime that passes it on.

    Attached streams do everywhere else. Labels of SELinux would forbid the socket, gVisor needs an option of
    the engine's configuration for it, and without control groups nobody could tell who connects.
    """
    if not engine.local or runtime not in (None, "runc", "crun"):
        return False
    info = engine.info()
    default = runtime or info.default_runtime
    native = default in ("runc", "crun") and "name=selinux" not in info.security_options
    native = native and not must_be_alone(info.cannot_limit)
    return native and info.kernel == os.uname().release
