"""Lets a rehearsal notice ``is`` and patterns, for which Python asks no object.

Only scripts that are rehearsed are rewritten: whatever stands beside ``is`` passes through a function that
returns it, and so does what is matched. Works on a tree that has its guards already; what it adds cannot be
written in a script.
"""

from __future__ import annotations

import ast
from typing import Final

from bascule.guest import hidden

_SILENT: Final = (ast.MatchSingleton, ast.MatchMapping, ast.MatchSequence)
"""Patterns that ask nothing of the object they are tried on."""


class IdentityWatch(ast.NodeTransformer):
    """Puts the functions in."""

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        """Pass the operands of ``is`` on."""
        self.generic_visit(node)
        seen = {
            place
            for index, op in enumerate(node.ops)
            if isinstance(op, ast.Is | ast.IsNot)
            for place in (index, index + 1)
        }
        operands = [
            _passed(hidden.SEE, each) if place in seen and not isinstance(each, ast.Constant) else each
            for place, each in enumerate((node.left, *node.comparators))
        ]
        node.left, node.comparators = operands[0], operands[1:]
        return node

    def visit_Match(self, node: ast.Match) -> ast.Match:
        """Pass on what is matched, where a pattern would not ask it."""
        self.generic_visit(node)
        patterns = [part for case in node.cases for part in ast.walk(case.pattern)]
        if any(isinstance(part, _SILENT) for part in patterns):
            node.subject = _passed(hidden.SEE_INSIDE, node.subject)
        return node


def _passed(name: str, value: ast.expr) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), value)
    return ast.copy_location(ast.Call(func=function, args=[value], keywords=[]), value)
