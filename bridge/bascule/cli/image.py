"""``bascule image``: the guest image that scripts run in."""

from __future__ import annotations

import sys
from typing import Annotated, Final, Literal

import typer

from bascule.cli.exits import Exit
from bascule.cli.host_flags import DockerHostFlag

app: Final = typer.Typer(help="Build and check the guest image.", no_args_is_help=True)

_Base = Annotated[
    str,
    typer.Option("--base", help="debian (from packages, nothing pulled), an image reference, or auto."),
]


@app.command("build")
def build(
    base: _Base = "auto",
    docker_host: DockerHostFlag = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Make everything anew, with new packages.")] = False,
    isolation: Annotated[
        Literal["container", "oci"],
        typer.Option("--isolation", help="oci unpacks the image for runc or crun, without an engine."),
    ] = "container",
) -> None:
    """Build the guest image of this installation, if it is not there yet."""
    from bascule.sandbox import build_bundle, build_image, ensure_image

    if isolation == "oci":
        bundle = build_bundle(base, docker_host=docker_host, fresh=fresh)
        print(f"bascule: {'built' if bundle.built else 'already there'}", file=sys.stderr)
        print(bundle.rootfs)
        return
    if fresh:
        made = build_image(base, docker_host=docker_host, fresh=True)
    else:
        made = ensure_image(base, docker_host=docker_host)
    print(f"bascule: {'built' if made.built else 'already there'}", file=sys.stderr)
    print(made.tag)


@app.command("check")
def check(base: _Base = "auto", docker_host: DockerHostFlag = None) -> None:
    """Look into the image: what should not be there, and what remains."""
    from bascule.bridge.display import show
    from bascule.sandbox import ensure_image, inspect_contents

    image = ensure_image(base, docker_host=docker_host, build=False)
    contents = inspect_contents(image.tag, docker_host=docker_host)
    found = {
        "setuid files": contents.setuid,
        "shells": contents.shells,
        "writable for all": contents.writable,
        "not owned by root": contents.foreign,
        "package managers": contents.package_managers,
    }
    print(f"{image.tag}: {contents.files:,} files, {contents.bytes / 2**20:.1f} MiB")
    for name, paths in found.items():
        print(f"{name}: {', '.join(show(path) for path in paths) or 'none'}")
    print(f"executables that remain: {', '.join(show(path) for path in contents.executables)}")
    if any(found.values()):
        raise typer.Exit(Exit.FAILED)


@app.command("sbom")
def sbom(
    base: _Base = "auto",
    docker_host: DockerHostFlag = None,
    isolation: Annotated[
        Literal["container", "oci"],
        typer.Option("--isolation", help="oci reads the unpacked image."),
    ] = "container",
) -> None:
    """Print the image's bill of materials, CycloneDX as JSON, checked against the image's label."""
    from bascule.sandbox import build_bundle, bundle_sbom, ensure_image, read_sbom

    if isolation == "oci":
        bill = bundle_sbom(build_bundle(base, docker_host=docker_host))
    else:
        image = ensure_image(base, docker_host=docker_host, build=False)
        bill = read_sbom(image.tag, docker_host=docker_host)
    print(bill.decode("utf-8"), end="")
