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

_MATCHERS = frozenset({"findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"})
"""Methods of patterns and functions of ``re``; texts have ``split`` as well."""


def _words_for(node: ast.AST) -> str | None:
    if isinstance(node, ast.BinOp):
        return "in a power" if isinstance(node.op, ast.Pow) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MATCHERS:
        owner = node.func.value
        is_module = isinstance(owner, ast.Name) and owner.id == "re"
        if is_module or node.func.attr != "split":
            return "in a regular expression"
    return _WORDS.get(type(node))


def statement_at(tree: ast.AST, line: int) -> str:
    """Return ``in a while loop`` or the like for the innermost loop, match or power around ``line``.

    An empty text where there is none.
    """
    found, height = "", None
    for node in ast.walk(tree):
        words = _words_for(node)
        if words is None:
            continue
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
        if first <= line <= last and (height is None or last - first <= height):
            found, height = words, last - first
    return found
