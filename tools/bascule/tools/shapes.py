"""The objects that tools take and give, as TypedDict-like classes, each written once.

Two definitions of one name share a class when their fields have the same names, types and comments (a model
that is both argument and result does); otherwise the later one gets a number.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bascule.tools.canonical import canonical_json
from bascule.tools.safe_text import clean_line
from bascule.tools.schema import JsonSchema, is_object
from bascule.tools.type_text import ALIASES, identifier, literal_text, type_text

_BOUNDS = {
    "minimum": ">= {}",
    "exclusiveMinimum": "> {}",
    "maximum": "<= {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matches {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}

_TAKEN = {*ALIASES, *dir(builtins), "Any", "Literal", "NotRequired", "TypedDict"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    name: str
    type: str
    comment: str
    default: str | None

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.name, self.type, self.comment


class Shapes:
    """Collects the classes that the types of several tools refer to."""

    def __init__(self) -> None:
        self.aliases: set[str] = set()
        self._classes: dict[str, list[_Field]] = {}
        self._names: dict[bytes, str] = {}
        self._open: list[bytes] = []
        self._seen: dict[int, tuple[int, JsonSchema]] = {}
        self._numbers: dict[bytes, int] = {}

    def type_of(self, schema: object, *, defs: JsonSchema, hint: str = "") -> str:
        """Return the Python type of a schema, adding the classes it needs.

        Args:
            defs: what its references refer to.
            hint: a name for an object that has none.
        """
        text = type_text(schema, name_object=lambda node, name: self._name(node, name, defs), hint=hint)
        self.aliases.update(alias for alias in ALIASES if alias in text)
        return text

    def classes(self) -> list[str]:
        """Return the text of every class, in the order they were first needed."""
        return [_render_class(name, fields) for name, fields in self._classes.items()]

    def _name(self, node: JsonSchema, hint: str, defs: JsonSchema) -> str:
        reference = str(node.get("$ref", "")).rsplit("/", 1)[-1]
        target = defs.get(reference) if reference else node
        if not is_object(target):
            return "Any"
        key = canonical_json([reference or hint, target, self._identify(defs)])
        if key in self._names:
            return self._names[key]
        if not target.get("properties"):
            return self._inline(key, target, defs)
        base = identifier(reference or "".join(part.capitalize() for part in hint.split("_")))
        number = 1
        while True:
            name = base if number == 1 else f"{base}{number}"
            if self._fits(name, key, target, defs):
                return name
            number += 1

    def _identify(self, defs: JsonSchema) -> int:
        """Return a number that equal definitions share; a tool's are asked for again and again."""
        known = self._seen.get(id(defs))
        if known is None:
            number = self._numbers.setdefault(canonical_json(defs), len(self._numbers))
            known = self._seen[id(defs)] = (number, defs)  # kept, so that nothing else gets its id
        return known[0]

    def _inline(self, key: bytes, target: JsonSchema, defs: JsonSchema) -> str:
        """Write an alias out; one that refers to itself has no finite text."""
        if key in self._open:
            return "Any"
        self._open.append(key)
        try:
            return self.type_of(target, defs=defs)
        finally:
            self._open.pop()

    def _fits(self, name: str, key: bytes, target: JsonSchema, defs: JsonSchema) -> bool:
        """Try to give an object this name; a reference to itself already has it meanwhile."""
        if name in _TAKEN or keyword.iskeyword(name):
            return False
        if name in self._names.values() and name not in self._classes:
            return False  # a class of this name is being written further up
        self._names[key] = name
        fields = self._fields(target, defs)
        known = self._classes.get(name)
        if known is not None and [each.identity for each in known] != [each.identity for each in fields]:
            del self._names[key]
            return False
        if known is None or all(each.default is None for each in known):
            self._classes[name] = fields
        return True

    def _fields(self, target: JsonSchema, defs: JsonSchema) -> list[_Field]:
        required = target.get("required", [])
        fields: list[_Field] = []
        for name, schema in target["properties"].items():
            text = self.type_of(schema, defs=defs, hint=name)
            has_default = is_object(schema) and "default" in schema
            default = literal_text(schema["default"]) if has_default else None
            if name not in required and not has_default:
                text = f"NotRequired[{text}]"
            fields.append(_Field(name=name, type=text, comment=describe(schema), default=default))
        return fields


def describe(schema: object) -> str:
    """Return the description and the bounds of a value on one line, safe in a comment."""
    if not is_object(schema):
        return ""
    said = clean_line(str(schema.get("description", "")))
    return "; ".join(part for part in (said, bounds_text(schema)) if part)


def bounds_text(schema: Mapping[str, Any]) -> str:
    """Return the bounds of a value as text; those inside unions count too."""
    options = [each for key in ("anyOf", "oneOf") for each in schema.get(key, []) if is_object(each)]
    parts = [
        clean_line(form.format(node[key]))
        for node in (schema, *options)
        for key, form in _BOUNDS.items()
        if key in node
    ]
    return ", ".join(dict.fromkeys(parts))


def _render_class(name: str, fields: list[_Field]) -> str:
    if all(each.name.isidentifier() and not keyword.iskeyword(each.name) for each in fields):
        lines = [f"class {name}(TypedDict):"]
        for each in fields:
            default = "" if each.default is None else f" = {each.default}"
            lines.append(f"    {each.name}: {each.type}{default}{_comment(each.comment)}")
        return "\n".join(lines)
    lines = [f'{name} = TypedDict("{name}", {{']
    lines += [f"    {literal_text(each.name)}: {_forward(each)},{_comment(each.comment)}" for each in fields]
    return "\n".join([*lines, "})"])


def _forward(field: _Field) -> str:
    return field.type if field.default is None else f"NotRequired[{field.type}]"


def _comment(text: str) -> str:
    return f"  # {text}" if text else ""
