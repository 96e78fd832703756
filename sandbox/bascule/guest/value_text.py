"""Texts of values that hold no memory address but leave the script's own words as they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from bascule.guest.ending import Abandoned, RunEnded
from bascule.guest.stored import isinstance_of

MAX_REPR_CHARACTERS = 500
"""Length of the text that stands for a value without a plain form."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def bounded_repr(value: object) -> str:
    """Return a short repr without addresses, whatever the script's ``__repr__`` does."""
    try:
        text = stable_repr(value)
    except (Abandoned, RunEnded):
        raise
    except BaseException:
        # Whatever the script's own __repr__ raised: the type still says something.
        return f"<{type(value).__name__}>"
    if len(text) > MAX_REPR_CHARACTERS:
        text = text[:MAX_REPR_CHARACTERS] + "..."
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def stable_str(value: object) -> str:
    """Return ``str(value)`` without memory addresses; text itself is left as it is."""
    if type(value) is str:
        return value
    text = str(value)
    return stable_repr(value) if " at 0x" in text and type(value) in _SHOWN_BY_REPR else _clean(value, text)


def stable_repr(value: object) -> str:
    """Return ``repr(value)`` without memory addresses; text inside containers is left as it is."""
    text = repr(value)
    if " at 0x" not in text or type(value) in (str, bytes, int, float):
        return text
    shown = _SHOWN_BY_REPR.get(type(value))
    return _clean(value, text) if shown is None else shown(value)


def _clean(value: object, text: str) -> str:
    # str subclasses and exceptions print the script's own words.
    if isinstance_of(type(value), str) or isinstance_of(type(value), BaseException):
        return text
    return _ADDRESS.sub("", text)


def _items_repr(items: Iterable[object]) -> str:
    return ", ".join(map(stable_repr, items))


_SHOWN_BY_REPR: dict[type, Callable[[Any], str]] = {
    list: lambda value: f"[{_items_repr(value)}]",
    tuple: lambda value: f"({_items_repr(value)},)" if len(value) == 1 else f"({_items_repr(value)})",
    set: lambda value: f"{{{_items_repr(value)}}}",
    frozenset: lambda value: f"frozenset({{{_items_repr(value)}}})",
    dict: lambda value: (
        "{" + ", ".join(f"{stable_repr(key)}: {stable_repr(item)}" for key, item in value.items()) + "}"
    ),
}
