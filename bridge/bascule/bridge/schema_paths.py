"""Looks up argument paths in the JSON Schema of a tool: what types and values can stand there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

_MAX_REFERENCES: Final = 32


def find_types(parameters: Mapping[str, Any], path: str) -> frozenset[str] | None:
    """Return the JSON types a value at the path can have, empty for any, None when there is no such path."""
    found = list(_walk(parameters, parameters, path.split(".")))
    if not found:
        return None
    types: set[str] = set()
    for schema in found:
        declared = schema.get("type")
        if isinstance(declared, str):
            types.add(declared)
        elif isinstance(declared, list):
            types.update(cast("list[str]", declared))
        elif (values := _values(schema)) is not None:
            types.update(_TYPE_NAMES.get(type(value), "object") for value in values)
        else:
            return frozenset()
    return frozenset(types)


def find_choices(parameters: Mapping[str, Any], path: str) -> list[object] | None:
    """Return the values that can stand at the path when they are a closed list, else None."""
    choices: list[object] = []
    for schema in _walk(parameters, parameters, path.split(".")):
        values = _values(schema)
        if values is None:
            return None
        choices.extend(values)
    return choices


_TYPE_NAMES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def _values(schema: Mapping[str, Any]) -> list[object] | None:
    if "const" in schema:
        return [schema["const"]]
    if "enum" in schema:
        return list(cast("list[object]", schema["enum"]))
    return [None] if schema.get("type") == "null" else None


def _walk(
    schema: object, root: Mapping[str, Any], names: Sequence[str], depth: int = 0
) -> Iterator[Mapping[str, Any]]:
    """Yield every schema that a value at the path may follow, through references and unions."""
    if depth > _MAX_REFERENCES:
        return
    if schema is True:
        yield {}
        return
    if not isinstance(schema, dict):
        return
    members = cast("dict[str, Any]", schema)
    reference = members.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        target = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
        yield from _walk(target, root, names, depth + 1)
        return
    options = [option for union in ("anyOf", "oneOf", "allOf") for option in members.get(union, ())]
    if options:
        for option in options:
            yield from _walk(option, root, names, depth + 1)
        return
    if not names:
        yield members
        return
    properties = cast("dict[str, Any]", members.get("properties", {}))
    if names[0] in properties:
        yield from _walk(properties[names[0]], root, names[1:], depth + 1)
    elif members.get("additionalProperties", not members) not in (False, None):
        yield from _walk(members.get("additionalProperties", True), root, names[1:], depth + 1)
