"""JSON Schema from elsewhere, rewritten into the part of it that we read: small, finite, and safe to show.

Decides what of a schema is kept. Trusts nothing in it: it may be wrong, huge, recursive, or made to blow up
whoever reads it. What is dropped means "anything": the service behind the tool checks its input itself, so
less of a schema only makes messages later, never a call wider than the service allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from pydantic_core import SchemaError, SchemaValidator, core_schema

from bascule.tools.canonical import canonical_json, check_plain
from bascule.tools.imported.bounds import (
    MAX_CHOICES,
    MAX_PATTERN_CHARS,
    MAX_PROPERTIES,
    MAX_REFERENCE_CHAIN,
    MAX_SCHEMA_DEPTH,
)
from bascule.tools.imported.narrowing import narrow_unions
from bascule.tools.imported.words import clean_phrase
from bascule.tools.schema import JsonSchema, is_array, is_object
from bascule.tools.type_text import identifier

Resolve = Callable[[str], object]
"""From a reference within the document to what stands there; None when there is nothing."""

Side = Literal["argument", "result"]

TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS: Final = ("minLength", "maxLength", "minItems", "maxItems")
MAX_PHRASE_CHARS: Final[dict[Side, int]] = {"argument": 300, "result": 100}
"""Characters of what is said of one value: what comes in must be right, what goes out is seen anyway."""
MAX_DEFINITION_NAME_CHARS: Final = 48
_ANYTHING: Final[JsonSchema] = {}


def read_pointer(document: object, reference: str) -> object:
    """Return what a reference like ``#/components/schemas/Pet`` names in a document, None for nothing.

    References to other documents name nothing: no file and no address is ever opened.
    """
    if not reference.startswith("#"):
        return None
    node = document
    for raw in reference.removeprefix("#").removeprefix("/").split("/") if len(reference) > 1 else []:
        step = raw.replace("~1", "/").replace("~0", "~").replace("%7B", "{").replace("%7D", "}")
        if is_object(node):
            node = node.get(step)
        elif is_array(node) and step.isdecimal() and len(step) < 7 and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node


class Tamer:
    """Rewrites the schemas of one tool, whose definitions they share.

    Args:
        resolve: finds what references name.
        side: ``argument`` leaves out what only answers hold (``readOnly``), ``result`` the reverse.
        max_nodes: schemas kept together; references beyond stand for anything.
    """

    def __init__(self, resolve: Resolve, *, side: Side, max_nodes: int) -> None:
        self._resolve = resolve
        self._side: Side = side
        self._left = max_nodes
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._waiting: deque[tuple[str, object]] = deque()
        self._defs: dict[str, JsonSchema] = {}

    def tame(self, schema: object) -> JsonSchema:
        """Return a schema with references to `definitions` only."""
        return self._rewrite(schema, 0)

    def definitions(self) -> dict[str, JsonSchema]:
        """Return what the tamed schemas refer to; call it once, after all of them."""
        while self._waiting:
            name, target = self._waiting.popleft()
            self._defs[name] = self._rewrite(target, 0)
        return self._defs

    def find(self, schema: object) -> JsonSchema:
        """Follow the references a schema consists of; what leads nowhere is the empty schema."""
        for _ in range(MAX_REFERENCE_CHAIN):
            if not is_object(schema):
                return {}
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            schema = self._resolve(reference)
        return {}

    def _rewrite(self, schema: object, depth: int) -> JsonSchema:
        if not is_object(schema) or depth > MAX_SCHEMA_DEPTH or self._left <= 0:
            return {}
        self._left -= 1
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._refer(reference, schema)
        if is_array(schema.get("allOf")):
            schema = self.merge(schema, 0)
        kept = self._about(schema)
        for union in ("anyOf", "oneOf"):
            options = schema.get(union)
            if is_array(options) and options:
                return self._union(schema, options, kept, depth)
        kinds = _kinds(schema)
        if len(kinds) > 1:
            bare = {key: value for key, value in schema.items() if key not in ("nullable", "description")}
            options = [{"type": kind} if kind == "null" else {**bare, "type": kind} for kind in kinds]
            return self._union({}, options, {k: v for k, v in kept.items() if k == "description"}, depth)
        kind = kinds[0] if kinds else None
        if kind is not None:
            kept["type"] = kind
        if kind in (None, "string", "integer", "number"):
            kept |= _limits(schema)
        if kind == "array":
            kept |= self._items(schema, depth)
        if kind == "object":
            kept |= self._members(schema, depth)
        return kept

    def _refer(self, reference: str, schema: JsonSchema) -> JsonSchema:
        target = self._resolve(reference)
        if not is_object(target):
            return _ANYTHING.copy()
        name = self._names.get(reference)
        if name is None:
            if self._left <= len(self._waiting):
                return {"type": "object"} if "properties" in target else {}
            name = self._name(reference)
            self._names[reference] = name
            self._waiting.append((name, target))
        told = clean_phrase(schema.get("description"), max_chars=MAX_PHRASE_CHARS[self._side])
        return {"$ref": f"#/$defs/{name}", **({"description": told} if told else {})}

    def _name(self, reference: str) -> str:
        base = identifier(reference.rsplit("/", 1)[-1])[:MAX_DEFINITION_NAME_CHARS]
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return name

    def _about(self, schema: JsonSchema) -> JsonSchema:
        kept: JsonSchema = {}
        told = clean_phrase(schema.get("description"), max_chars=MAX_PHRASE_CHARS[self._side])
        if told:
            kept["description"] = told
        choices = schema.get("enum")
        if is_array(choices) and 0 < len(choices) <= MAX_CHOICES and _is_data(choices):
            kept["enum"] = choices
        if "const" in schema and _is_data(schema["const"]):
            kept["const"] = schema["const"]
        text_format = schema.get("format")
        if isinstance(text_format, str) and len(text_format) <= 40 and text_format.isascii():
            kept["format"] = text_format
        return kept

    def _union(self, schema: JsonSchema, options: list[Any], kept: JsonSchema, depth: int) -> JsonSchema:
        beside: JsonSchema = {
            key: schema[key]
            for key in ("type", "properties", "required", "additionalProperties")
            if key in schema
        }
        merged = [
            self.merge({**beside, "allOf": [option]}, 0) if "properties" in beside else option
            for option in options
        ]
        tamed = [self._rewrite(option, depth + 1) for option in merged]
        unique = list({canonical_json(option): option for option in tamed}.values())
        about = {key: value for key, value in kept.items() if key == "description"}
        if {} in unique:
            return about
        if schema.get("nullable") is True and {"type": "null"} not in unique:
            unique.append({"type": "null"})
        if len(unique) == 1:
            return {**unique[0], **about}
        return {"anyOf": unique, **about}

    def merge(self, schema: JsonSchema, depth: int = 0) -> JsonSchema:
        """Return a schema with what its ``allOf`` says, as one; of two bounds the last stays."""
        parts = schema.get("allOf")
        own = {key: value for key, value in schema.items() if key != "allOf"}
        if not is_array(parts) or depth > MAX_REFERENCE_CHAIN:
            return own
        merged: JsonSchema = {}
        properties: dict[str, Any] = {}
        required: list[Any] = []
        for part in [*parts[:MAX_PROPERTIES], own]:
            self._left -= 1
            if self._left <= 0:
                break
            found = self.merge(self.find(part), depth + 1)
            if is_object(found.get("properties")):
                properties |= found["properties"]
            if is_array(found.get("required")):
                required += found["required"]
            merged |= found
        merged.pop("$ref", None)
        if properties:
            merged["properties"] = properties
            merged["type"] = "object"
        if required:
            merged["required"] = required
        return merged

    def _items(self, schema: JsonSchema, depth: int) -> JsonSchema:
        kept: JsonSchema = {}
        prefix = schema.get("prefixItems")
        if is_array(prefix) and 0 < len(prefix) <= MAX_PROPERTIES:
            kept["prefixItems"] = [self._rewrite(item, depth + 1) for item in prefix]
        if "items" in schema and not is_array(schema["items"]):
            kept["items"] = self._rewrite(schema["items"], depth + 1)
        return kept | {
            key: value for key, value in _limits(schema).items() if key in ("minItems", "maxItems")
        }

    def _members(self, schema: JsonSchema, depth: int) -> JsonSchema:
        declared = schema.get("properties")
        properties = declared if is_object(declared) else {}
        hidden = "readOnly" if self._side == "argument" else "writeOnly"
        shown = {
            name: member
            for name, member in list(properties.items())[:MAX_PROPERTIES]
            if not (is_object(member) and member.get(hidden) is True) and _is_key(name)
        }
        kept: JsonSchema = {}
        if shown:
            kept["properties"] = {name: self._rewrite(member, depth + 1) for name, member in shown.items()}
            required = schema.get("required")
            names = [name for name in required if name in shown] if is_array(required) else []
            if names:
                kept["required"] = list(dict.fromkeys(names))
        others = schema.get("additionalProperties", True)
        whole = len(shown) == len(properties) or hidden == "readOnly"
        if (
            others is False
            and "patternProperties" not in schema
            and whole
            and len(properties) <= MAX_PROPERTIES
        ):
            kept["additionalProperties"] = False
        elif is_object(others) and others and not shown:
            kept["additionalProperties"] = self._rewrite(others, depth + 1)
        elif shown:
            kept["additionalProperties"] = True
        return kept


def tame_pair(tamer: Tamer, schema: object) -> JsonSchema:
    """Return one schema that stands alone, its definitions within; the empty one for "anything"."""
    tamed = tamer.tame(schema)
    defs = tamer.definitions()
    tamed, defs = narrow_unions(tamed, defs)
    return {**tamed, "$defs": defs} if defs and tamed else tamed


def _kinds(schema: JsonSchema) -> list[str]:
    declared = schema.get("type")
    names: list[Any] = declared if is_array(declared) else [declared]
    kinds = [kind for kind in names if isinstance(kind, str) and kind in TYPES]
    if len(kinds) < len(names) and declared is not None:
        return []  # a type we do not know: anything
    if not kinds and is_object(schema.get("properties")):
        kinds = ["object"]
    if not kinds and is_object(schema.get("items")):
        kinds = ["array"]
    if schema.get("nullable") is True and kinds and "null" not in kinds:
        kinds = [*kinds, "null"]
    return list(dict.fromkeys(kinds))


def _limits(schema: JsonSchema) -> JsonSchema:
    kept: JsonSchema = {}
    for key in _NUMBERS:
        bound = schema.get(key)
        if isinstance(bound, int | float) and not isinstance(bound, bool) and _is_data(bound):
            kept[key] = bound
    for key in _COUNTS:
        bound = schema.get(key)
        if isinstance(bound, int) and not isinstance(bound, bool) and 0 <= bound < 2**53:
            kept[key] = bound
    for strict, bound_key in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(strict) is True and bound_key in kept:  # OpenAPI 3.0
            kept[strict] = kept.pop(bound_key)
    if kept.get("multipleOf", 1) <= 0:
        del kept["multipleOf"]
    pattern = schema.get("pattern")
    if (
        isinstance(pattern, str)
        and len(pattern) <= MAX_PATTERN_CHARS
        and compile_pattern(pattern) is not None
    ):
        kept["pattern"] = pattern
    return kept


def compile_pattern(pattern: str) -> SchemaValidator | None:
    """Return a matcher that needs time in proportion to the text, None for what it cannot say.

    Look-around and back references are what makes patterns slow on purpose; such a pattern is not checked.
    """
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None


def _is_data(value: object) -> bool:
    try:
        check_plain(value, path="")
    except ValueError:
        return False
    return True


def _is_key(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= 200 and _is_data(name)


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return an object of JSON, the empty one for anything else."""
    return value if is_object(value) else {}
