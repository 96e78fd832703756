"""Text of values without memory addresses, and ``str.format`` without attribute reading in C.

Addresses differ between runs, so they would break replay. ``str.format`` and ``format_map`` read attributes
of their arguments behind every guard (CVE-2023-41039): the one here asks the guards for each of them.
"""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import datetime
import decimal
import re
import string
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
"""What string.Formatter itself splits field names with."""

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


@lru_cache(maxsize=256)
def reads_nothing(template: str) -> bool:
    """Whether no field of the template reads an attribute or an item, nested specs included."""
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError:
        return False  # how far it would get before it fails is nobody's business
    for _, name, spec, _ in fields:
        if name and ("." in name or "[" in name):
            return False
        if spec and not reads_nothing(spec):
            return False
    return True


class SafeFormatter(string.Formatter):
    """Formats as ``str.format`` does, reading attributes through the guards.

    Args:
        read_attribute: guarded getattr.
    """

    def __init__(self, read_attribute: ReadAttribute) -> None:
        self._read_attribute = read_attribute

    def get_field(
        self, field_name: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[object, str | int]:
        """Resolve ``name.attribute[item]`` step by step."""
        first, rest = _split(field_name)
        value: object = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            value = self._read_attribute(value, str(key)) if is_attribute else cast(Any, value)[key]
        return value, first

    def format_field(self, value: object, format_spec: str) -> str:
        """Show the value without addresses."""
        return format(shown(value), format_spec)

    def convert_field(self, value: object, conversion: str | None) -> object:
        """Convert without addresses."""
        return super().convert_field(value if conversion is None else shown(value), conversion)

    def text_format(self, template: str, /, *args: object, **kwargs: object) -> str:
        """``str.format`` for scripts."""
        if type(template) is str and reads_nothing(template):
            if kwargs:
                kwargs = {key: shown(value) for key, value in kwargs.items()}
            return template.format(*map(shown, args), **kwargs)
        return self.vformat(template, args, kwargs)

    def text_format_map(self, template: str, mapping: Mapping[str, object], /) -> str:
        """``str.format_map`` for scripts."""
        return self.vformat(template, (), mapping)
