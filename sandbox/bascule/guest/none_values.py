"""Which expression of the script was None where a value was needed, for the suggestion of an error."""

from __future__ import annotations

import ast
from typing import cast

from bascule.guest.source import Source

ITEM_OF_NONE = "the value is None: test for None first"
ATTRIBUTE_OF_NONE = "the value is None: test for that first"
NONE_HINTS = frozenset({ITEM_OF_NONE, ATTRIBUTE_OF_NONE})
"""Suggestions that are better when they name the value."""

_MAX_CHARACTERS = 80


def none_in(source: Source, place: tuple[int, int, int, int]) -> str | None:
    """Return the suggestion that names what was None and how it was used, or None when that is not seen.

    Args:
        source: the submitted lines.
        place: first line, last line, first and end byte offset of the expression that failed.
    """
    text = "\n".join(source.line(number) for number in range(1, len(source.lines) + 1))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or place != (
            node.lineno,
            node.end_lineno,
            node.col_offset,
            node.end_col_offset,
        ):
            continue
        if isinstance(node, ast.Subscript):
            return _said(text, node.value, f"before `[{_shown(text, node.slice)}]`")
        if isinstance(node, ast.Attribute):
            return _said(text, node.value, f"before `.{node.attr}`")
    return None


def _said(text: str, value: ast.expr, use: str) -> str:
    gave = "returned None" if isinstance(value, ast.Call | ast.Await) else "is None"
    return f"`{_shown(text, value)}` {gave}: test for None {use}"


def _shown(text: str, node: ast.expr) -> str:
    shown = " ".join(cast(str, ast.get_source_segment(text, node)).split())
    return shown if len(shown) <= _MAX_CHARACTERS else f"{shown[:_MAX_CHARACTERS]}…"
