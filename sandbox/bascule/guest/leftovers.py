"""What the script began and never finished, as notes: forgotten awaits, cancelled tasks, unseen failures.

CPython prints such things to stderr, where the author of the script never sees them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from types import CoroutineType
from typing import Any

from bascule.guest.loop import Loop
from bascule.guest.position import SCRIPT_FILE
from bascule.guest.report import safe_text
from bascule.guest.source import bounded
from bascule.guest.tasks import Task
from bascule.wire import Note

_MAX_NOTES = 20
_MESSAGE_CHARACTERS = 300


class Leftovers:
    """Collects notes during a run and at its end.

    Args:
        notes: where they go.
        loop: knows what never started.
    """

    def __init__(self, notes: list[Note], loop: Loop) -> None:
        self._notes = notes
        self._loop = loop
        self._places: dict[tuple[str, str, int | None], tuple[int, int]] = {}
        loop.callback_failed = self.callback_failed
        loop.left_behind = self.task_cancelled

    def add(self, code: str, message: str, line: int | None) -> None:
        """Add a note, up to a bound of different ones; one that comes again says how often it came."""
        text = bounded(message, _MESSAGE_CHARACTERS)
        key = (code, text, line)
        if key in self._places:
            place, times = self._places[key]
            self._places[key] = place, times + 1
            self._notes[place] = Note(code=code, message=f"{text} ({times + 1} times)", line=line)
        elif len(self._places) < _MAX_NOTES:
            self._places[key] = len(self._notes), 1
            self._notes.append(Note(code=code, message=text, line=line))

    def callback_failed(self, error: Exception) -> None:
        """Note that a callback of the script raised."""
        self.add("callback_failed", f"a callback raised {type(error).__name__}: {safe_text(error)}", None)

    def task_cancelled(self, task: Task) -> None:
        """Note that a task was still at work when the script ended."""
        self.add(
            "task_cancelled",
            f"the task {task.coroutine_name()}() was not finished when the script ended and was cancelled: "
            "await it, or gather it with the others",
            task.created_line(),
        )

    def coroutine_never_awaited(self, coroutine: CoroutineType[Any, Any, Any]) -> None:
        """Note that a coroutine was made and thrown away."""
        code = coroutine.cr_code
        if code.co_filename != SCRIPT_FILE:
            return
        origin = [line for file, line, _ in coroutine.cr_origin or () if file == SCRIPT_FILE]
        self.add(
            "never_awaited",
            f"{code.co_name}(...) was never awaited, so it did not run: write `await {code.co_name}(...)`",
            origin[0] if origin else code.co_firstlineno,
        )

    def close(self) -> None:
        """Note every call that never started and every failure that nobody looked at."""
        for call in self._loop.unstarted.values():
            self.add(
                "never_awaited",
                f"{call.tool_name}(...) was never awaited, so the call was not made: "
                f"write `await {call.tool_name}(...)`",
                call.line,
            )
        for task in self._loop.failed:
            if task.unseen():
                error = task.exception()
                self.add(
                    "task_failed",
                    f"the task {task.coroutine_name()}() failed and nobody awaited it: "
                    f"{type(error).__name__}: {'' if error is None else safe_text(error)}",
                    task.created_line(),
                )

    @contextmanager
    def watching_coroutines(self) -> Generator[None]:
        """Turn the interpreter's warning about coroutines that were never awaited into notes."""
        module: Any = warnings
        before = module._warn_unawaited_coroutine
        depth = sys.get_coroutine_origin_tracking_depth()
        module._warn_unawaited_coroutine = self.coroutine_never_awaited
        sys.set_coroutine_origin_tracking_depth(1)
        try:
            yield
        finally:
            module._warn_unawaited_coroutine = before
            sys.set_coroutine_origin_tracking_depth(depth)
