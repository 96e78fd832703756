"""pathlib without files: paths are text to take apart and put together.

``Path`` is a pure path of ours. Its file methods exist to say that there are no files here, as an
OSError that scripts which read files are ready for; none of them answers, so no script goes
on with a wrong answer.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import NoReturn

from bascule.guest.facade import FacadeContext, Members
from bascule.guest.rules.attributes import names

FILE_METHODS = names(
    """absolute chmod cwd exists expanduser glob group hardlink_to home is_block_device is_char_device is_dir
    is_fifo is_file is_mount is_socket is_symlink iterdir lchmod link_to lstat mkdir open owner read_bytes
    read_text readlink rename replace resolve rglob rmdir samefile stat symlink_to touch unlink walk
    write_bytes write_text"""
)


class TextPath(pathlib.PurePosixPath):
    """``pathlib.Path`` for scripts."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"PosixPath({str(self)!r})"


TextPath.__name__ = TextPath.__qualname__ = "PosixPath"


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise FileNotFoundError(
            f"Path.{name}() is not available: scripts have no files; keep data in variables or call a tool"
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


for _name in FILE_METHODS:
    setattr(TextPath, _name, staticmethod(_refusing(_name)))


def pathlib_module(context: FacadeContext) -> Members:
    """Give pathlib."""
    return {"Path": TextPath, "PosixPath": TextPath}
