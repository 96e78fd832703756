"""What the script prints. Decides how much of it is kept and when it is handed over; trusts no text.

Lone surrogates are written as ``\\udXXX`` escapes, because the wire carries valid UTF-8 only.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NoReturn

HAND_OVER_BYTES = 64 << 10
"""Text kept before it is handed to the host in the middle of a stretch."""


class Output:
    """Collects text in order, counts it in UTF-8 bytes, and ends the run at the cap.

    Args:
        cap_bytes: text kept in all; what exceeds it is cut.
        hand_over: called when ``HAND_OVER_BYTES`` are waiting; it may ``take()`` them.
        overflow: called with the bytes printed so far once the cap is passed; does not return.
    """

    __slots__ = (
        "_cap_bytes",
        "_error_sinks",
        "_hand_over",
        "_overflow",
        "_parts",
        "_sinks",
        "_total_bytes",
        "_waiting_bytes",
    )

    def __init__(
        self, *, cap_bytes: int, hand_over: Callable[[], None], overflow: Callable[[int], NoReturn]
    ) -> None:
        self._cap_bytes = cap_bytes
        self._hand_over = hand_over
        self._overflow = overflow
        self._parts: list[str] = []
        self._sinks: list[Callable[[str], object]] = []
        self._error_sinks: list[Callable[[str], object]] = []
        self._total_bytes = 0
        self._waiting_bytes = 0

    def begin(self, cap_bytes: int) -> None:
        """Count anew, for the next script of a session."""
        self._cap_bytes = cap_bytes
        self._total_bytes = 0
        self._sinks.clear()
        self._error_sinks.clear()

    def write(self, text: str) -> int:
        """Add text; return the number of its characters, as a stream does."""
        if self._sinks:
            self._sinks[-1](text)
            return len(text)
        return self._keep(text)

    def write_error(self, text: str) -> int:
        """Add text meant for stderr: to the same output, but redirected apart from it."""
        if self._error_sinks:
            self._error_sinks[-1](text)
            return len(text)
        return self._keep(text)

    def _keep(self, text: str) -> int:
        if text.isascii():
            return self._add(text, len(text), len(text))
        data = text.encode("utf-8", "backslashreplace")
        return self._add(data.decode("utf-8"), len(data), len(text))

    def flush(self) -> None:
        """Do nothing: everything printed is kept in order anyway."""

    def sink(self, *, errors: bool = False) -> Callable[[str], object]:
        """Return what takes printed text, or what is meant for stderr, at this moment."""
        sinks = self._error_sinks if errors else self._sinks
        return sinks[-1] if sinks else self._keep

    @contextmanager
    def redirected(self, sink: Callable[[str], object], *, errors: bool = False) -> Generator[None]:
        """Send text, or what is meant for stderr, to ``sink`` instead, until the block ends."""
        sinks = self._error_sinks if errors else self._sinks
        sinks.append(sink)
        try:
            yield
        finally:
            if sink in sinks:  # a session's next script begins without those that are still open
                sinks.remove(sink)

    def take(self) -> str:
        """Return what was added since the last time."""
        text = "".join(self._parts)
        self._parts.clear()
        self._waiting_bytes = 0
        return text

    @property
    def waiting(self) -> bool:
        """Whether there is anything to take."""
        return bool(self._parts)

    def _add(self, text: str, size: int, characters: int) -> int:
        room = self._cap_bytes - self._total_bytes
        self._total_bytes += size
        if size > room:
            kept = text.encode("utf-8")[: max(room, 0)].decode("utf-8", "ignore")
            self._parts.append(kept)
            self._overflow(self._total_bytes)
        self._parts.append(text)
        self._waiting_bytes += size
        if self._waiting_bytes >= HAND_OVER_BYTES:
            self._hand_over()
        return characters
