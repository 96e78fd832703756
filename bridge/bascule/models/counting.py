"""Counting tokens: exactly with o200k_base where the `tokens` extra is installed, else a marked estimate.

Decides only how many tokens a text has. The texts come from scripts, tools and people and are not trusted:
no text can make a count fail, and both counters take time linear in its size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

BYTES_PER_TOKEN: Final = 3.3
"""Bytes of UTF-8 in one o200k token: 3.25 in the mean of 5,070 recorded JSON results (5 % of them below 2.8,
5 % above 4.0), 3.1 to 3.5 in scripts; but 2.2 in tables of small numbers. So an estimate of one text may be
wrong by a third."""

ENCODING: Final = "o200k_base"


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    @property
    def name(self) -> str:
        """What counted, for people."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the counts are those of a real tokenizer."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of any text."""
        ...


@dataclass(frozen=True, slots=True)
class ByteEstimate:
    """Estimates from the number of bytes; see `BYTES_PER_TOKEN`."""

    name: str = f"bytes / {BYTES_PER_TOKEN} (estimate)"
    exact: bool = False

    def count(self, text: str) -> int:
        return estimate_tokens(len(text.encode("utf-8", "replace")))


class O200kCounter:
    """Counts o200k_base tokens, the encoding of OpenAI's models since GPT-4o; others differ by some percent.

    Raises:
        ModuleNotFoundError: the `tokens` extra is not installed.
    """

    def __init__(self) -> None:
        self.name: Final = ENCODING
        self.exact: Final = True
        try:
            from toktok import batch_count  # pyright: ignore[reportMissingTypeStubs]  # it has none
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "counting tokens exactly needs toktok-rs: pip install 'bascule[tokens]'", name=error.name
            ) from error
        self._count_all: Callable[..., list[int]] = batch_count

    def count(self, text: str) -> int:
        # Lone surrogates have no UTF-8; each counts as the question mark that is sent in its place.
        clean = text.encode("utf-8", "replace").decode()
        return self._count_all([clean], ENCODING, threads=1)[0]


def open_counter() -> TokenCounter:
    """Return the exact counter where it is installed, else the estimate; `TokenCounter.exact` tells which."""
    try:
        return O200kCounter()
    except ModuleNotFoundError:
        return ByteEstimate()


def estimate_tokens(size_bytes: int) -> int:
    """Return the estimated tokens of so many bytes of text, at least 1 unless there is none."""
    return max(1, round(size_bytes / BYTES_PER_TOKEN)) if size_bytes else 0
