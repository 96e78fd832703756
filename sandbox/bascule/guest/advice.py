"""Words for mistakes: which name was probably meant, and what to write in Python for it.

Suggests only names the caller may use anyway; never looks into an object beyond its exact type.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable
from typing import TypeVar

from bascule.guest.calls import ToolCall, is_coroutine_like
from bascule.guest.none_values import VALUE_IS_NONE
from bascule.guest.stored import isinstance_of

_MEANT: dict[tuple[type, str], str] = {
    (list, "push"): "write `.append(...)`",
    (list, "add"): "write `.append(...)`",
    (list, "length"): "write `len(...)`",
    (list, "size"): "write `len(...)`",
    (list, "contains"): "write `item in rows`",
    (list, "map"): "write a comprehension",
    (list, "filter"): "write a comprehension with `if`",
    (list, "forEach"): "write a `for` loop",
    (list, "join"): "write `separator.join(texts)`",
    (dict, "has_key"): "write `key in data`",
    (dict, "iteritems"): "write `.items()`",
    (dict, "itervalues"): "write `.values()`",
    (dict, "iterkeys"): "write `.keys()`",
    (dict, "length"): "write `len(...)`",
    (str, "length"): "write `len(...)`",
    (str, "contains"): "write `part in text`",
    (str, "toLowerCase"): "write `.lower()`",
    (str, "toUpperCase"): "write `.upper()`",
    (str, "trim"): "write `.strip()`",
    (str, "startsWith"): "write `.startswith(...)`",
    (str, "endsWith"): "write `.endswith(...)`",
    (str, "includes"): "write `part in text`",
    (str, "decode"): "it is text already: leave `.decode` out",
    (set, "append"): "write `.add(...)`",
}


_Hinted = TypeVar("_Hinted", AttributeError, ImportError)

_SHORT = 3
"""Names of so few letters, such as `len`, hide in too many others to be what a longer one meant."""

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: messages leave the module out


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the known names most like ``name``, best first."""
    from difflib import get_close_matches  # only mistakes pay for the import

    candidates = [item for item in known if item != name and (len(item) > _SHORT or len(name) <= _SHORT + 2)]
    lowered = {item.lower(): item for item in reversed(candidates)}
    wanted = name.lower()
    parts = [item for item in reversed(lowered) if wanted in item.split("_")]
    close = get_close_matches(wanted, lowered, n=count, cutoff=0.66)
    found = parts if parts and len(name) <= _SHORT else dict.fromkeys([*close, *parts])
    return [lowered[item] for item in found][:count]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return ``did you mean `x`?`` for the most likely names, or None."""
    found = nearest(name, known)
    return "did you mean " + " or ".join(f"`{item}`" for item in found) + "?" if found else None


def hinted(error: _Hinted, hint: str | None) -> _Hinted:
    """Attach a hint for the report; scripts see the message alone, as plain Python words it."""
    if hint:
        error.__dict__["hint"] = hint
    return error


def missing_attribute(value: object, name: str, known: Collection[str]) -> AttributeError:
    """Return the error for a name that ``value`` does not give. It carries no object."""
    if isinstance(value, type):
        text = f"type object {shown_name(value)!r} has no attribute {name!r}"
        return hinted(AttributeError(text), _of_module(value, name) or did_you_mean(name, known))
    if isinstance(value, ToolCall):
        return AttributeError(value.missing_await())
    if is_coroutine_like(value):
        return AttributeError(f"a coroutine has no attribute {name!r}: write `await` before the call")
    kind = type(value)
    hint = _MEANT.get((kind, name)) or did_you_mean(name, known)
    if kind is dict:
        hint = _MEANT.get((kind, name)) or f'it is a dict: write ["{name}"]'
    elif kind is types.NoneType:
        hint = VALUE_IS_NONE
    elif isinstance_of(kind, BaseException):
        hint = hint or "`str(error)` is its message, `type(error).__name__` its name"
    shown = "function" if kind is types.MethodType else shown_name(kind)  # a method asks its function
    return hinted(AttributeError(f"{shown!r} object has no attribute {name!r}"), hint)


def _of_module(kind: type, name: str) -> str | None:
    """Return what to write for a name of the module that has a class's name, or of another class in it."""
    if kind.__module__ != "datetime":
        return None
    if (kind.__name__, name) == ("date", "strptime"):
        return "write `datetime.strptime(text, form).date()`"
    if (kind.__name__, name) == ("date", "now"):
        return "write `date.today()`"
    is_class = name in ("date", "datetime", "time", "timedelta", "timezone")
    return f"this is the class: add `from datetime import {name}` and write `{name}`" if is_class else None


def shown_name(kind: type) -> str:
    """Return the name of a type as CPython's messages write it."""
    is_static = kind.__module__ in (
        "datetime",
        "decimal",
        "collections",
        "itertools",
        "functools",
        "re",
        "sys",
    )
    return (
        f"{kind.__module__}.{kind.__name__}"
        if is_static and not kind.__flags__ & _HEAP_TYPE
        else kind.__name__
    )
