"""sys and gc: the harmless part of them. Both streams are the script's one output."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NoReturn

from bascule.guest.facade import FacadeContext, Members, renamed
from bascule.guest.output import Output


class Stream:
    """sys.stdout and sys.stderr: both are the script's one output."""

    __slots__ = ("_errors", "_write")

    encoding = "utf-8"

    def __init__(self, output: Output, *, errors: bool = False) -> None:
        self._errors = errors
        self._write = output.write_error if errors else output.write

    def write(self, text: str) -> int:
        """Write text; return the number of its characters."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        return self._write(str.__str__(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each text."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: the output is kept in order anyway."""

    @staticmethod
    def is_errors(stream: Stream) -> bool:
        """Whether it is sys.stderr; not reachable from scripts, for whom no row lists it."""
        return stream._errors

    def isatty(self) -> bool:
        """Nobody watches."""
        return False


def sys_module(context: FacadeContext) -> Members:
    """Give the harmless part of sys."""

    def leave(status: object = None, /) -> NoReturn:
        raise SystemExit(status)

    def setrecursionlimit(limit: int, /) -> None:
        # The limit of the run stands: a script may ask, as plain scripts do, and gets no deeper.
        if type(limit) is not int:
            raise TypeError(f"{type(limit).__name__!r} object cannot be interpreted as an integer")
        if limit < 1:
            raise ValueError("recursion limit must be greater or equal than 1")

    leave.__name__ = leave.__qualname__ = "exit"
    output = context.environment.output
    return {
        "argv": ["script"],
        "exit": leave,
        "platform": "linux",
        "setrecursionlimit": setrecursionlimit,
        "stderr": Stream(output, errors=True),
        "stdout": Stream(output),
        "version": sys.version.split()[0],
    }


def gc_module(context: FacadeContext) -> Members:
    """Give gc, which has nothing to do: memory is freed when the run ends."""

    def collect(generation: int = 2) -> int:
        return 0

    def switch() -> None:
        return None

    def isenabled() -> bool:
        return True

    return {
        "collect": collect,
        "disable": renamed(switch, "disable"),
        "enable": renamed(switch, "enable"),
        "isenabled": isenabled,
    }
