"""Unions kept narrow: what a schema may stand for, through unions of unions, is bounded by construction.

Thirty definitions that each say "one of the next two" are a few lines and a thousand million branches for
whoever follows them. Readers of tamed schemas may follow every branch.
"""

from __future__ import annotations

from typing import Any

from bascule.tools.imported.bounds import MAX_BRANCHES
from bascule.tools.schema import JsonSchema, is_array, is_object


def narrow_unions(
    schema: JsonSchema, defs: dict[str, JsonSchema]
) -> tuple[JsonSchema, dict[str, JsonSchema]]:
    """Return a tamed schema and its definitions with every union too wide, or endless, made "anything"."""
    widths: dict[str, int] = {}
    opened: set[str] = set()

    def width_of(node: JsonSchema) -> int:
        reference = node.get("$ref")
        if isinstance(reference, str):
            return width_of_definition(reference.rsplit("/", 1)[-1])
        options = node.get("anyOf")
        if is_array(options):
            return min(MAX_BRANCHES + 1, sum(width_of(option) for option in options))
        return 1

    def width_of_definition(name: str) -> int:
        if name in widths:
            return widths[name]
        if name in opened or name not in defs or len(opened) > MAX_BRANCHES:
            return MAX_BRANCHES + 1
        opened.add(name)
        width = width_of(defs[name])
        opened.discard(name)
        if width > MAX_BRANCHES:
            defs[name] = _anything(defs[name])
            width = 1
        widths[name] = width
        return width

    for name in list(defs):
        width_of_definition(name)

    def narrowed(node: Any) -> Any:
        if is_array(node):
            return [narrowed(item) for item in node]
        if not is_object(node):
            return node
        if width_of(node) > MAX_BRANCHES:
            return _anything(node)
        return {
            key: value
            if key in ("enum", "const")
            else {name: narrowed(member) for name, member in value.items()}
            if key == "properties"
            else narrowed(value)
            for key, value in node.items()
        }

    kept: JsonSchema = narrowed(schema)
    return kept, {name: narrowed(definition) for name, definition in defs.items()}


def _anything(node: JsonSchema) -> JsonSchema:
    return {key: value for key, value in node.items() if key == "description"}
