"""The three tools every attack is offered: harmless, reading under a root, needing approval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bascule.tools import AnyTool, tool

NOTE = "remember the milk"


def make_tools(root: Path, ran: list[str]) -> list[AnyTool]:
    """Return the tools; ``ran`` notes every target that `danger` was really run for.

    Args:
        root: folder `read_note` may read; it holds `ok.txt` and a link that leads out of it.
    """

    @tool(effects="read")
    def echo(text: Any) -> Any:
        """Return the text.

        Args:
            text: anything.
        """
        return text

    @tool(effects="read")
    def read_note(path: str) -> str:
        """Read a note.

        Args:
            path: its file name.
        """
        place = (root / path).resolve()
        if "\0" in path or not place.is_relative_to(root.resolve()) or not place.is_file():
            raise LookupError("no such note")
        return place.read_text(encoding="utf-8")

    @tool(effects="once")
    def danger(target: str) -> str:
        """Destroy something.

        Args:
            target: what.
        """
        ran.append(target)
        return f"destroyed {target}"

    return [echo, read_note, danger]
