"""Why a name that the script binds somewhere is not there where it is used."""

from __future__ import annotations

import ast
from typing import Final

from bascule.guest.failing import Failing

_BLOCKS: Final[dict[type[ast.AST], str]] = {
    ast.For: "a loop",
    ast.AsyncFor: "a loop",
    ast.While: "a loop",
    ast.If: "an `if`",
    ast.Try: "a `try`",
}


def explain_name(failing: Failing, error: NameError) -> str | None:
    """Return where alone the name is bound, or None when that does not explain it."""
    name: object = error.name
    if type(name) is not str or isinstance(error, UnboundLocalError):
        return None
    if failing.is_caught_as(name):
        return f"`{name}` is gone after its `except`: keep it there, `failure = {name}`"
    binders = [
        node
        for node in ast.walk(failing.tree)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    if len(binders) != 1:
        return None
    binder = binders[0]
    outer: ast.AST | None = failing.parent(binder)
    while outer is not None:
        if isinstance(outer, ast.comprehension):
            return f"`{name}` belongs to the comprehension in line {binder.lineno} alone"
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return None
        if (block := _BLOCKS.get(type(outer))) is not None:
            begins = getattr(outer, "lineno", binder.lineno)
            where = f"in {block} (line {begins}) that did not get there"
            return f"`{name}` is assigned in line {binder.lineno} alone, {where}: assign it before as well"
        outer = failing.parent(outer)
    return None
