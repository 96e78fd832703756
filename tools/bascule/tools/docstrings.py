"""What a docstring says about a tool: its description, its first sentence, its parameters.

Trusts nothing about the form: text that does not look like Google style is simply description.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection

MAX_SUMMARY_CHARS = 200
"""A summary is one line in a prompt; a longer first sentence is cut."""

_SECTION = re.compile(r"^(Args|Arguments|Parameters)\s*:[ \t]*(?=\n|$)", re.MULTILINE)
_NEXT_SECTION = re.compile(r"^[A-Z][A-Za-z ]*:[ \t]*(?=\n|$)", re.MULTILINE)
_INLINE = re.compile(r"(?:^|(?<=[.\s]))(?:Args|Arguments)\s*:[ \t]+(?=\S)")
_INLINE_END = re.compile(r"(?:^|(?<=[.\s]))(?:Returns|Raises|Yields|Examples?|Notes?)\s*:")
_RETURNS = re.compile(r"(?:^|(?<=[.\s]))Returns\s*:")
_ENTRY = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^()]*\))?\s*:\s*(.*)$")
_SENTENCE = re.compile(r"(.+?[.!?])(?=\s|$)", re.DOTALL)
_SPACE = re.compile(r"\s+")


def read_description(docstring: str | None) -> str:
    """Return the docstring without its indentation; empty when there is none."""
    return inspect.cleandoc(docstring) if docstring else ""


def read_summary(description: str) -> str:
    """Return the first sentence of the first paragraph on one line, at most MAX_SUMMARY_CHARS long."""
    paragraph = _SPACE.sub(" ", description.strip().split("\n\n", 1)[0]).strip()
    inline = _INLINE.search(paragraph) or _INLINE_END.search(paragraph)
    if inline and inline.start() > 0:
        paragraph = paragraph[: inline.start()].strip()
    sentence = _SENTENCE.match(paragraph)
    summary = sentence.group(1) if sentence else paragraph
    return summary if len(summary) <= MAX_SUMMARY_CHARS else f"{summary[: MAX_SUMMARY_CHARS - 1]}…"


def read_returns(description: str) -> str:
    """Return what the docstring says of the result, on one line; empty when it says nothing."""
    found = _RETURNS.search(description)
    if not found:
        return ""
    body = description[found.end() :]
    following = _NEXT_SECTION.search(body) or _INLINE_END.search(body)
    return _SPACE.sub(" ", body[: following.start()] if following else body).strip()


def read_parameters(description: str, names: Collection[str]) -> dict[str, str]:
    """Return what the ``Args`` section says of each parameter, in either form.

    Both the usual section (one indented entry a line) and the short form
    ``Args: account: an id; month: like "2025-01".`` are understood.

    Args:
        names: the parameters there are; nothing else is returned.
    """
    section = _SECTION.search(description)
    if section:
        body = description[section.end() :]
        following = _NEXT_SECTION.search(body)
        return _read_section(body[: following.start()] if following else body, names)
    inline = _INLINE.search(description)
    if inline:
        body = description[inline.end() :]
        following = _INLINE_END.search(body)
        return _read_inline(body[: following.start()] if following else body, names)
    return {}


def _read_section(body: str, names: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    current = ""
    entry_indent: int | None = None
    for line in filter(str.strip, body.splitlines()):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        entry = _ENTRY.match(text)
        if entry and entry.group(1) in names and (entry_indent is None or indent <= entry_indent):
            entry_indent, current = indent, entry.group(1)
            found[current] = entry.group(2)
        elif entry_indent is not None and indent > entry_indent and current:
            found[current] = f"{found[current]} {text}".strip()
        else:
            current = ""
    return {name: text for name, text in found.items() if text}


def _read_inline(body: str, names: Collection[str]) -> dict[str, str]:
    """Read ``a: text; b, c: text; d 1..200``; a piece that names no parameter continues the one before."""
    if not names:
        return {}
    choice = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    entry = re.compile(rf"((?:{choice})(?:\s*[,/]\s*(?:{choice}))*)(?:\s*:\s*|\s+)(.+)")
    found: dict[str, str] = {}
    current: list[str] = []
    for piece in _split_pieces(_SPACE.sub(" ", body)):
        match = entry.fullmatch(piece)
        if match:
            current = re.split(r"\s*[,/]\s*", match.group(1))
            found.update(dict.fromkeys(current, match.group(2)))
        elif piece in names:
            current = []
        else:
            found.update({name: f"{found[name]}; {piece}" for name in current})
    return found


def _split_pieces(text: str) -> list[str]:
    """Split at semicolons outside brackets."""
    pieces: list[str] = []
    start, depth = 0, 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == ";" and depth <= 0:
            pieces.append(text[start:position])
            start = position + 1
    pieces.append(text[start:])
    stripped = (piece.strip().rstrip(".,").rstrip() for piece in pieces)
    return [piece for piece in stripped if piece]
