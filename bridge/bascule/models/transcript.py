"""Transcripts: what was said and done in a conversation, one JSON object a line.

For people and measurements, not for going on (that is `AgentState`). Registered secrets are taken out of
every text, long texts are cut; the file is readable for its owner only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import msgspec

MAX_TEXT_CHARS: Final = 20_000
MAX_DEPTH: Final = 16
MAX_ITEMS: Final = 1_000
"""Bounds on what one line shows of a text, of nesting, and of a list."""


class Transcript:
    """Appends to one file.

    Args:
        path: made with mode 0600 when it does not exist.
        redact: takes secrets out of a text; usually `Executor.redact`.
    """

    def __init__(self, path: Path | str, *, redact: Callable[[str], str]) -> None:
        self._path = Path(path)
        self._redact = redact

    def add(self, kind: str, **fields: object) -> None:
        """Append one line."""
        line = msgspec.json.encode({"at": time.time(), "kind": kind, **self._shown_members(fields, 0)})
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(line + b"\n")

    def _shown(self, value: object, depth: int) -> object:
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth >= MAX_DEPTH:
            return "[...]"
        if isinstance(value, dict):
            return self._shown_members(cast("dict[str, object]", value), depth)
        if isinstance(value, list | tuple):
            items = cast("list[object]", value)
            return [self._shown(item, depth + 1) for item in items[:MAX_ITEMS]]
        return self._text(str(value))

    def _shown_members(self, value: dict[str, object], depth: int) -> dict[str, object]:
        members = list(value.items())[:MAX_ITEMS]
        return {self._text(key)[:200]: self._shown(item, depth + 1) for key, item in members}

    def _text(self, text: str) -> str:
        cleaned = self._redact(text.encode("utf-8", "replace").decode())
        if len(cleaned) <= MAX_TEXT_CHARS:
            return cleaned
        return f"{cleaned[:MAX_TEXT_CHARS]} [... {len(cleaned) - MAX_TEXT_CHARS} characters left out]"
