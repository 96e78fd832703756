"""Values to plain data. Reads objects natively, runs nothing of theirs.

Everything is decided by type and read from where the interpreter keeps it (``dict.items(v)``, the instance
dictionary), so a script class cannot lie about itself, run code here, or hand on a live object.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import binascii
import collections
import datetime
import decimal
import enum
import json
import math
import types
import uuid
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

from bascule.guest.stored import dataclass_fields, isinstance_of, static, stored
from bascule.guest.value_text import bounded_repr
from bascule.guest.withheld import Withheld
from bascule.wire import Note

Plain: TypeAlias = "bool | int | float | str | list[Any] | dict[str, Any] | None"

MAX_DEPTH = 60
"""Nesting of lists and dicts; with its envelope a value stays below the wire's 64."""

MAX_ELEMENTS = 190_000
"""Values in all, below what the wire takes in one frame."""

_MAX_NOTES = 5

Fallback = Callable[[object, str, str], Any]
"""Called with value, path and reason where there is no plain form; returns the stand-in or raises."""


def to_plain(value: object, *, notes: list[Note] | None = None) -> Any:
    """Return ``value`` as plain JSON data, for an argument of a tool.

    Tuples, sets (sorted) and dict views become lists; named tuples, dataclasses and namespaces dicts; enum
    members their value; dates their ISO text; durations seconds; decimals and UUIDs text; keys text.

    Raises:
        ValueError: something has no plain form, nests too deep or holds too many values; the message begins
            with the path, for example ``.rows[3].when: ...``.
    """

    def refuse(value: object, path: str, reason: str) -> Any:
        if type(value) is Withheld:
            value.use()
        raise ValueError(f"{path}: {reason}" if path else reason)

    return _Walk(refuse).plain(value, "", 0)


def render_result(value: object) -> tuple[Any, list[Note]]:
    """Return ``value`` as plain JSON data whatever it is, and notes on what had to be changed.

    What has no plain form is replaced: NaN and infinities by their names, bytes by their text or base64,
    everything else by a bounded repr. Never raises.
    """
    notes: list[Note] = []

    def replace(value: object, path: str, reason: str) -> Any:
        if type(value) is Withheld:
            return "[withheld]"
        if len(notes) < _MAX_NOTES:
            notes.append(Note(code="result_not_json", message=f"result{path}: {reason}"[:300]))
        return _stand_in(value)

    try:
        return _Walk(replace).plain(value, "", 0), notes
    except RecursionError:
        return replace(value, "", "nests too deep"), notes


def _stand_in(value: object) -> str:
    kind = type(value)
    if kind is float:
        number = cast(float, value)
        return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")
    if kind is str:
        return cast(str, value).encode("utf-8", "backslashreplace").decode("utf-8")
    if kind in (bytes, bytearray):
        data = bytes(cast(bytes, value))
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return binascii.b2a_base64(data, newline=False).decode("ascii")
    return bounded_repr(value)


class _Walk:
    """One conversion: counts values, follows the path, knows what it is inside of."""

    __slots__ = ("_fallback", "_left", "_open")

    def __init__(self, fallback: Fallback) -> None:
        self._fallback = fallback
        self._left = MAX_ELEMENTS
        self._open: set[int] = set()

    def plain(self, value: Any, path: str, depth: int) -> Any:
        kind: Any = type(value)
        self._left -= 1
        if self._left < 0:
            return self._fallback(value, path, f"holds more than {MAX_ELEMENTS} values")
        if value is None or kind is bool:
            return value
        if kind is int:
            return self._int(value, path)
        if kind is str:
            return value if _is_text(value) else self._fallback(value, path, "text with lone surrogates")
        if kind is float:
            if math.isfinite(value):
                return value
            return self._fallback(value, path, f"{value!r} has no JSON form; use None")
        if depth >= MAX_DEPTH:
            return self._fallback(value, path, f"nests deeper than {MAX_DEPTH}")
        if id(value) in self._open:
            return self._fallback(value, path, "contains itself")
        self._open.add(id(value))
        try:
            return self._composite(value, kind, path, depth + 1)
        finally:
            self._open.discard(id(value))

    def _composite(self, value: Any, kind: Any, path: str, depth: int) -> Any:
        if isinstance_of(kind, enum.Enum):
            return self.plain(object.__getattribute__(value, "_value_"), path, depth)
        fields = dataclass_fields(kind)
        if fields is not None:
            return {name: self.plain(stored(value, kind, name), f"{path}.{name}", depth) for name in fields}
        if isinstance_of(kind, tuple):
            names = static(kind, "_fields")
            if type(names) is tuple and all(type(name) is str for name in cast(tuple[object, ...], names)):
                pairs = zip(cast(tuple[str, ...], names), tuple.__iter__(value), strict=False)
                return {name: self.plain(item, f"{path}.{name}", depth) for name, item in pairs}
            return self._list(tuple.__iter__(value), path, depth)
        if isinstance_of(kind, list):
            return self._list(list.__iter__(value), path, depth)
        if isinstance_of(kind, dict):
            return self._dict(dict.items(value), path, depth)
        if isinstance_of(kind, set):
            return self._set(set.__iter__(value), path, depth)
        if isinstance_of(kind, frozenset):
            return self._set(frozenset.__iter__(value), path, depth)
        if isinstance_of(kind, collections.deque):
            return self._list(collections.deque.__iter__(value), path, depth)
        if kind in _ITERABLE:
            return self._list(value, path, depth)
        if kind is types.SimpleNamespace:
            return self._dict(value.__dict__.items(), path, depth)
        if kind is types.MappingProxyType:
            return self._fallback(value, path, "a mapping proxy; pass dict(value)")
        return self._scalar(value, kind, path)

    def _scalar(self, value: Any, kind: type, path: str) -> Any:
        if isinstance_of(kind, str):
            return self.plain(str.__str__(value), path, 0)
        if isinstance_of(kind, int):
            return self._int(int.__pos__(value), path)
        if isinstance_of(kind, float):
            return self.plain(float.__pos__(value), path, 0)
        if kind in (datetime.datetime, datetime.date, datetime.time):
            return value.isoformat()
        if kind is datetime.timedelta:
            return value.total_seconds()
        if kind in (decimal.Decimal, uuid.UUID):
            return str(value)
        return self._fallback(value, path, _reason(kind))

    def _int(self, value: int, path: str) -> Any:
        try:
            str(value)
        except ValueError:
            return self._fallback(value, path, "an integer of too many digits")
        return value

    def _list(self, items: Iterable[Any], path: str, depth: int) -> list[Any]:
        return [self.plain(item, f"{path}[{index}]", depth) for index, item in enumerate(items)]

    def _set(self, items: Iterable[Any], path: str, depth: int) -> list[Any]:
        plain = [self.plain(item, f"{path}{{}}", depth) for item in items]
        return sorted(plain, key=lambda item: json.dumps(item, sort_keys=True))

    def _dict(self, items: Iterable[tuple[Any, Any]], path: str, depth: int) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key, value in items:
            name = key if type(key) is str and _is_text(key) else self._key(key, path, depth)
            plain[name] = self.plain(value, f"{path}.{name}"[-200:], depth)
        return plain

    def _key(self, key: Any, path: str, depth: int) -> str:
        plain = self.plain(key, f"{path}{{key}}", depth)
        return plain if type(plain) is str else str(plain)


_ITERABLE: frozenset[type] = frozenset({range, type({}.keys()), type({}.values()), type({}.items())})

_LAZY: frozenset[type] = frozenset(
    {
        types.GeneratorType,
        map,
        filter,
        zip,
        enumerate,
        reversed,
        type(iter([])),
        type(iter(())),
        type(iter(set())),
    }
)


def _reason(kind: type) -> str:
    if kind in (bytes, bytearray):
        return "bytes have no JSON form; use value.decode() or base64"
    if kind in _LAZY or kind.__module__ == "itertools":
        return f"a {kind.__name__} has no JSON form; write list(...)"
    if kind is types.CoroutineType or kind.__name__ == "ToolCall":
        return "the result of a call that was not awaited; write `await`"
    return f"a value of type {kind.__name__} has no JSON form; build a dict from it"


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
