"""Text of values without memory addresses, and ``str.format`` without attribute reading in C.

Addresses differ between runs, so they would break replay. ``str.format`` and ``format_map`` read attributes
of their arguments behind every guard (CVE-2023-41039): the one here asks the guards for each of them.
"""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import datetime
import decimal
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, cast

EXACT: frozenset[type] = frozenset(
    {
        *(str, int, float, bool, complex, bytes, bytearray, range, type(None), decimal.Decimal),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
    }
)
"""Types whose text is made of their data alone."""

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{6,16}>")

_Split = Callable[[str], tuple[int | str, Iterable[tuple[bool, int | str]]]]
_split = cast(_Split, _string.formatter_field_name_split)  # pyright: ignore[reportUnknownMemberType]
_Parse = Callable[[str], Iterable[tuple[str, str | None, str | None, str | None]]]
_parse = cast(_Parse, _string.formatter_parser)  # pyright: ignore[reportUnknownMemberType]
"""What string.Formatter itself takes templates and field names apart with."""

ReadAttribute = Callable[[object, str], object]


def without_addresses(text: str) -> str:
    """Return ``text`` without the addresses that CPython writes as ``<... at 0x7f...>``."""
    return _ADDRESS.sub(">", text) if " at 0x" in text else text


class StableText:
    """Stands in for a value where its text is made, and nowhere else."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return without_addresses(str(self._value))

    def __repr__(self) -> str:
        return without_addresses(repr(self._value))

    def __format__(self, spec: str) -> str:
        return without_addresses(format(self._value, spec))


def shown(value: object) -> object:
    """Return what to make the text of ``value`` from."""
    return value if type(value) in EXACT else StableText(value)


def stable_repr(value: object) -> str:
    """``repr`` for scripts; functions of the guest look like the built-in ones they stand for."""
    if type(value) is FunctionType and value.__module__.startswith("bascule."):
        return f"<built-in function {value.__name__}>"
    return without_addresses(repr(value))


def stable_ascii(value: object) -> str:
    """``ascii`` for scripts."""
    return without_addresses(ascii(value))


def stable_format(value: object, spec: str = "", /) -> str:
    """``format`` for scripts."""
    return without_addresses(format(value, spec))


def percent(text: Any, values: object) -> object:
    """``text % values`` for scripts, whatever the two are."""
    made: object = text % values
    is_clean = type(made) is not str or (type(text) is str and " at 0x" in text)
    return made if is_clean else without_addresses(cast(str, made))


def percent_in_place(text: Any, values: object) -> object:
    """``text %= values`` for scripts: what the target is bound to afterwards."""
    if type(text) is str:
        return percent(text, values)
    text %= values
    return text


@lru_cache(maxsize=256)
def reads_nothing(template: str) -> bool:
    """Whether no field of the template reads an attribute or an item, nested specs included."""
    try:
        fields = list(_parse(template))
    except ValueError:
        return False  # how far it would get before it fails is nobody's business
    for _, name, spec, _ in fields:
        if name and ("." in name or "[" in name):
            return False
        if spec and not reads_nothing(spec):
            return False
    return True


class SafeFormatter:
    """Formats as ``str.format`` does, reading attributes through the guards.

    Args:
        read_attribute: guarded getattr.
    """

    def __init__(self, read_attribute: ReadAttribute) -> None:
        self._read_attribute = read_attribute

    def text_format(self, template: str, /, *args: object, **kwargs: object) -> str:
        """``str.format`` for scripts."""
        if type(template) is str and reads_nothing(template):
            if kwargs:
                kwargs = {key: shown(value) for key, value in kwargs.items()}
            return template.format(*map(shown, args), **kwargs)
        return _Fields(self._read_attribute, args, kwargs).expand(template, _NESTING)

    def text_format_map(self, template: str, mapping: Mapping[str, object], /) -> str:
        """``str.format_map`` for scripts."""
        return _Fields(self._read_attribute, None, mapping).expand(template, _NESTING)


_CONVERSIONS: dict[str, Callable[[object], str]] = {"s": str, "r": repr, "a": ascii}

_NESTING = 2
"""Templates within templates: a field in the format spec of a field, and no deeper."""


class _Fields:
    """The fields of one call: which argument comes next, and whether they are numbered by hand.

    Args:
        args: positional arguments, None where there are none by design.
    """

    __slots__ = ("_args", "_kwargs", "_next", "_read")

    def __init__(
        self, read: ReadAttribute, args: Sequence[object] | None, kwargs: Mapping[str, object]
    ) -> None:
        self._read = read
        self._args = args
        self._kwargs = kwargs
        self._next: int | None = 0

    def expand(self, template: str, depth: int) -> str:
        if depth == 0:
            raise ValueError("Max string recursion exceeded")
        parts: list[str] = []
        for text, name, spec, conversion in _parse(template):
            parts.append(text)
            if name is not None:
                value = self._converted(self._value(name), conversion)
                spec = self.expand(spec, depth - 1) if spec and "{" in spec else spec or ""
                parts.append(format(shown(value), spec))
        return "".join(parts)

    def _value(self, field: str) -> object:
        first, rest = _split(field)
        value = self._argument(first)
        for is_attribute, key in rest:
            value = self._read(value, str(key)) if is_attribute else cast(Any, value)[key]
        return value

    def _argument(self, first: int | str) -> object:
        if isinstance(first, str) and first:
            return self._kwargs[first]
        if self._args is None:
            raise ValueError("Format string contains positional fields")
        number = self._number(first)
        if number >= len(self._args):
            raise IndexError(f"Replacement index {number} out of range for positional args tuple")
        return self._args[number]

    def _number(self, first: int | str) -> int:
        if isinstance(first, int):
            if self._next:
                raise ValueError("cannot switch from automatic field numbering to manual field specification")
            self._next = None
            return first
        if self._next is None:
            raise ValueError("cannot switch from manual field specification to automatic field numbering")
        self._next += 1
        return self._next - 1

    @staticmethod
    def _converted(value: object, conversion: str | None) -> object:
        if conversion is None:
            return value
        if conversion not in _CONVERSIONS:
            raise ValueError(f"Unknown conversion specifier {conversion}")
        return _CONVERSIONS[conversion](shown(value))
