"""Words for mistakes: which name was probably meant, and what to write in Python for it.

Suggests only names the caller may use anyway; never looks into an object beyond its exact type.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from bascule.guest.calls import ToolCall, is_coroutine_like

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


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the known names most like ``name``, best first."""
    candidates = [item for item in known if item != name]
    lowered = {item.lower(): item for item in reversed(candidates)}
    found = get_close_matches(name.lower(), lowered, n=count, cutoff=0.66)
    return [lowered[item] for item in found]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return ``did you mean `x`?`` for the most likely names, or None."""
    found = nearest(name, known)
    return "did you mean " + " or ".join(f"`{item}`" for item in found) + "?" if found else None


def missing_attribute(value: object, name: str, known: Collection[str]) -> AttributeError:
    """Return the error for a name that ``value`` does not give. It carries no object."""
    if isinstance(value, type):
        return AttributeError(
            _with_hint(f"type object {value.__name__!r} has no attribute {name!r}", name, known)
        )
    kind = type(value)
    if isinstance(value, ToolCall):
        return AttributeError(value.missing_await())
    if is_coroutine_like(value):
        return AttributeError(f"a coroutine has no attribute {name!r}: write `await` before the call")
    text = f"{kind.__name__!r} object has no attribute {name!r}"
    meant = _MEANT.get((kind, name))
    if meant:
        return AttributeError(f"{text}: {meant}")
    if kind is dict:
        text += f': it is a dict, write ["{name}"]'
        return AttributeError(_with_hint(text, name, known))
    if kind is types.NoneType:
        return AttributeError(f"{text}: the value is None, test for that first")
    return AttributeError(_with_hint(text, name, known))


def _with_hint(text: str, name: str, known: Collection[str]) -> str:
    hint = did_you_mean(name, known)
    return f"{text}; {hint}" if hint else text
