"""A JSON Schema as the text of a Python type, for prompts and for messages to scripts.

Trusts nothing in the schema (it may come from elsewhere one day): what it cannot read is ``Any``, and names
become identifiers. The text says what the *JSON* looks like: a date in a result is text, so it is called
`ISODate`, not ``date``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from bascule.tools.schema import JsonSchema, is_array, is_object

ALIASES: Mapping[str, str] = {
    "ISODate": 'str  # "2025-06-30"',
    "ISODateTime": 'str  # "2025-06-30T14:00:00+00:00"',
    "ISOTime": 'str  # "14:00:00"',
    "DecimalStr": 'str  # "12.50", exact',
    "Duration": 'str  # "PT90S"; seconds are accepted',
    "Seconds": "float",
}
"""Names of text with a form, and what each stands for."""

_FORMATS = {
    "date": "ISODate",
    "date-time": "ISODateTime",
    "time": "ISOTime",
    "decimal": "DecimalStr",
    "duration": "Duration",
    "seconds": "Seconds",
}
_SCALARS = {"integer": "int", "number": "float", "boolean": "bool", "null": "None", "string": "str"}
_NOT_WORD = re.compile(r"[^A-Za-z0-9_]+")

NameObject = Callable[[JsonSchema, str], str]
"""Gives the class name for an object with properties, or for the definition a ``$ref`` names."""


def type_text(schema: object, *, name_object: NameObject, hint: str = "") -> str:
    """Return the Python type that a schema describes.

    Args:
        name_object: called for each ``$ref`` and each object with properties.
        hint: a name for an object that has none of its own.
    """
    if not is_object(schema):
        return "Any"
    node = schema
    if "$ref" in node:
        return name_object(node, hint)
    if "const" in node:
        return f"Literal[{literal_text(node['const'])}]"
    if isinstance(node.get("enum"), list) and node["enum"]:
        return f"Literal[{', '.join(map(literal_text, node['enum']))}]"
    for keyword in ("anyOf", "oneOf"):
        if isinstance(node.get(keyword), list):
            return _union([type_text(option, name_object=name_object, hint=hint) for option in node[keyword]])
    if isinstance(node.get("allOf"), list) and len(node["allOf"]) == 1:
        return type_text(node["allOf"][0], name_object=name_object, hint=hint)
    kind = node.get("type")
    if is_array(kind):
        return _union(
            [type_text({**node, "type": each}, name_object=name_object, hint=hint) for each in kind]
        )
    if kind == "array":
        return _array(node, name_object, hint)
    if kind == "object" or "properties" in node:
        return _object(node, name_object, hint)
    if isinstance(node.get("format"), str) and node["format"] in _FORMATS:
        return _FORMATS[node["format"]]
    return _SCALARS.get(str(kind), "Any")


def literal_text(value: object) -> str:
    """Return a JSON value as Python source on one line; characters that do not print are escaped."""
    if isinstance(value, str):
        quoted = json.dumps(value, ensure_ascii=False)
        return "".join(each if each.isprintable() else _escape(each) for each in quoted)
    if is_array(value):
        return f"[{', '.join(map(literal_text, value))}]"
    if is_object(value):
        return f"{{{', '.join(f'{literal_text(key)}: {literal_text(item)}' for key, item in value.items())}}}"
    return repr(value)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def identifier(text: str) -> str:
    """Return a class name made of any text."""
    name = _NOT_WORD.sub("_", text).strip("_") or "Value"
    return f"_{name}" if name[0].isdigit() else name


def plain_names(node: JsonSchema, hint: str) -> str:
    """Name objects for a message: the definition's own name, or ``dict``."""
    reference = node.get("$ref")
    return identifier(str(reference).rsplit("/", 1)[-1]) if reference else "dict"


def _union(options: list[str]) -> str:
    if "DecimalStr" in options or "Duration" in options:  # the number beside them is only tolerated
        options = [option for option in options if option not in ("float", "Seconds")]
    unique = list(dict.fromkeys(options))
    if "Any" in unique or not unique:
        return "Any"
    literals = [option[8:-1] for option in unique if option.startswith("Literal[")]
    rest = [option for option in unique if option != "None" and not option.startswith("Literal[")]
    merged = ([f"Literal[{', '.join(literals)}]"] if literals else []) + rest
    return " | ".join(merged + (["None"] if "None" in unique else []))


def _array(node: JsonSchema, name_object: NameObject, hint: str) -> str:
    prefix = node.get("prefixItems")
    if is_array(prefix):
        inner = ", ".join(type_text(item, name_object=name_object, hint=hint) for item in prefix)
        return f"tuple[{inner}]" if inner else "list"
    inner = type_text(node.get("items"), name_object=name_object, hint=hint)
    return "list" if inner == "Any" else f"list[{inner}]"


def _object(node: JsonSchema, name_object: NameObject, hint: str) -> str:
    if node.get("properties"):
        return name_object(node, hint)
    values = node.get("additionalProperties")
    if is_object(values) and values:
        return f"dict[str, {type_text(values, name_object=name_object, hint=hint)}]"
    return "dict"
