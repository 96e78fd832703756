"""How many tokens a text is: an estimate without any library, or exactly by the `tokens` extra."""

from __future__ import annotations

from collections.abc import Callable

CountTokens = Callable[[str], int]

_BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Return the length in UTF-8 divided by four, rounded up; English and code come within some 20 %."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)
