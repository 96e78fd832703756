"""Whether a condition of a rule holds for one value, with a third answer when that cannot be told.

Values are canonical arguments as JSON data, chosen by an untrusted script. A value that is missing or of a
type the operator cannot compare gives None: deny and ask rules then match, allow rules do not.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from bascule.bridge.result import JsonValue
from bascule.bridge.rules import Condition

_DECIMAL = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")
_COMPARISONS: Final[Mapping[str, Callable[[Decimal, Decimal], bool]]] = {
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}


class Missing:
    """The type of `MISSING`: an argument path that leads nowhere."""


MISSING: Final = Missing()


def find_argument(arguments: Mapping[str, JsonValue], path: str) -> JsonValue | Missing:
    """Return the value at a dotted path through objects, or `MISSING`."""
    value: JsonValue | Missing = dict(arguments)
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value


def holds(condition: Condition, value: JsonValue | Missing) -> bool | None:
    """Tell whether every operator holds: False if one does not, else None if one is unsure."""
    answers = [
        _holds_one(name, getattr(condition, name), value) for name in sorted(condition.model_fields_set)
    ]
    if False in answers:
        return False
    return None if None in answers else True


def glob_matches(pattern: str, text: str) -> bool:
    """Match anchored: ``*`` is any text, ``?`` one character, nothing else is special.

    The pieces between stars are searched from left to right, never back: a text is as long as a guest likes.
    """
    first, *pieces = pattern.split("*")
    if not pieces:
        return len(text) == len(first) and _piece(first).match(text) is not None
    last = pieces.pop()
    at, end = len(first), len(text) - len(last)
    if end < at or not _piece(first).match(text) or not _piece(last).match(text, end):
        return False
    for piece in pieces:
        found = text.find(piece, at, end) if "?" not in piece else _search(piece, text, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _search(piece: str, text: str, at: int, end: int) -> int:
    found = _piece(piece).search(text, at, end)
    return -1 if found is None else found.start()


def _piece(piece: str) -> re.Pattern[str]:
    return re.compile("".join("." if char == "?" else re.escape(char) for char in piece), re.DOTALL)


def _holds_one(name: str, operand: object, value: JsonValue | Missing) -> bool | None:
    if name == "exists":
        return (not isinstance(value, Missing) and value is not None) is operand
    if isinstance(value, Missing):
        return None
    if name in ("eq", "ne"):
        same = _same(operand, value)
        return same if same is None or name == "eq" else not same
    if name in ("in_", "not_in"):
        return _holds_membership(name, operand, value)
    if name in _COMPARISONS:
        left, right = _number(value), _number(operand)
        return None if left is None or right is None else _COMPARISONS[name](left, right)
    if name == "glob":
        return glob_matches(operand, value) if isinstance(value, str) and isinstance(operand, str) else None
    if isinstance(value, str | list | dict) and isinstance(operand, int):  # len_lte, the only one left
        return len(value) <= operand
    return None


def _holds_membership(name: str, operand: object, value: JsonValue) -> bool | None:
    assert isinstance(operand, tuple)
    answers = [_same(item, value) for item in operand]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if True in answers:
        return name == "in_"
    if answers and all(answer is None for answer in answers):
        return None
    return name != "in_"


def _same(operand: object, value: JsonValue) -> bool | None:
    """Compare scalars of one JSON type; numbers compare by value, and a null operand equals only null."""
    if operand is None:
        return value is None
    if value is None:
        return None
    if isinstance(value, list | dict) or isinstance(operand, bool) is not isinstance(value, bool):
        return None
    if isinstance(operand, str) is not isinstance(value, str):
        return None
    return operand == value


def _number(value: object) -> Decimal | None:
    """Return a number, or a string that is one: canonical arguments carry decimals as strings."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(str(value))
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return Decimal(value)
    return None
