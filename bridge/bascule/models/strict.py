"""Rewrites JSON Schemas to the subset that strict modes accept, and undoes what that does to arguments.

OpenAI's subset (structured outputs, late 2026): every object closed, every key required, optional ones
nullable, no ``oneOf``/``allOf``/``not``, few keywords beyond type and enum. A rule that cannot be expressed
goes into the description; a schema that cannot be rewritten without changing what it admits (free-form
objects, any value) is left alone and its tool is offered without strict mode. The host validates every
call against the true schema in any case.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from bascule.bridge.result import JsonValue
from bascule.models.definitions import JsonObject

MAX_PROPERTIES: Final = 5000
MAX_DEPTH: Final = 10
MAX_ENUM_VALUES: Final = 1000
"""OpenAI's own limits for one schema."""

_KEPT: Final = frozenset(
    {
        "type", "description", "enum", "const", "pattern", "multipleOf", "minimum", "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
    }
)  # fmt: skip
_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_SILENT: Final = frozenset({"title", "$schema", "$comment", "discriminator", "examples", "deprecated"})
_TOLD: Final = frozenset(
    {"default", "format", "minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties"}
)


class _Inexpressible(Exception):
    """Raised inside to say that strict mode cannot have this schema."""


def make_strict(schema: JsonObject) -> JsonObject | None:
    """Return the schema in the strict subset; None when it has no place there."""
    rewriter = _Rewriter()
    try:
        definitions = {
            name: rewriter.rewrite(each, 1) for name, each in _mapping(schema.get("$defs")).items()
        }
        root = rewriter.rewrite({key: value for key, value in schema.items() if key != "$defs"}, 1)
    except _Inexpressible:
        return None
    return {**root, "$defs": cast("JsonValue", definitions)} if definitions else root


class _Rewriter:
    def __init__(self) -> None:
        self._properties = 0
        self._values = 0

    def rewrite(self, node: object, depth: int) -> JsonObject:
        if not isinstance(node, dict) or not node or depth > MAX_DEPTH:
            raise _Inexpressible
        schema = cast("JsonObject", node)
        if "$ref" in schema:
            reference: JsonObject = {"$ref": schema["$ref"]}
            described = self._describe(schema)
            return {"anyOf": [reference], "description": described} if described else reference
        made: JsonObject = {}
        for key, value in schema.items():
            if (key in _KEPT and key != "description") or (key == "format" and value in _FORMATS):
                made[key] = value
            elif key in ("anyOf", "oneOf"):
                made["anyOf"] = [self.rewrite(each, depth) for each in _list(value)]
            elif key == "allOf" and len(_list(value)) == 1 and "properties" not in schema:
                made |= self.rewrite(_list(value)[0], depth)
            elif key == "items":
                made[key] = self.rewrite(value, depth + 1)
            elif (
                key not in {"properties", "required", "additionalProperties", "description"} | _SILENT | _TOLD
            ):
                raise _Inexpressible
        self._values += len(_list(made.get("enum")))
        if "const" in made and "type" not in made:
            made["type"] = _type_of(made["const"])
        if "enum" in made and "type" not in made:
            made["type"] = cast("JsonValue", sorted({_type_of(each) for each in _list(made["enum"])}))
        if made.get("type") == "array" and "items" not in made:
            raise _Inexpressible
        if "type" not in made and "anyOf" not in made and "$ref" not in made:
            raise _Inexpressible
        if made.get("type") == "object":
            made |= self._object(schema, depth)
        described = self._describe(schema)
        if described:
            made["description"] = described
        if self._properties > MAX_PROPERTIES or self._values > MAX_ENUM_VALUES:
            raise _Inexpressible
        return made

    def _object(self, schema: JsonObject, depth: int) -> JsonObject:
        if schema.get("additionalProperties") is not False:
            raise _Inexpressible
        required = _list(schema.get("required"))
        properties: JsonObject = {}
        for name, each in _mapping(schema.get("properties")).items():
            made = self.rewrite(each, depth + 1)
            properties[name] = made if name in required else _nullable(made)
        self._properties += len(properties)
        names: list[JsonValue] = list(properties)
        return {"properties": properties, "required": names, "additionalProperties": False}

    def _describe(self, schema: JsonObject) -> str:
        told = [
            f"{key}: {json.dumps(value, ensure_ascii=False)}"
            for key, value in schema.items()
            if key in _TOLD and not (key == "format" and value in _FORMATS)
        ]
        description = schema.get("description")
        text = description if isinstance(description, str) else ""
        return f"{text} ({'; '.join(told)})".strip() if told else text


def _nullable(schema: JsonObject) -> JsonObject:
    kind = schema.get("type")
    if "anyOf" in schema:
        branches = _list(schema["anyOf"])
        if {"type": "null"} in branches:
            return schema
        return {**schema, "anyOf": [*branches, {"type": "null"}]}
    if "$ref" in schema or "const" in schema:
        described = {key: schema[key] for key in ("description",) if key in schema}
        inner = {key: value for key, value in schema.items() if key != "description"}
        return {"anyOf": [inner, {"type": "null"}], **described}
    kinds = [*_list(kind)] if isinstance(kind, list) else [kind]
    if "null" in kinds:
        return schema
    made: JsonObject = {**schema, "type": cast("JsonValue", [*kinds, "null"])}
    if "enum" in schema:
        made["enum"] = [*_list(schema["enum"]), None]
    return made


def restore(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """Return arguments without the nulls that stand for optional keys left out."""
    return cast("JsonObject", _restored(arguments, schema, _mapping(schema.get("$defs")), 0))


def _restored(value: JsonValue, schema: object, defs: Mapping[str, JsonValue], depth: int) -> JsonValue:
    branches = list(_branches(schema, defs)) if depth < 64 else []
    if isinstance(value, list):
        inner: JsonValue = next((each["items"] for each in branches if "items" in each), None)
        return [_restored(item, inner, defs, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    made: JsonObject = {}
    for key, item in value.items():
        homes = [each for each in branches if key in _mapping(each.get("properties"))]
        told = [_mapping(each["properties"])[key] for each in homes]
        optional = bool(homes) and all(key not in _list(each.get("required")) for each in homes)
        if item is None and optional and not any(_admits_null(each, defs) for each in told):
            continue
        made[key] = _restored(item, told[0] if told else {}, defs, depth + 1)
    return made


def _branches(schema: object, defs: Mapping[str, JsonValue], depth: int = 0) -> list[JsonObject]:
    """Return the schema and those it may stand for, references followed."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return []
    found = cast("JsonObject", schema)
    reference = found.get("$ref")
    if isinstance(reference, str):
        return _branches(defs.get(reference.rsplit("/", 1)[-1]), defs, depth + 1)
    inner = [*_list(found.get("anyOf")), *_list(found.get("oneOf")), *_list(found.get("allOf"))]
    return [found, *(each for one in inner for each in _branches(one, defs, depth + 1))]


def _admits_null(schema: JsonValue, defs: Mapping[str, JsonValue]) -> bool:
    for branch in _branches(schema, defs):
        kind = branch.get("type")
        if kind == "null" or (isinstance(kind, list) and "null" in kind):
            return True
        if None in _list(branch.get("enum")) or ("const" in branch and branch["const"] is None):
            return True
        if not any(key in branch for key in ("type", "enum", "const", "anyOf", "oneOf", "allOf")):
            return True
    return False


def _type_of(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "string" if isinstance(value, str) else "object" if isinstance(value, dict) else "array"


def _list(value: object) -> list[JsonValue]:
    return cast("list[JsonValue]", value) if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, JsonValue]:
    return cast("Mapping[str, JsonValue]", value) if isinstance(value, dict) else {}
