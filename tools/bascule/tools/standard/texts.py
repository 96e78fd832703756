"""Long texts made small: the lines that matter, and pieces of a bounded size. Pure; nothing is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from bascule.tools.tool import AnyTool, tool

MAX_TEXT_CHARS: Final = 16 << 20
MAX_LINE_CHARS: Final = 500

Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Lines around one or more matches; ``line`` is the number of the first, from 1."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passages:
    """The first passages, and how many lines match in all."""

    passages: list[Passage]
    matching_lines: int


@tool(name="texts.find", effects="read", parallel_safe=True)
def find(
    text: Text,
    words: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]], Field(min_length=1, max_length=20)
    ],
    around: Annotated[int, Field(ge=0, le=20)] = 1,
    limit: Annotated[int, Field(ge=1, le=200)] = 20,
) -> Passages:
    """Find the lines of a long text that hold one of some words, small or capital, with lines around them.

    Args:
        text: the text.
        words: what to look for, literally.
        around: how many lines before and after to add.
        limit: how many passages to return.
    """
    lines = text.splitlines()
    wanted = [word.casefold() for word in words]
    matching = [
        number for number, line in enumerate(lines) if any(word in line.casefold() for word in wanted)
    ]
    spans: list[tuple[int, int]] = []
    for number in matching:
        start, end = max(number - around, 0), min(number + around + 1, len(lines))
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], end)
        elif len(spans) < limit:
            spans.append((start, end))
        else:
            break
    passages = [Passage(line=start + 1, text="\n".join(map(_cut, lines[start:end]))) for start, end in spans]
    return Passages(passages=passages, matching_lines=len(matching))


@tool(name="texts.split", effects="read", parallel_safe=True)
def split(text: Text, max_chars: Annotated[int, Field(ge=200, le=100_000)] = 4000) -> list[str]:
    """Split a long text into pieces that end at paragraphs, lines or words where they can; nothing is lost.

    Args:
        text: the text.
        max_chars: how long a piece may be.
    """
    return list(_pieces(text, max_chars))


TOOLS: Final[list[AnyTool]] = [find, split]


def _pieces(text: str, max_chars: int) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = start + max_chars
        if end < len(text):
            for mark in ("\n\n", "\n", " "):
                found = text.rfind(mark, start + max_chars // 2, end)
                if found >= 0:
                    end = found + len(mark)
                    break
        yield text[start:end]
        start = end


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}…"
