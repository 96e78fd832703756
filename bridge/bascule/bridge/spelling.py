"""Spells arguments for people as the tool receives them: a whole ``float`` as ``30.0``.

Canonical JSON (RFC 8785) writes such a number ``30``, which is what decisions are bound to. The difference is
one of display alone; `spell` changes nothing but the spelling of numbers at the places that are given.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Final, cast

from pydantic import BaseModel

from bascule.bridge.result import JsonValue
from bascule.tools import canonical_json

MAX_PLACES: Final = 200
"""Whole floats that are spelled; further ones stand as in canonical JSON."""

Place = tuple[str | int, ...]
"""Names and indexes from the arguments down to a number."""


def find_whole_floats(values: Mapping[str, object]) -> tuple[Place, ...]:
    """Return where whole floats stand in the values a tool is given."""
    found: list[Place] = []
    for place in _walk(values, ()):
        if len(found) == MAX_PLACES:
            break
        found.append(place)
    return tuple(found)


def spell(arguments: bytes, places: Collection[Place]) -> bytes:
    """Return canonical JSON with the whole numbers at some places written as floats."""
    if not places:
        return arguments
    return _text(json.loads(arguments), (), frozenset(places)).encode()


def _walk(value: object, way: Place) -> Iterator[Place]:
    if type(value) is float and value.is_integer():
        yield way
    elif isinstance(value, BaseModel):
        yield from _walk(value.model_dump(by_alias=True), way)
    elif isinstance(value, Mapping):
        for name, member in cast("Mapping[object, object]", value).items():
            yield from _walk(member, (*way, str(name)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _walk(item, (*way, index))


def _text(value: object, way: Place, places: Collection[Place]) -> str:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value).items()
        inner = (f"{_leaf(name)}:{_text(member, (*way, name), places)}" for name, member in members)
        return f"{{{','.join(inner)}}}"
    if isinstance(value, list):
        items = enumerate(cast("list[object]", value))
        return f"[{','.join(_text(item, (*way, index), places) for index, item in items)}]"
    floating = type(value) is int and way in places
    return f"{_leaf(value)}.0" if floating else _leaf(value)


def _leaf(value: object) -> str:
    return canonical_json(cast("JsonValue", value)).decode()
