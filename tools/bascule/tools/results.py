"""What a tool returned, as plain JSON data and bytes.

Decides the JSON form of every Python value a tool may return: models, dataclasses and named tuples become
objects, Decimal text that keeps its digits, dates ISO text, durations seconds, sets sorted lists, keys text.
Trusts the tool to be honest but not to be right: what has no JSON form, is not finite, cyclic or too deep is
an error that names the place, never a guess. Fields that a model excludes from its serialization stay out.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
import operator
import pathlib
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, compress, repeat
from typing import Any, TypeVar, cast

import msgspec
from pydantic import BaseModel, JsonValue, PlainSerializer, RootModel, WrapSerializer

from bascule.tools.canonical import MAX_DEPTH, join_path
from bascule.tools.errors import ResultInvalid

K = TypeVar("K", float, dict[str, object], list[object])

_NO_FORM = "result_not_json"
_AS_TEXT = (decimal.Decimal, uuid.UUID, pathlib.PurePath)
_AS_ISO = (datetime.date, datetime.time)  # datetime is a date
_SCALARS = frozenset({str, int, bool, type(None)})
_TEXT_ONLY = {str}
_PLAIN = _SCALARS | {float, dict, list}
_values_of = cast("Callable[[dict[str, object]], Iterable[object]]", dict.values)  # pyright: ignore[reportUnknownMemberType]
_encoder = msgspec.json.Encoder()


class _NoPlainFormError(Exception):
    """Carries the reason up, collecting the path on the way."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.steps: list[str | int] = []


def to_plain(tool: str, value: object) -> JsonValue:
    """Return a tool's value as plain data.

    Raises:
        ResultInvalid: ``result_not_json`` with the path.
    """
    try:
        return cast("JsonValue", value) if _is_plain(value) else _plain(value, 1)
    except _NoPlainFormError as error:
        path = ""
        for step in reversed(error.steps):
            path = join_path(path, step)
        where = f" at {path}" if path else ""
        message = f"{tool}() returned a value without JSON form{where}: {error}"
        raise ResultInvalid(_NO_FORM, message, tool=tool, path=path) from None
    except Exception as error:  # properties and serializers are the tool's own code
        message = f"{tool}() returned a value that cannot be read: {type(error).__name__}"
        raise ResultInvalid(_NO_FORM, message, tool=tool, path="") from error


def encode_plain(tool: str, value: JsonValue) -> bytes:
    """Return plain data as JSON bytes.

    Raises:
        ResultInvalid: ``result_not_json``: a text is not Unicode, or an integer has thousands of digits.
    """
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError as error:
        message = f"{tool}() returned text with half of a surrogate pair; decode bytes with errors='replace'"
        raise ResultInvalid(_NO_FORM, message, tool=tool, path="") from error
    except (ValueError, OverflowError) as error:
        message = f"{tool}() returned a value that JSON cannot carry: {error}"
        raise ResultInvalid(_NO_FORM, message, tool=tool, path="") from error


def _is_plain(value: object) -> bool:
    """Whether a value is plain data throughout, by exact types; False also where only `_plain` can tell.

    Goes through it a level at a time, in C: large results are mostly plain rows, and this is four times as
    fast as looking at each value.
    """
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        types = list(map(type, level))
        kinds = set(types)
        if not kinds <= _PLAIN:
            return False
        if float in kinds and not all(map(math.isfinite, _of_type(float, types, level))):
            return False
        below: list[object] = []
        if dict in kinds:
            mappings = list(_of_type(dict, types, level))
            if not set(map(type, chain.from_iterable(mappings))) <= _TEXT_ONLY:
                return False
            below += chain.from_iterable(map(_values_of, mappings))
        if list in kinds:
            below += chain.from_iterable(_of_type(list, types, level))
        if not below:
            return True
        level = below
    return False


def _of_type(kind: type[K], types: list[type], level: list[object]) -> Iterator[K]:
    return cast("Iterator[K]", compress(level, map(operator.is_, types, repeat(kind))))


def _plain(value: object, depth: int) -> JsonValue:
    """Return a value as plain data; containers that are plain already are returned as they are."""
    kind = type(value)
    if kind in _SCALARS:
        return cast("JsonValue", value)
    if kind is float:
        return _finite(cast("float", value))
    if depth > MAX_DEPTH:
        raise _NoPlainFormError(f"nested deeper than {MAX_DEPTH}, or cyclic")
    if kind is dict:
        return _mapping(cast("dict[object, object]", value), depth)
    if kind is list or kind is tuple:
        return _sequence(cast("list[object]", value), depth)
    return _special(value, depth)


def _special(value: object, depth: int) -> JsonValue:
    """Handle everything that is not plain already; the order matters for types with several natures."""
    if isinstance(value, enum.Enum):
        return _plain(value.value, depth + 1)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return _finite(float.__float__(value))
    if isinstance(value, BaseModel):
        return _model(value, depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(
            ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value)), depth
        )
    if isinstance(value, _AS_TEXT):
        return _text(value)
    if isinstance(value, _AS_ISO):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return _mapping(cast("dict[object, object]", value), depth)
    as_dict: Callable[[], dict[str, object]] | None = getattr(value, "_asdict", None)
    if isinstance(value, tuple) and as_dict is not None:
        return _fields(as_dict().items(), depth)
    if isinstance(value, set | frozenset):
        items = _sequence(cast("Collection[object]", value), depth)
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, list | tuple):
        return _sequence(cast("Collection[object]", value), depth)
    raise _NoPlainFormError(_advice(value))


def _text(value: decimal.Decimal | uuid.UUID | pathlib.PurePath) -> str:
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        raise _NoPlainFormError(f"{value} is not a number")
    return str(value)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise _NoPlainFormError(f"{value} is not a JSON number; return None or text")
    return value


def _sequence(values: Collection[object], depth: int) -> list[JsonValue]:
    if set(map(type, values)) <= _SCALARS:
        return cast("list[JsonValue]", values if type(values) is list else list(values))
    items: list[JsonValue] = []
    try:
        for value in values:
            items.append(_plain(value, depth + 1))  # the length names the place of an error
    except _NoPlainFormError as error:
        error.steps.append(len(items))
        raise
    return items


def _mapping(value: dict[object, object], depth: int) -> dict[str, JsonValue]:
    if set(map(type, value)) <= _TEXT_ONLY:
        if type(value) is dict and set(map(type, value.values())) <= _SCALARS:
            return cast("dict[str, JsonValue]", value)
        return _fields(cast("dict[str, object]", value).items(), depth)
    named = {_key(key): item for key, item in value.items()}
    if len(named) != len(value):
        raise _NoPlainFormError("two keys become the same text")
    return _fields(named.items(), depth)


def _fields(members: Iterable[tuple[str, object]], depth: int) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {}
    name = ""
    try:
        for name, value in members:
            fields[name] = _plain(value, depth + 1)
    except _NoPlainFormError as error:
        error.steps.append(name)
        raise
    return fields


def _key(key: object) -> str:
    try:
        plain = _plain(key, MAX_DEPTH)
    except _NoPlainFormError as error:
        raise _NoPlainFormError(f"the key {key!r:.60}: {error}") from None
    return plain if isinstance(plain, str) else str(plain)


def _model(value: BaseModel, depth: int) -> JsonValue:
    model = type(value)
    if isinstance(value, RootModel):
        return _plain(cast("RootModel[object]", value).root, depth)
    if _customises(model):
        return _plain(value.model_dump(mode="python", polymorphic_serialization=True), depth)
    members = [
        (name, getattr(value, name)) for name, field in model.model_fields.items() if not field.exclude
    ]
    return _fields([*members, *(value.model_extra or {}).items()], depth)


def _customises(model: type[BaseModel]) -> bool:
    """Tell whether a model writes itself in its own way, which then counts."""
    decorators: Any = model.__pydantic_decorators__
    if decorators.field_serializers or decorators.model_serializers or decorators.computed_fields:
        return True
    return any(
        isinstance(mark, PlainSerializer | WrapSerializer)
        for field in model.model_fields.values()
        for mark in field.metadata
    )


def _advice(value: object) -> str:
    name = type(value).__name__
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{name} are not text; decode them, or return base64"
    if hasattr(value, "__await__"):
        return f"a {name} was never awaited"
    if hasattr(value, "__iter__"):
        return f"a {name} is not data; return list(...)"
    return f"a {name} is not data; return a dict, a model or text"
