"""Which explanation fits an exception: what the script and the values of the failed line say of it."""

from __future__ import annotations

import ast

from bascule.guest.errors import ToolError
from bascule.guest.failing import Failing
from bascule.guest.failing_values import for_name, loop_over_dict, variables_of
from bascule.guest.none_values import explain_none
from bascule.guest.wrong_calls import explain_call, own_argument, passing_failure
from bascule.guest.wrong_items import explain_item
from bascule.guest.wrong_names import explain_name
from bascule.guest.wrong_operands import explain_operand, unhashable
from bascule.guest.wrong_texts import explain_text


def explain(failing: Failing, error: BaseException, text: str) -> str | None:
    """Return what to write instead, or None when neither text nor values say it.

    Args:
        failing: the expression that failed.
        error: what was raised; nothing it holds is trusted.
        text: its message, bounded.
    """
    node, variables = failing.node, variables_of(error)
    if isinstance(error, ToolError):
        return own_argument(failing, text, variables) or passing_failure(error)
    if isinstance(error, NameError):
        near = for_name(error, text) or ""
        return near if near.startswith("did you mean") else explain_name(failing, error)
    if isinstance(error, TypeError | AttributeError) and "NoneType" in text:
        return explain_none(failing, text) or explain_operand(failing, text, variables)
    if isinstance(error, TypeError) and "string indices must be" in text:
        found = loop_over_dict(error) or _loop_over_result(failing, error)
        return found or explain_item(failing, error, text, variables)
    if isinstance(error, KeyError) and _is_format(node):
        return f"give .format() a value for {text}"
    if isinstance(error, KeyError | IndexError | TypeError):
        if isinstance(node, ast.Subscript) and "unhashable type: 'dict'" in text:
            return unhashable(failing, node.slice, variables)
        found = explain_item(failing, error, text, variables)
        if found is not None:
            return found
    if isinstance(error, TypeError):
        return explain_call(failing, text, variables) or explain_operand(failing, text, variables)
    return explain_text(failing, error, text, variables)


def _is_format(node: ast.AST) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in ("format", "format_map")


def _loop_over_result(failing: Failing, error: BaseException) -> str | None:
    """Explain a text that is a key, because the script loops over a dict that it gave no name."""
    node = failing.node
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)):
        return None
    name = node.value.id
    for loop in ast.walk(failing.tree):
        if not (isinstance(loop, ast.For | ast.comprehension) and isinstance(loop.target, ast.Name)):
            continue
        if loop.target.id == name and isinstance(loop.iter, ast.Call | ast.Await):
            result = failing.shown(loop.iter)
            if isinstance(loop, ast.comprehension):  # from Python 3.12 on its variable is gone by now
                return f"a loop over a dict gives its keys: loop over the list in what `{result}` gave"
            key = variables_of(error).get(name)
            if type(key) is not str:
                return None
            inner = f"({result})" if isinstance(loop.iter, ast.Await) else result
            return (
                f"`{result}` gave a dict, and a loop over a dict gives its keys, here {key[:60]!r}: "
                f"loop over the list in it, such as `{inner}[{key[:60]!r}]`, or over its `.items()`"
            )
    return None
