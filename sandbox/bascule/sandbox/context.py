"""The guest's build context: every file that runs inside, assembled from the installed distribution.

A checkout and an installed wheel give the same bytes, so they give the same hash, and the hash is the name of
the image and what the guest says in its Hello. Compiled files are derived and not part of the hash.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from bascule.sandbox.errors import SandboxError
from bascule.sandbox.wheels import Target, dependency_files, native_target

_PACKAGES = ("bascule.guest", "bascule.wire")

_MAIN = b"""import gc

gc.disable()  # until the run begins: nothing of what is imported is garbage

from bascule.guest.main import main

if __name__ == "__main__":
    main()
"""

FILE_MODE = 0o444
FOLDER_MODE = 0o555


def build_context(into: Path, *, target: Target | None = None, base: str = "process") -> str:
    """Write the guest's folder and return its hash.

    Args:
        into: folder to fill; made if missing, must be empty.
        target: the Python it is for, this interpreter when None.
        base: identity of what it will run on; part of the hash.

    Raises:
        SandboxError: ``image_build_failed`` with the remedy.
    """
    files, image_hash = context_files(target=target, base=base)
    write_files(files, into)
    return image_hash


def context_files(*, target: Target | None = None, base: str = "process") -> tuple[dict[str, bytes], str]:
    """Return the files of the guest's folder, IMAGE included, and their hash.

    Raises:
        SandboxError: as ``build_context``.
    """
    target = target or native_target()
    files = {"__main__.py": _MAIN}
    for package in _PACKAGES:
        files.update(_package_files(package))
    files.update(dependency_files(image_file("requirements.txt"), target))
    digest = hashlib.sha256()
    inputs = {
        **{f"context/{path}": content for path, content in files.items()},
        "Dockerfile": image_file("Dockerfile"),
        "base": base.encode(),
        "python": target.python.encode(),
    }
    for path in sorted(inputs):
        digest.update(f"{path}\0{len(inputs[path])}\0".encode())
        digest.update(inputs[path])
    image_hash = digest.hexdigest()
    files["IMAGE"] = image_hash.encode()
    return files, image_hash


def write_files(files: dict[str, bytes], into: Path) -> None:
    """Write files read-only, with one time stamp, so that two builds are equal."""
    into.mkdir(parents=True, exist_ok=True)
    for path in sorted(files):
        place = into / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(files[path])
        place.chmod(FILE_MODE)


def image_file(name: str) -> bytes:
    """Return a file of ``images/guest``, from the wheel or the checkout."""
    for folder in (Path(__file__).parent / "images", Path(__file__).parents[3] / "images"):
        place = folder / "guest" / name
        if place.is_file():
            return place.read_bytes()
    raise SandboxError("image_build_failed", f"images/guest/{name} is missing; reinstall bascule")


def _package_files(package: str) -> dict[str, bytes]:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SandboxError("image_build_failed", f"{package} is not installed; reinstall bascule")
    root = Path(next(iter(spec.submodule_search_locations)))
    prefix = package.replace(".", "/")
    return {
        f"{prefix}/{place.relative_to(root).as_posix()}": place.read_bytes()
        for place in sorted(root.rglob("*.py"))
        if place.is_file()
    }
