"""Pieces of a stream, put together within a bound."""

from __future__ import annotations


class Gathered:
    """A text that arrives in pieces.

    Args:
        max_chars: once it is longer, further pieces are dropped; whoever reads it sees that it is too long.
    """

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._size = 0
        self._pieces: list[str] = []

    def add(self, piece: str) -> None:
        """Add a piece."""
        if self._size <= self._max_chars:
            self._pieces.append(piece)
            self._size += len(piece)

    def __str__(self) -> str:
        return "".join(self._pieces)
