"""What to write instead of an index or a key that a value does not have.

Looks at the values of the failed line as `known_values` knows them.
"""

from __future__ import annotations

import ast
from typing import Final

from bascule.guest.advice import did_you_mean
from bascule.guest.failing import Failing
from bascule.guest.known_values import (
    Variables,
    as_dict,
    as_list,
    is_exception,
    is_small,
    kind_of,
    list_keys,
    shown_keys,
    text_keys,
    value_of,
)
from bascule.guest.schemas import UNKNOWN

_FILLS: Final = {"append": "[]", "extend": "[]", "insert": "[]", "add": "set()", "update": "{}"}
"""Methods with which scripts fill what they collect, and what they begin with."""

_MAX_CANDIDATES: Final = 500


def explain_item(failing: Failing, error: BaseException, text: str, variables: Variables) -> str | None:
    """Return what to write instead of the subscript that failed, or None when its parts are not known."""
    node = failing.node
    if not isinstance(node, ast.Subscript):
        return None
    if isinstance(error, IndexError) and failing.shown(node.value).endswith("argv"):
        return "scripts get no arguments: assign the value in the script"
    owner = value_of(node.value, variables)
    if (found := as_dict(owner)) is not None:
        return _in_dict(failing, node, found, error, variables)
    if (rows := as_list(owner)) is not None:
        return _in_list(failing, node, rows, variables)
    if type(owner) is str and isinstance(error, TypeError):
        return _in_text(failing, node, owner, variables)
    if is_exception(owner):
        return _in_exception(failing, node.value)
    if isinstance(node.value, ast.Name) and owner is UNKNOWN and failing.is_caught_as(node.value.id):
        return _in_exception(failing, node.value)  # its name is gone when the handler is left
    if owner is UNKNOWN and isinstance(error, TypeError) and "list indices" in text:
        taken = f"`{failing.shown(node.value)}[0]`"
        return f"it is a list: loop over it, or take one item first, as in {taken}"
    kind = kind_of(owner) if type(owner) in (int, float, bool) else None
    return None if kind is None else f"`{failing.shown(node.value)}` is {kind}: it has no items"


def _in_dict(
    failing: Failing,
    node: ast.Subscript,
    found: dict[object, object],
    error: BaseException,
    variables: Variables,
) -> str | None:
    name = failing.shown(node.value)
    key = error.args[0] if isinstance(error, KeyError) and error.args else value_of(node.slice, variables)
    is_slice = isinstance(node.slice, ast.Slice)
    if not is_slice and isinstance(error, TypeError):
        return None
    if is_slice or type(key) is int:
        lists = list_keys(found)
        if is_small(key) and str(key) in text_keys(found):
            return f"the keys of `{name}` are texts: write `{name}[str({failing.shown(node.slice)})]`"
        if len(lists) == 1 and not any(type(other) is int for other in found):
            taken = f"{name}[{lists[0]!r}][{failing.shown(node.slice)}]"
            return f"`{name}` is {kind_of(found)}: write `{taken}`"
        if is_slice:
            return f"`{name}` is {kind_of(found)}: slice the list in it, or `list({name}.items())`"
    if type(key) is str:
        near = did_you_mean(key, text_keys(found)[:_MAX_CANDIDATES])
        if near is not None:
            return near
        if key.isdecimal() and any(is_small(other) and str(other) == key for other in found):
            return f"the keys of `{name}` are numbers: write `{name}[int({failing.shown(node.slice)})]`"
    return _grown(failing, node, found) or f"its keys are: {shown_keys(found)}"


def _grown(failing: Failing, node: ast.Subscript, found: dict[object, object]) -> str | None:
    """Explain a dict that the script fills, where the first value of a key is missing."""
    name, key = failing.shown(node.value), failing.shown(node.slice)
    if type(found) is not dict:
        return f"`{name}` was made without a default: write `defaultdict(int)`, or list, or set"
    parent = failing.parent(node)
    if isinstance(node.slice, ast.Constant) and found:
        parent = None
    match parent:
        case ast.AugAssign(op=ast.Add()) if parent.target is node:
            first = f"{name}[{key}] = {name}.get({key}, 0) + {failing.shown(parent.value)}"
        case ast.Attribute(attr=method) if method in _FILLS:
            first = f"{name}.setdefault({key}, {_FILLS[method]}).{method}(...)"
        case ast.Subscript(ctx=ast.Store()) if parent.value is node:
            first = f"{name}.setdefault({key}, {{}})[{failing.shown(parent.slice)}] = ..."
        case _:
            return None if found else f"`{name}` is empty"
    return f"`{name}` does not have this key yet: write `{first}`"


def _in_list(failing: Failing, node: ast.Subscript, rows: list[object], variables: Variables) -> str | None:
    name = failing.shown(node.value)
    key = value_of(node.slice, variables)
    if not rows:
        return f"`{name}` is empty: test for that first, `if {name}:`"
    if type(key) is int:
        return f"`{name}` has {len(rows)} items: the last is `{name}[-1]`"
    if type(key) is str and key.removeprefix("-").isdecimal():
        return f"positions are numbers: write `{name}[{key}]`, without quotes"
    if type(key) is float or isinstance(node.slice, ast.BinOp):
        return "positions are whole numbers: write `//` or int(...)"
    first = rows[0]
    row = as_dict(first)
    if row is not None:
        taken = f"{name}[0][{failing.shown(node.slice)}]"
        if type(key) is str and key not in text_keys(row):
            return f"`{name}` is a list: loop over it; its items are dicts with {shown_keys(row)}"
        return f"`{name}` is a list: loop over it, or take one item first, as in `{taken}`"
    if type(first) is list:
        return f"`{name}` is a list of lists: loop over it, and over each list in it"
    kind = kind_of(first)
    shown = f"; the first is {kind}" if kind else ""
    return f"`{name}` is a list: loop over it, or take one item, as in `{name}[0]`{shown}"


def _in_text(failing: Failing, node: ast.Subscript, owner: str, variables: Variables) -> str:
    name = failing.shown(node.value)
    source = failing.loop_of(node.value)
    if source is not None and type(value_of(source, variables)) is str:
        whole = failing.shown(source)
        parsed = f"json.loads({whole}), or {whole}.splitlines()"
        return f"`{whole}` is text, and going through it gives letters: {parsed}"
    if owner.lstrip()[:1] in ("{", "["):
        return f"`{name}` is text: parse it first, `json.loads({name})[{failing.shown(node.slice)}]`"
    origin = f": going through `{failing.shown(source)}` gives texts" if source is not None else ""
    return f"`{name}` is {kind_of(owner)}, not a dict{origin}"


def _in_exception(failing: Failing, value: ast.expr) -> str:
    name = failing.shown(value)
    if isinstance(value, ast.Name) and failing.is_caught_as(value.id):
        return f"`{name}` is an exception: `str({name})` is its message"
    return (
        f"`{name}` is an exception, which `return_exceptions=True` gives for a call that failed: "
        f"test `isinstance({name}, Exception)` first"
    )
