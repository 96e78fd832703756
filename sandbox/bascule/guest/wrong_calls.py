"""What to write instead of a call that does not fit its function, or of a value that is no function.

Reads the script's own definitions, the values of the failed line, and the tools among them.
"""

from __future__ import annotations

import ast
import re
from typing import Final

from bascule.guest.advice import did_you_mean
from bascule.guest.calls import Tool
from bascule.guest.errors import ToolError
from bascule.guest.failing import Failing
from bascule.guest.futures import Future
from bascule.guest.known_values import Variables, as_dict, as_list, kind_of, text_keys, value_of
from bascule.guest.pool_futures import PoolFuture
from bascule.guest.rules.names import NAMES

_MISFIT: Final = re.compile(
    r"^([\w.<>]+)\(\) (?:got an? unexpected|got multiple|missing \d+|takes \d+|takes from)"
)


def explain_call(failing: Failing, text: str, variables: Variables) -> str | None:
    """Return what to write instead of the call that failed, or None when that is not known.

    Args:
        failing: the expression that failed.
        text: the TypeError's message.
        variables: of the failed line.
    """
    node = failing.node
    if "object is not callable" in text and isinstance(node, ast.Call):
        return _no_function(failing, node, text, variables)
    if re.search(r"object is not (subscriptable|iterable)|has no len", text):
        return _unfinished(failing, node, variables)
    misfit = _MISFIT.search(text)
    if misfit is None:
        return None
    name = misfit[1].removesuffix(".__init__").rpartition(".")[2]
    return _own_signature(failing, name, text)


def _no_function(failing: Failing, call: ast.Call, text: str, variables: Variables) -> str | None:
    name = failing.shown(call.func)
    value = value_of(call.func, variables)
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("result", "map", "submit"):
        return (
            "submit() and map() take the function and its arguments apart: `submit(f, x)`, not `submit(f(x))`"
        )
    if not isinstance(call.func, ast.Name):
        found = as_dict(value)
        return f"`{name}` is {kind_of(value)}: it takes square brackets" if found is not None else None
    is_hidden = name in NAMES
    found, rows = as_dict(value), as_list(value)
    argument = failing.shown(call.args[0]) if len(call.args) == 1 else "..."
    if not is_hidden and (found or rows):
        return f"`{name}` is {kind_of(value)}: write square brackets, `{name}[{argument}]`"
    if not is_hidden and type(value) is str:
        return f"`{name}` is {kind_of(value)}, not a function: call the function by its name"
    binding = failing.last_binding(name, call.lineno)
    if binding is None:
        return None
    return f"`{name}` was assigned in line {binding[0]}, which hides the function: choose another name"


def _unfinished(failing: Failing, node: ast.AST, variables: Variables) -> str | None:
    """Explain a tool, a future or a task that was taken for its result."""
    owner = node.value if isinstance(node, ast.Subscript) else node
    if isinstance(node, ast.For):
        owner = node.iter
    elif isinstance(node, ast.Call) and len(node.args) == 1:
        owner = node.args[0]
    if not isinstance(owner, ast.expr):
        return None
    value, name = value_of(owner, variables), failing.shown(owner)
    if type(value) is Tool:
        tool = repr(value).removeprefix("<tool ").removesuffix(">")
        return f"`{name}` is the tool itself: call it, `{tool}(...)`"
    if type(value) is PoolFuture:
        return f"`{name}` is a future: `{name}.result()` is its value"
    if isinstance(value, Future):
        return f"`{name}` is a task: `await {name}` gives its value"
    return None


def _own_signature(failing: Failing, name: str, text: str) -> str | None:
    """Show the parameters of the script's own function or dataclass that a call does not fit."""
    counted = re.search(r"takes (\d+) pos\w+ arg\w+ but (\d+)", text)
    own = failing.definition(name)
    if own is None:
        return None
    if isinstance(own, ast.ClassDef):
        return _own_class(failing, own, text)
    arguments = own.args.posonlyargs + own.args.args
    is_method = isinstance(failing.parent(own), ast.ClassDef) and not own.decorator_list
    if is_method and (not arguments or arguments[0].arg != "self"):
        return (
            f"the first parameter of a method is `self`: write `def {name}(self, ...)` in line {own.lineno}"
        )
    if counted is not None and is_method:
        arguments = arguments[1:]
    unexpected = re.search(r"unexpected keyword argument '(\w+)'", text)
    names = [argument.arg for argument in arguments + own.args.kwonlyargs]
    near = did_you_mean(unexpected[1], names) if unexpected else None
    shown = f"line {own.lineno} has `def {name}({failing.shown(own.args)})`"
    return f"{near} {shown}" if near else shown


def _own_class(failing: Failing, own: ast.ClassDef, text: str) -> str | None:
    made = next(
        (part for part in own.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None
    )
    if made is not None:
        return f"line {made.lineno} has `def __init__({failing.shown(made.args)})`"
    fields = [
        part.target.id
        for part in own.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    ]
    if not fields:
        return None
    call = failing.node
    spread = (
        next((k.value for k in call.keywords if k.arg is None), None) if isinstance(call, ast.Call) else None
    )
    shown = f"{own.name} (line {own.lineno}) has the fields {', '.join(fields)}"
    if spread is None or "unexpected keyword" not in text:
        return shown
    row = failing.shown(spread)
    row = row if isinstance(spread, ast.Name) else "row"
    listed = ", ".join(repr(field) for field in fields[:12])
    return f"{shown}: take these alone, `{own.name}(**{{k: {row}[k] for k in ({listed},)}})`"


def passing_failure(error: ToolError) -> str | None:
    """Say how to go on after a failure of a tool's service that may pass."""
    if error.kind not in ("failed", "unavailable", "timeout"):
        return None
    kinds = ("TimeoutError", TimeoutError), ("ConnectionError", ConnectionError)
    name = next((name for name, kind in kinds if isinstance(error, kind)), None)
    if name is None:
        return None
    return f"it may pass: catch {name} around this one call and call again, a few times at most"


def own_argument(failing: Failing, text: str, variables: Variables) -> str | None:
    """Explain a whole dict given to a tool where one of its values was meant, as in ``get(id=row)``."""
    call = failing.node
    if not isinstance(call, ast.Call):
        return None
    for keyword in call.keywords:
        found = as_dict(value_of(keyword.value, variables))
        if found is None or keyword.arg is None or f"- {keyword.arg}: must be" not in text:
            continue
        shown = failing.shown(keyword.value)
        if keyword.arg in text_keys(found):
            return f"write `{keyword.arg}={shown}[{keyword.arg!r}]`"
        return f"`{shown}` is {kind_of(found)}: give one of its values"
    return None
