"""The user's cache folder: wheels and guest contexts named by the hash of what they hold.

Whoever can write there runs as the user already, so nothing in it is a boundary; wheels are checked again all
the same, because they end up in images.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Generator
from pathlib import Path

from bascule.sandbox.errors import SandboxError


def cache_dir(*parts: str) -> Path:
    """Return a folder in the user's cache, made if missing (mode 0700).

    Raises:
        SandboxError: ``cache_unusable``: it cannot be made.
    """
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(root, "bascule", *parts)
    try:
        if not folder.is_absolute():
            raise OSError(f"{root} is no absolute path")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SandboxError(
            "cache_unusable",
            f"the cache folder {folder} cannot be made ({error.strerror or error}); "
            "set XDG_CACHE_HOME to a folder of yours that can be written",
        ) from error
    return folder


@contextlib.contextmanager
def locked(name: str) -> Generator[None]:
    """Hold a lock that excludes every other process of this user; waits for it."""
    with (cache_dir() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
