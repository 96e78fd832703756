"""Shows on standard error what a run does: colour and signs on a terminal, plain lines elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from rich.console import Console
from rich.text import Text

from bascule.bridge.terminal import screen

if TYPE_CHECKING:
    from bascule.bridge import Event

_SIGNS: Final = {
    "call.started": (">", "cyan"),
    "call.progress": ("~", "cyan"),
    "call.waiting_approval": ("?", "yellow"),
    "call.completed": ("+", "green"),
    "call.failed": ("!", "red"),
    "call.denied": ("x", "red"),
}
_WORDS: Final = {
    "call.started": "started",
    "call.progress": "is at",
    "call.waiting_approval": "waits for approval",
    "call.completed": "done",
    "call.failed": "failed",
    "call.denied": "denied",
}


_ORDINARY: Final = ("call.started", "call.progress", "call.completed")

MAX_CALLS: Final = 50
"""Calls that are told one by one; of further ones only what is out of the ordinary."""


class Progress:
    """An event subscriber. Texts in events are safe to show already. Waits while a person is asked."""

    def __init__(self, stream: TextIO) -> None:
        self._told = set[tuple[str, int]]()
        self._full = False
        self._stream = stream
        self._console = Console(file=stream, highlight=False, soft_wrap=True) if stream.isatty() else None

    def __call__(self, event: Event) -> None:
        if event.name not in _SIGNS or (
            self._console is None and event.name in ("call.started", "call.progress")
        ):
            return
        if event.name == "call.waiting_approval":
            self._told.add((event.run_id, event.seq))  # what becomes of it is told as well
        if event.name in _ORDINARY and not self._takes(event):
            return
        ended = event.name not in ("call.started", "call.progress", "call.waiting_approval")
        took = f" in {event.duration_s * 1000:.0f} ms" if ended and event.duration_s else ""
        told = "" if event.name == "call.completed" else f" {event.text}"
        line = f"{event.seq:>4} {event.tool} {_WORDS[event.name]}{took}{told}"
        with screen:
            self._print(event, line)

    def _takes(self, event: Event) -> bool:
        """Tell whether an ordinary event is shown; say it once when the first one is not."""
        call = (event.run_id, event.seq)
        if len(self._told) < MAX_CALLS:
            self._told.add(call)
        elif call not in self._told and not self._full:
            self._full = True
            with screen:
                print("     further calls are told where they wait or fail", file=self._stream, flush=True)
        return call in self._told

    def _print(self, event: Event, line: str) -> None:
        if self._console is None:
            print(line, file=self._stream, flush=True)
            return
        sign, style = _SIGNS[event.name]
        text = Text.assemble((f"{sign} ", f"bold {style}"), line)
        text.truncate(self._console.width, overflow="ellipsis")
        self._console.print(text)
