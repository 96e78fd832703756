"""Which tools Anthropic's strict mode can have, and their schemas in its subset.

The SDK's own function rewrites a schema: what the subset cannot say goes into descriptions, objects are
closed. A schema that this would change (free-form objects, any value), or that refers to itself, is left as
it is, and its tool offered without strict mode. The host validates every call against the true schema.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Final, cast

from bascule.models.definitions import JsonObject
from bascule.models.offer import OfferedTool
from bascule.models.strict import make_strict

MAX_TOOLS: Final = 20
MAX_OPTIONAL: Final = 24
MAX_UNIONS: Final = 16
"""Anthropic's own limits on all strict tools of one request together: tools, optional parameters, unions."""


def strict_schemas(tools: Sequence[OfferedTool]) -> dict[str, JsonObject]:
    """Return schemas by name, of as many of the first tools as fit the limits."""
    found: dict[str, JsonObject] = {}
    optional, unions = 0, 0
    for each in tools:
        schema = _rewrite(each.parameters)
        if schema is None or len(found) == MAX_TOOLS:
            continue
        nodes = list(_objects_in(schema))
        more_optional = sum(_count_optional(node) for node in nodes)
        more_unions = sum("anyOf" in node for node in nodes)
        if optional + more_optional <= MAX_OPTIONAL and unions + more_unions <= MAX_UNIONS:
            optional, unions = optional + more_optional, unions + more_unions
            found[each.name] = schema
    return found


def _rewrite(schema: JsonObject) -> JsonObject | None:
    from anthropic import transform_schema

    if make_strict(schema) is None or any("$ref" in node for node in _objects_in(schema.get("$defs"))):
        return None
    try:
        return transform_schema(copy.deepcopy(schema))
    except (AssertionError, TypeError, ValueError):  # a spelling that the SDK does not know
        return None


def _count_optional(node: JsonObject) -> int:
    properties, required = node.get("properties"), node.get("required")
    if node.get("type") != "object" or not isinstance(properties, dict):
        return 0
    return len(properties) - (len(required) if isinstance(required, list) else 0)


def _objects_in(value: object) -> Iterable[JsonObject]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield cast("JsonObject", node)
            waiting.extend(cast("JsonObject", node).values())
        elif isinstance(node, list):
            waiting.extend(cast("list[object]", node))
