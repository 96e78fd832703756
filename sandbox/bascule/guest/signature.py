"""A tool's parameters in words, for messages about wrong arguments. Trusts the stub; the host sent it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

_MAX_CHARACTERS = 160
_MAX_DEPTH = 4
_MAX_FIELDS = 20
_NAMES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}


def describe_parameters(name: str, parameters: Mapping[str, Any]) -> str:
    """Return ``name(a: str, b: int = 3)`` for the JSON Schema of a tool's arguments."""
    required = set(cast("list[str]", parameters.get("required", ())))
    properties = cast("dict[str, dict[str, Any]]", parameters.get("properties", {}))
    parts: list[str] = []
    for key, schema in properties.items():
        part = f"{key}: {describe_type(schema, parameters)}"
        if key not in required:
            part += f" = {_literal(schema.get('default'))}"
        parts.append(part)
    return f"{name}({', '.join(parts)})"


def describe_type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> str:
    """Return the type a JSON Schema stands for, in Python's words, with the allowed values."""
    if depth > _MAX_DEPTH:
        return "Any"
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target: Mapping[str, Any] = root
        for step in reference.removeprefix("#/").split("/"):
            inner: object = target.get(step)
            target = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
        return describe_type(target, root, depth + 1)
    if "enum" in schema:
        return " | ".join(_literal(value) for value in schema["enum"])
    if "const" in schema:
        return _literal(schema["const"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            options = [describe_type(option, root, depth + 1) for option in schema[key]]
            return " | ".join(dict.fromkeys(options))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_NAMES.get(str(each), "Any") for each in cast("list[object]", kind))
    if kind == "array" and "items" in schema:
        return f"list[{describe_type(schema['items'], root, depth + 1)}]"
    if kind == "object" and depth <= 2 and schema.get("properties"):
        return _describe_fields(schema, root, depth)
    if kind == "string" and schema.get("format") in ("date", "date-time", "time"):
        return f"str ({schema['format']}, ISO 8601)"
    return _NAMES.get(str(kind), "Any")


def _describe_fields(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    """Return the fields of a dict, those that may be left out with a question mark."""
    required = set(cast("list[str]", schema.get("required", ())))
    properties = cast("dict[str, dict[str, Any]]", schema["properties"])
    parts = [
        f"{key}{'' if key in required else '?'}: {describe_type(field, root, depth + 2)}"
        for key, field in list(properties.items())[:_MAX_FIELDS]
    ]
    return f"dict {{{', '.join(parts)}}}"


def _literal(value: object) -> str:
    if value is None or isinstance(value, bool):
        return repr(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + "…"
