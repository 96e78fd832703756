"""What kind of statement a line belongs to, in words, for the message of a limit."""

from __future__ import annotations

import ast

_WORDS: dict[type[ast.AST], str] = {
    ast.While: "in a while loop",
    ast.For: "in a for loop",
    ast.AsyncFor: "in an async for loop",
    ast.ListComp: "in a list comprehension",
    ast.SetComp: "in a set comprehension",
    ast.DictComp: "in a dict comprehension",
    ast.GeneratorExp: "in a generator expression",
}


def statement_at(tree: ast.AST, line: int) -> str:
    """Return ``in a while loop`` or the like for the innermost loop around ``line``, or an empty text."""
    found, height = "", None
    for node in ast.walk(tree):
        words = _WORDS.get(type(node))
        if words is None:
            continue
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
        if first <= line <= last and (height is None or last - first <= height):
            found, height = words, last - first
    return found
