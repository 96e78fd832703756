"""Sets as JSON: sorted, so that equal sets are the same bytes.

A set has no order of its own, and pydantic writes it in the order of the hash table, which differs between
equal sets. Which lists are sets is read from the schema; where a union leaves it open, the order stays.
"""

from __future__ import annotations

from pydantic import JsonValue

from bascule.tools.canonical import canonical_json
from bascule.tools.problems import branches_of, schemas_below
from bascule.tools.schema import JsonSchema, is_array, is_object


def has_sets(schema: object) -> bool:
    """Tell whether a schema, references apart, describes a set anywhere."""
    if is_array(schema):
        return any(map(has_sets, schema))
    return is_object(schema) and ("uniqueItems" in schema or any(map(has_sets, schema.values())))


def sort_sets(value: JsonValue, schema: JsonSchema, defs: JsonSchema) -> JsonValue:
    """Return a value with every set in it sorted by the text of its items."""
    if not isinstance(value, list | dict):
        return value
    kind = "array" if isinstance(value, list) else "object"
    branches = [each for each in branches_of(schema, defs, frozenset()) if each.get("type") == kind]
    if isinstance(value, dict):
        return {key: sort_sets(item, _below(branches, key), defs) for key, item in value.items()}
    items = [sort_sets(item, _below(branches, index), defs) for index, item in enumerate(value)]
    if branches and all(each.get("uniqueItems") for each in branches):
        items.sort(key=canonical_json)
    return items


def _below(branches: list[JsonSchema], step: int | str) -> JsonSchema:
    return {"anyOf": [each for branch in branches for each in schemas_below(branch, step)]}
