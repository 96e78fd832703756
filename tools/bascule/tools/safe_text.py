"""Text of unknown origin made safe to stand in a stub: one line, printable, unable to end a docstring or the
fence around the stubs in a prompt.
"""

from __future__ import annotations

import re

MAX_LINE_CHARS = 400
MAX_DOCSTRING_CHARS = 4000

_SPACE = re.compile(r" {2,}")
_QUOTE = re.compile(r'"(?="|$)')


def clean_line(text: str) -> str:
    """Return the text on one line: line ends, control and invisible characters become single spaces."""
    printable = "".join(each if each.isprintable() else " " for each in text[: 4 * MAX_LINE_CHARS])
    return shorten(_SPACE.sub(" ", printable).strip(), MAX_LINE_CHARS)


def shorten(text: str, max_chars: int) -> str:
    """Return the text, cut with an ellipsis when it is longer than ``max_chars``."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def docstring_line(text: str) -> str:
    """Return a text as a docstring on one line."""
    return f'"""{_escape(clean_line(text))}"""'


def docstring_block(text: str, *, indent: str) -> str:
    """Return a text as a docstring that keeps its lines, each indented; on one line when there is one."""
    lines = [_clean_indented(line) for line in shorten(text, MAX_DOCSTRING_CHARS).splitlines()]
    if len(lines) <= 1:
        return docstring_line(text)
    body = [f"{indent}{_escape(line)}" if line else "" for line in lines]
    return "\n".join([f'"""{body[0].strip()}', *body[1:], f'{indent}"""'])


def _clean_indented(line: str) -> str:
    margin = len(line) - len(line.lstrip(" "))
    return f"{' ' * min(margin, 40)}{clean_line(line)}".rstrip()


def _escape(line: str) -> str:
    return _QUOTE.sub(r'\\"', line.replace("\\", "\\\\")).replace("```", "'''")
