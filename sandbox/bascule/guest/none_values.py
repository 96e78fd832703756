"""Which expression of the script was None where a value was needed, and why."""

from __future__ import annotations

import ast
from typing import Final

from bascule.guest.failing import Failing, own_nodes

VALUE_IS_NONE: Final = "the value is None: test for None first"
"""The suggestion when the expression cannot be named."""

_CHANGES_IN_PLACE = frozenset(
    {
        "add",
        "append",
        "clear",
        "discard",
        "extend",
        "insert",
        "remove",
        "reverse",
        "shuffle",
        "sort",
        "update",
    }
)
"""Methods that change their object and return None."""


def explain_none(failing: Failing, message: str) -> str | None:
    """Return the suggestion that names what was None and how it was used, or None when that is not seen.

    Args:
        failing: the expression that failed.
        message: the exception's text; of two operands it says which was None.
    """
    node = failing.node
    match node:
        case ast.Subscript():
            return _said(failing, node.value, f"before `[{failing.shown(node.slice)}]`")
        case ast.Attribute():
            return _said(failing, node.value, f"before `.{node.attr}`")
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            wrong = left if message.find("'NoneType'") < message.find(" and ") else right
            return _said(failing, wrong, "before calculating with it")
        case ast.AugAssign():
            wrong = node.target if message.find("'NoneType'") < message.find(" and ") else node.value
            return _said(failing, wrong, "before calculating with it")
        case ast.For():
            return _said(failing, node.iter, "before looping over it")
        case ast.ListComp() | ast.SetComp() | ast.DictComp() if "not iterable" in message:
            return _said(failing, node.generators[0].iter, "before looping over it")
        case ast.expr() if failing.is_looped_over(node):  # the place that Python 3.12 and newer give
            return _said(failing, node, "before looping over it")
        case _:
            return None


def _said(failing: Failing, value: ast.expr, use: str) -> str:
    if isinstance(value, ast.Await | ast.Call):
        return _why_returned(failing, value) or f"`{failing.shown(value)}` returned None: test for None {use}"
    return _why_assigned(failing, value) or f"`{failing.shown(value)}` is None: test for None {use}"


def _why_assigned(failing: Failing, value: ast.expr) -> str | None:
    """Explain a variable that holds what a changing method or a function without return gave."""
    line = getattr(failing.node, "lineno", 0)
    binding = failing.last_binding(value.id, line) if isinstance(value, ast.Name) else None
    return None if binding is None or binding[1] is None else _why_returned(failing, binding[1])


def _why_returned(failing: Failing, value: ast.expr) -> str | None:
    call = value.value if isinstance(value, ast.Await) else value
    if not isinstance(call, ast.Call):
        return None
    if isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGES_IN_PLACE:
        instead = "; sorted(...) returns a list" if call.func.attr == "sort" else ""
        owner = failing.shown(call.func.value)
        return f"`{owner}.{call.func.attr}(...)` changes {owner} itself and returns None{instead}"
    function = failing.function(call.func.id) if isinstance(call.func, ast.Name) else None
    if function is not None and not any(
        isinstance(node, ast.Return) and node.value is not None for node in own_nodes(function)
    ):
        return f"{function.name}() (line {function.lineno}) has no `return` with a value, so it returns None"
    return None
