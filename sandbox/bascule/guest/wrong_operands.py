"""What to write instead of an operand or argument that is of another kind than the script takes it for.

Looks at the values of the failed line as `known_values` knows them, and at the words of CPython's message.
"""

from __future__ import annotations

import ast
import datetime
import re
from typing import Final

from bascule.guest.failing import Failing
from bascule.guest.known_values import (
    Variables,
    as_dict,
    as_list,
    is_exception,
    kind_of,
    shown_keys,
    value_of,
)

_NEEDS_NUMBER: Final = re.compile(
    r"must be a string or a real number, not|must be a string, a bytes-like object or a real number, not|"
    r"doesn't define __(round|trunc|floor|ceil)__|bad operand type for (abs|unary)|must be real number, not|"
    r"cannot be interpreted as an integer|to numerator/denominator|(format|number) is required, not|"
    r"no len\(\)|is not iterable"
)
_ISO_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TEXT_AND_TEXT: Final = re.compile(r"unsupported operand type\(s\) for -=?: 'str' and 'str'")
_JOINS: Final = re.compile(
    r"expected str instance, (int|float|bool|dict|list|NoneType|\w*Decimal|date\w*) found"
)
_TYPES: Final = re.compile(r"'([\w.]+)' and '([\w.]+)'")


def explain_operand(failing: Failing, text: str, variables: Variables) -> str | None:
    """Return what to write instead of the wrong operand or argument, or None when it is not known.

    Args:
        failing: the expression that failed.
        text: the TypeError's message.
        variables: of the failed line.
    """
    node = failing.node
    match node:
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            return _two(failing, left, right, text, variables)
        case ast.AugAssign(target=left, value=right):
            if "is not iterable" in text:
                one = f"{failing.shown(left)}.append({failing.shown(right)})"
                return f"`+=` adds the items of a list: write `{one}`"
            return _two(failing, left, right, text, variables)
        case ast.Call():
            return _in_call(failing, node, text, variables)
        case ast.expr() if "is not iterable" in text and failing.is_looped_over(node):
            return _wrong_value(failing, node, text, variables)
        case ast.For() if "is not iterable" in text:
            return _wrong_value(failing, node.iter, text, variables)
        case _:
            return None


def as_number(expression: str, value: object = None) -> str:
    """Return how to make a number, or a date, of a text."""
    moment = as_moment(expression, value)
    return moment or f"float({expression})"


def as_moment(expression: str, value: object) -> str | None:
    """Return how to read a text that is an ISO date or time, or None when it is none."""
    if type(value) is not str or not _ISO_DATE.match(value):
        return None
    try:
        datetime.datetime.fromisoformat(value)
    except ValueError:
        return None
    kind = "date" if _ISO_DATE.fullmatch(value) else "datetime"
    return f"{kind}.fromisoformat({expression})"


def _two(failing: Failing, left: ast.expr, right: ast.expr, text: str, variables: Variables) -> str | None:
    values = value_of(left, variables), value_of(right, variables)
    shown = failing.shown(left), failing.shown(right)
    if text.startswith("can't multiply sequence by non-int"):
        index = 0 if type(values[0]) is str else 1
        return _text_for_number(failing, shown[index], values[index], shown[1 - index], "float")
    if text.startswith("can only concatenate str") and type(values[0]) is str:
        said = _text_for_number(failing, shown[0], values[0], shown[1], "float")
        return said if "f-string" in said else f"{said}; or join texts with an f-string"
    types = _TYPES.search(text)
    if types is None:
        return None
    first, second = types[1].removeprefix("datetime."), types[2].removeprefix("datetime.")
    if first == second == "str" and _TEXT_AND_TEXT.search(text):
        made = [as_number(name, value) for name, value in zip(shown, values, strict=True)]
        return f"both are texts: write `{made[0]} - {made[1]}`"
    if {first, second} <= {"date", "datetime", "int", "float"} and {first, second} & {"int", "float"}:
        amount = shown[1] if second in ("int", "float") else shown[0]
        return f"write `timedelta(days={amount})` for the number"
    for index, kind in enumerate((first, second)):
        other = (second, first)[index]
        if kind == "str" and other in ("date", "datetime"):
            return _as_date(shown[index], values[index], other)
        if kind == "str" and other in ("int", "float", "Decimal", "decimal.Decimal"):
            return _text_for_number(failing, shown[index], values[index], shown[1 - index], other)
        if kind in ("dict", "list") and (found := _taken(shown[index], values[index])):
            return found
    return None


def _as_date(expression: str, value: object, wanted: str) -> str:
    made = as_moment(expression, value)
    if wanted == "date" and made is not None and made.startswith("datetime"):
        made += ".date()"
    if made is None and type(value) is str:
        return f"`{expression}` is {kind_of(value)}: make a date of it first, `datetime.strptime(text, form)`"
    made = made or f"{wanted}.fromisoformat({expression})"
    return f"`{expression}` is a text: make a date of it first, `{made}`"


def _text_for_number(failing: Failing, expression: str, value: object, other: str, wanted: str) -> str:
    if type(value) is str and not re.fullmatch(r"\s*[-+]?[\d.,_]+(e[-+]?\d+)?\s*", value):
        kind = kind_of(value)
        if isinstance(failing.node, ast.BinOp) and isinstance(failing.node.op, ast.Add):
            return f"`{expression}` is {kind}: join texts with an f-string, or `str({other})`"
        return f"`{expression}` is {kind}, not a number"
    kind = kind_of(value) or "a text"
    number = "Decimal" if "Decimal" in wanted else "float"
    return f"`{expression}` is {kind}: convert the text with int(...) or float(...), `{number}({expression})`"


def _taken(expression: str, value: object) -> str | None:
    """Say that a whole dict or list was taken where one of its values was meant."""
    found = as_dict(value)
    if found:
        key = next(iter(found))
        example = f", as in `{expression}[{key!r}]`" if type(key) is str else ""
        return f"`{expression}` is a dict with {shown_keys(found)}: take one of its values{example}"
    rows = as_list(value)
    if rows is not None:
        return f"`{expression}` is {kind_of(rows)}: loop over it, or take one item, as in `{expression}[0]`"
    return None


def _in_call(failing: Failing, call: ast.Call, text: str, variables: Variables) -> str | None:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    only = call.args[0] if len(call.args) == 1 else None
    if name == "sum" and only is not None and _TYPES.search(text):
        return _summed(failing, only, text, variables)
    if "'NoneType'" in text and "not supported between" in text:
        return _none_in_order(failing, call, name)
    if name == "range" and only is not None and (rows := as_list(value_of(only, variables))) is not None:
        shown = failing.shown(only)
        return f"`{shown}` is {kind_of(rows)}: write `for item in {shown}`, or `range(len({shown}))`"
    if isinstance(call.func, ast.Attribute) and call.func.attr == "join" and _JOINS.search(text):
        return _joined(failing, call, text, variables)
    if "unhashable type: 'dict'" in text and isinstance(call.func, ast.Attribute) and only is not None:
        return unhashable(failing, only, variables)
    if _NEEDS_NUMBER.search(text):
        for argument in call.args:
            found = _wrong_value(failing, argument, text, variables)
            if found is not None:
                return found
    if "awaitable is required" in text:
        return _gathered(failing, call, variables)
    return None


def unhashable(failing: Failing, node: ast.expr, variables: Variables) -> str | None:
    """Explain a dict that was taken for a key or an item of a set."""
    found = as_dict(value_of(node, variables))
    key = next(iter(found), None) if found else None
    if type(key) is not str:
        return None
    shown = failing.shown(node)
    return f"`{shown}` is a dict: take what identifies it, such as `{shown}[{key!r}]`"


def _wrong_value(failing: Failing, node: ast.expr, text: str, variables: Variables) -> str | None:
    value, shown = value_of(node, variables), failing.shown(node)
    if isinstance(node, ast.GeneratorExp | ast.ListComp) and "type 'str' to num" in text:
        return f"these are texts: convert each, `float({failing.shown(node.elt)})`"
    if value is None:
        return f"`{shown}` is None: test for None first"
    if (found := _taken(shown, value)) is not None and "is not iterable" not in text:
        return found
    if type(value) is str and "numb" in text:
        return f"`{shown}` is {kind_of(value)}: convert it, `{as_number(shown, value)}`"
    if type(value) in (int, float, bool) and re.search(r"no len|not iterable", text):
        hint = f"; to count, loop over `range({shown})`" if type(value) is int and "iterable" in text else ""
        return f"`{shown}` is {kind_of(value)}, not a list{hint}"
    return None


def _summed(failing: Failing, only: ast.expr, text: str, variables: Variables) -> str | None:
    types = _TYPES.search(text)
    other = types[2] if types else ""
    item, rest = "x", f"for x in {failing.shown(only)}"
    if isinstance(only, ast.GeneratorExp | ast.ListComp):
        item, rest = failing.shown(only.elt), f"for {failing.shown(only.generators[0].target)} in ..."
    if other == "str":
        return f"sum() got texts: convert the text with int(...) or float(...), `sum(float({item}) {rest})`"
    if other == "coroutine":
        return f"`{item}` is not awaited: write `sum([await {item} {rest}])`, inside `async def`"
    if other == "dict":
        rows = as_list(value_of(only, variables))
        row = as_dict(rows[0]) if rows else None
        keys = f" ({shown_keys(row)})" if row else ""
        return f"sum() got dicts: take one of their values{keys}, `sum({item}[...] {rest})`"
    if other == "list":
        return f"sum() got lists: count with `sum(len({item}) {rest})`, or join them with `sum(..., [])`"
    return f"sum() got None: count it as 0, `sum({item} or 0 {rest})`" if other == "NoneType" else None


def _none_in_order(failing: Failing, call: ast.Call, name: str) -> str | None:
    if name not in ("min", "max", "sorted") and not (
        isinstance(call.func, ast.Attribute) and call.func.attr == "sort"
    ):
        return None
    key = next((keyword.value for keyword in call.keywords if keyword.arg == "key"), None)
    if isinstance(key, ast.Lambda):
        body, row = failing.shown(key.body), failing.shown(key.args)
        return (
            f"`{body}` is None for some: leave these out, "
            f"`[{row} for {row} in rows if {body} is not None]`, or give them a value, `{body} or ...`"
        )
    comprehension = call.args[0] if call.args else None
    if isinstance(comprehension, ast.GeneratorExp | ast.ListComp):
        item = failing.shown(comprehension.elt)
        return f"`{item}` is None for some: leave these out, `... if {item} is not None`"
    return "some of the values are None: leave these out, `[x for x in values if x is not None]`"


def _joined(failing: Failing, call: ast.Call, text: str, variables: Variables) -> str | None:
    separator = failing.shown(call.func.value) if isinstance(call.func, ast.Attribute) else "''"
    argument = call.args[0] if call.args else None
    if text.endswith("dict found"):
        rows = as_list(value_of(argument, variables))
        row = as_dict(rows[0]) if rows else None
        keys = f", which have {shown_keys(row)}" if row else ""
        example = f"`{separator}.join(x[...] for x in rows)`"
        return f"join() takes texts: take one of the dicts' values{keys}, {example}"
    if text.endswith("NoneType found"):
        return f"some are None: leave them out, `{separator}.join(x for x in texts if x)`"
    return f"join() takes texts: write `{separator}.join(str(x) for x in values)`"


def _gathered(failing: Failing, call: ast.Call, variables: Variables) -> str | None:
    for argument in call.args:
        value = value_of(argument, variables)
        kind = kind_of(value)
        if kind is not None and as_list(value) is None and not is_exception(value):
            return f"`{failing.shown(argument)}` is a result already ({kind[:120]}): leave gather out"
    return None
