"""``bascule doctor``: whether scripts can run here, and what stands between them and this machine."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from bascule.cli.exits import Exit


def doctor(
    docker_host: Annotated[str | None, typer.Option("--docker-host", help="Address of the engine.")] = None,
    runtime: Annotated[str | None, typer.Option("--runtime", help="Container runtime.")] = None,
) -> None:
    """Look at engine and image, and try every wall in a real sandbox."""
    import asyncio
    from importlib.metadata import version

    from bascule.bridge.display import show
    from bascule.sandbox import find_engine, open_backend
    from bascule.sandbox.selfcheck import Check, check_sandbox

    print(f"bascule    {version('bascule')}, Python {platform.python_version()}, {platform.platform()}")
    engine = find_engine(docker_host)
    print(f"engine     {engine.name} {engine.version} (API {engine.api_version}) at {engine.host}")
    print(f"system     {engine.operating_system}, kernel {engine.kernel}, cgroups {engine.cgroup_version}")
    print(f"runtimes   {', '.join(engine.runtimes)}; {runtime or engine.default_runtime} is used")
    backend = open_backend("container", docker_host=docker_host, runtime=runtime)
    print(f"image      {backend.image_hash[:12]}")

    async def look() -> tuple[int, list[Check]]:
        try:
            return await backend.sweep(), await check_sandbox(backend)
        finally:
            await backend.close()

    swept, checks = asyncio.run(look())
    print(f"orphans    {swept} removed")
    for check in checks:
        detail = "" if check.holds else f": {show(check.detail, max_chars=300)}"
        print(f"{'holds' if check.holds else 'BROKEN':<10} {check.name}: {check.meaning}{detail}")
    if not all(check.holds for check in checks):
        raise typer.Exit(Exit.FAILED)
