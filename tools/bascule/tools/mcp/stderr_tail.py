"""The last words of a server on its standard error, bounded, for operators only."""

from __future__ import annotations

from typing import Final

from bascule.tools.safe_text import clean_line

MAX_TAIL_BYTES: Final = 8192
MAX_SHOWN_LINES: Final = 10


class StderrTail:
    """Keeps the newest bytes of a stream that may never end."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Take further bytes; untrusted."""
        self._kept += data[-MAX_TAIL_BYTES:]
        del self._kept[:-MAX_TAIL_BYTES]

    def shown(self) -> str:
        """Return the last lines as text that is safe to show; empty when there are none."""
        lines = self._kept.decode("utf-8", "replace").splitlines()
        return " | ".join(line for line in map(clean_line, lines[-MAX_SHOWN_LINES:]) if line)
