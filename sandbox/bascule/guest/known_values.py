"""What the expressions of a failed line were: built-in values, looked up without running anything.

Reads variables, and items of exact dicts, lists, tuples and texts; whatever would call code of the script is
not known.
"""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, cast

from bascule.guest.schemas import UNKNOWN
from bascule.guest.stored import isinstance_of

_MAX_ITEMS: Final = 10_000
_MAX_KEYS: Final = 30
_MAX_CHARACTERS: Final = 60
_MAX_NUMBER: Final = 10**20
"""Longer whole numbers are not shown: from 4,300 digits on Python refuses to."""

_DICTS: Final = (dict, defaultdict)

Variables = Mapping[str, object]


def value_of(node: ast.AST | None, variables: Variables) -> object:
    """Return the value an expression had, or UNKNOWN."""
    match node:
        case ast.Constant():
            return node.value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return -number
        case ast.Name():
            return variables.get(node.id, UNKNOWN)
        case ast.Subscript():
            return _item_of(value_of(node.value, variables), value_of(node.slice, variables))
        case _:
            return UNKNOWN


def _item_of(container: object, key: object) -> object:
    if type(container) in _DICTS and type(key) in (str, int):
        items = itertools.islice(cast("dict[object, object]", container).items(), _MAX_ITEMS)
        return next((item for name, item in items if type(name) is type(key) and name == key), UNKNOWN)
    if type(container) in (list, tuple, str) and type(key) is int:
        rows = cast("list[object]", container)
        return rows[key] if -len(rows) <= key < len(rows) else UNKNOWN
    return UNKNOWN


def as_dict(value: object) -> dict[object, object] | None:
    """Return the value if it is a dict whose methods are Python's own."""
    return cast("dict[object, object]", value) if type(value) in _DICTS else None


def as_list(value: object) -> list[object] | None:
    """Return the value if it is a plain list."""
    return cast("list[object]", value) if type(value) is list else None


def is_small(value: object) -> bool:
    """Return whether a value is a whole number that can be shown."""
    return type(value) is int and -_MAX_NUMBER < value < _MAX_NUMBER


def is_exception(value: object) -> bool:
    """Return whether a value is an exception, without asking it."""
    return isinstance_of(type(value), BaseException)


def text_keys(value: dict[object, object]) -> list[str]:
    """Return the texts among a dict's keys, a bounded number of them."""
    return [key for key in itertools.islice(value, _MAX_ITEMS) if type(key) is str]


def list_keys(value: dict[object, object]) -> list[str]:
    """Return the keys of the lists in a dict such as the page of a result."""
    items = itertools.islice(value.items(), _MAX_ITEMS)
    return [key for key, item in items if type(key) is str and type(item) is list]


def shown_keys(value: dict[object, object]) -> str:
    """Return a dict's keys as a message lists them."""
    plain = (key for key in value if type(key) is str or is_small(key))
    shown = ", ".join(repr(key)[:_MAX_CHARACTERS] for key in itertools.islice(plain, _MAX_KEYS))
    return f"{shown} and {len(value) - _MAX_KEYS} more" if len(value) > _MAX_KEYS else shown


def kind_of(value: object) -> str | None:
    """Return in words what a value is, or None when that is not for a message."""
    if (rows := as_list(value)) is not None:
        return f"a list of {len(rows)}" if rows else "an empty list"
    if (found := as_dict(value)) is not None:
        return f"a dict with {shown_keys(found)}" if found else "an empty dict"
    if type(value) is str:
        text = value if len(value) <= _MAX_CHARACTERS else f"{value[:_MAX_CHARACTERS]}…"
        return f"the text {text!r}"
    if type(value) is bool or value is None:
        return repr(value)
    if type(value) is float or is_small(value):
        return f"the number {value!r}"
    if type(value) in (set, tuple):
        return f"a {type(value).__name__}"
    if is_exception(value):
        return f"the exception {type(value).__name__}"
    return None
