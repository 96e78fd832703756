"""``bascule doctor``: whether scripts can run here, and what stands between them and this machine."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bascule.cli.exits import Exit
from bascule.cli.host_flags import DockerHostFlag

if TYPE_CHECKING:
    from bascule.sandbox import Isolation

_Look = Literal["container", "oci", "process", "all"]


def doctor(
    docker_host: DockerHostFlag = None,
    runtime: Annotated[
        str | None, typer.Option("--runtime", help="Try this runtime only; else all that are found.")
    ] = None,
    isolation: Annotated[
        _Look, typer.Option("--isolation", help="What to look at: container, oci, process, or all.")
    ] = "container",
) -> None:
    """Look at engine, runtimes and image, and try every wall in a real sandbox with each runtime."""
    from importlib.metadata import version

    print(f"bascule    {version('bascule')}, Python {platform.python_version()}, {platform.platform()}")
    sound: list[bool] = []
    if isolation in ("container", "all"):
        sound += _look_at_engine(docker_host, runtime)
    if isolation in ("oci", "all"):
        sound += _look_at_runtimes(runtime)
    if isolation in ("process", "all"):
        _try_walls("process", None, None)  # told, not judged: it promises what the kernel allows
    if not all(sound):
        raise typer.Exit(Exit.FAILED)


def _look_at_engine(docker_host: str | None, runtime: str | None) -> list[bool]:
    from bascule.sandbox import (
        describe_differences,
        describe_machines,
        find_engine,
        unused_runtimes,
        usable_runtimes,
    )

    engine = find_engine(docker_host)
    print(f"engine     {engine.name} {engine.version} (API {engine.api_version}) at {engine.host}")
    print(f"system     {engine.operating_system}, kernel {engine.kernel}, cgroups {engine.cgroup_version}")
    for sentence in (*describe_differences(engine), *unused_runtimes(engine), *describe_machines(engine)):
        print(f"note       {sentence}")
    runtimes = usable_runtimes(engine)
    print(f"runtimes   {', '.join(runtimes)}; {engine.default_runtime} is the default")
    tried = runtimes if runtime is None else [runtime]
    return [_try_walls("container", each, docker_host, named=runtime is not None) for each in tried]


def _look_at_runtimes(runtime: str | None) -> list[bool]:
    from bascule.sandbox import installed_runtimes

    found = installed_runtimes()
    print(f"installed  {', '.join(found) or 'no runtime'} (isolation oci, without an engine)")
    tried = found if runtime is None else [runtime]
    return [_try_walls("oci", each, None, named=runtime is not None) for each in tried]


def _try_walls(
    isolation: Isolation, runtime: str | None, docker_host: str | None, *, named: bool = False
) -> bool:
    """Print what holds; return whether all does that should.

    Args:
        named: somebody asked for this runtime, and so is not well served when it cannot be used.
    """
    import asyncio

    from bascule.bridge.display import show
    from bascule.sandbox import SandboxError, open_backend
    from bascule.sandbox.selfcheck import Check, check_sandbox

    async def look() -> tuple[str, int, list[Check]]:
        backend = await asyncio.to_thread(open_backend, isolation, docker_host=docker_host, runtime=runtime)
        try:
            return backend.image_hash, await backend.sweep(), await check_sandbox(backend)
        finally:
            await backend.close()

    print(f"\n{isolation}{'' if runtime is None else ' with ' + runtime}")
    try:
        image, swept, checks = asyncio.run(look())
    except SandboxError as error:
        if runtime is None or error.code in ("engine_unavailable", "image_missing"):
            raise
        print(f"unusable   {show(error.message, max_chars=300)}")
        return not named  # nobody runs anything behind walls that cannot be built
    print(f"image      {image[:12]}; {swept} orphans removed")
    known = _known_differences(isolation, runtime, docker_host)
    for check in checks:
        word, detail = ("holds", "") if check.holds else ("BROKEN", f": {show(check.detail, max_chars=300)}")
        if not check.holds and check.name in known:
            word, detail = "differs", f": {known[check.name]}"
        print(f"{word:<10} {check.name}: {check.meaning}{detail}")
    return all(check.holds or check.name in known for check in checks)


def _known_differences(isolation: Isolation, runtime: str | None, docker_host: str | None) -> dict[str, str]:
    from bascule.sandbox import (
        PROCESS_DIFFERENCES,
        RUNTIME_DIFFERENCES,
        engine_differences,
        find_engine,
        runtime_differences,
    )

    match isolation:
        case "process":
            return PROCESS_DIFFERENCES
        case "oci":
            return runtime_differences(runtime)
        case "container":
            engine = find_engine(docker_host)
            return RUNTIME_DIFFERENCES.get(runtime or "", {}) | engine_differences(engine.cannot_limit)
