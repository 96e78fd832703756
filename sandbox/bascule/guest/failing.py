"""The expression of the script at which an exception was raised, and what the script says about its parts.

Reads the submitted text only; never an object of the script.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from bascule.guest.bindings import children
from bascule.guest.source import Source

Place: TypeAlias = tuple[int, int, int, int]
"""First line, last line, first and end byte offset, as ``co_positions`` gives them."""

_MAX_CHARACTERS = 80


class Failing(msgspec.Struct, frozen=True):
    """One expression or statement of the script.

    Attributes:
        text: the whole script.
        tree: the same, parsed.
        node: what failed.
    """

    text: str
    tree: ast.Module
    node: ast.AST

    def shown(self, node: ast.AST) -> str:
        """Return the text of an expression on one line, bounded."""
        segment = ast.get_source_segment(self.text, node) if hasattr(node, "lineno") else ast.unparse(node)
        shown = " ".join((segment or "").split())
        return shown if len(shown) <= _MAX_CHARACTERS else f"{shown[:_MAX_CHARACTERS]}…"

    def last_binding(self, name: str, before: int) -> tuple[int, ast.expr | None] | None:
        """Return the line of the last assignment of a name up to line ``before``, and the value if seen."""
        found: tuple[int, ast.expr | None] | None = None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
                line = node.lineno
                if line <= before and (found is None or line >= found[0]):
                    found = line, self._value_of(node)
        return found

    def _value_of(self, target: ast.Name) -> ast.expr | None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and target in node.targets:
                return node.value
        return None

    def is_looped_over(self, value: ast.expr) -> bool:
        """Return whether a loop or a comprehension goes through the value."""
        return any(
            isinstance(node, ast.For | ast.comprehension) and node.iter is value
            for node in ast.walk(self.tree)
        )

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node around a node."""
        return next((outer for outer in ast.walk(self.tree) if node in children(outer)), None)

    def loop_of(self, value: ast.expr) -> ast.expr | None:
        """Return what the script goes through when the value is the variable of a loop."""
        if not isinstance(value, ast.Name):
            return None
        return next(
            (
                node.iter
                for node in ast.walk(self.tree)
                if isinstance(node, ast.For | ast.comprehension)
                and isinstance(node.target, ast.Name)
                and node.target.id == value.id
            ),
            None,
        )

    def is_caught_as(self, name: str) -> bool:
        """Return whether an `except ... as` gives that name."""
        return any(isinstance(node, ast.ExceptHandler) and node.name == name for node in ast.walk(self.tree))

    def definition(self, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | None:
        """Return the script's own function or class of that name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
                return node
        return None

    def function(self, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """Return the script's own function of that name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                return node
        return None


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions inside it."""
    pending = list(children(function))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            pending.extend(children(node))


def find_failing(source: Source, place: Place) -> Failing | None:
    """Return the expression at a place, or None when the text has none there."""
    text = "\n".join(source.line(number) for number in range(1, len(source.lines) + 1))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.AugAssign | ast.For) and place == (
            node.lineno,
            node.end_lineno,
            node.col_offset,
            node.end_col_offset,
        ):
            return Failing(text, tree, node)
    return None
