"""The shape of results that no type declares, read off earlier results, for readers of stubs.

Says what was seen, promises nothing: nothing is ever checked against it. Only names and types leave the
results, never values; but names may come from elsewhere too, so they are bounded, and objects whose names
look like data (ids, dates) are described as mappings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import JsonValue

from bascule.tools.schema import JsonSchema
from bascule.tools.tool import AnyTool

MAX_VALUES: Final = 50
"""Results that are looked at."""

MAX_ITEMS: Final = 50
MAX_FIELDS: Final = 40
MAX_DEPTH: Final = 8

_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_ -]{0,39}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?")


def observe(tool: AnyTool, values: Iterable[JsonValue]) -> AnyTool:
    """Return the tool with the shape of earlier results; the tool itself if it declares one.

    Args:
        values: results of earlier calls, as plain data; the first `MAX_VALUES` count.
    """
    if tool.returns is not None:
        return tool
    seen = [value for value, _ in zip(values, range(MAX_VALUES), strict=False)]
    return replace(tool, observed=infer_schema(seen)) if seen else tool


def infer_schema(values: Sequence[JsonValue]) -> JsonSchema:
    """Return a JSON Schema that all values fit: names and types only, bounded in size and depth."""
    return _infer(values, 1)


def _infer(values: Sequence[JsonValue], depth: int) -> JsonSchema:
    options: list[JsonSchema] = []
    objects = [each for each in values if isinstance(each, dict)]
    arrays = [each for each in values if isinstance(each, list)]
    texts = [each for each in values if isinstance(each, str)]
    if objects:
        options.append(_infer_object(objects, depth))
    if arrays:
        items = [item for each in arrays for item in each[:MAX_ITEMS]][: MAX_ITEMS * 4]
        known = items and depth < MAX_DEPTH
        options.append({"type": "array", "items": _infer(items, depth + 1)} if known else {"type": "array"})
    if texts:
        options.append(_infer_text(texts))
    if any(isinstance(each, bool) for each in values):
        options.append({"type": "boolean"})
    numbers = [each for each in values if isinstance(each, int | float) and not isinstance(each, bool)]
    if numbers:
        options.append({"type": "integer" if all(isinstance(each, int) for each in numbers) else "number"})
    if any(each is None for each in values):
        options.append({"type": "null"})
    return options[0] if len(options) == 1 else {"anyOf": options}


def _infer_object(values: Sequence[Mapping[str, Any]], depth: int) -> JsonSchema:
    names = list(dict.fromkeys(name for each in values for name in each))
    if depth >= MAX_DEPTH or not names:
        return {"type": "object"}
    if _look_like_data(names, values):
        below = [item for each in values for item in list(each.values())[:MAX_ITEMS]][: MAX_ITEMS * 4]
        return {"type": "object", "additionalProperties": _infer(below, depth + 1)}
    properties = {
        name: _infer([each[name] for each in values if name in each], depth + 1)
        for name in names[:MAX_FIELDS]
    }
    required = [name for name in properties if all(name in each for each in values)]
    return {"type": "object", "properties": properties, "required": required}


def _look_like_data(names: Sequence[str], values: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether the names of an object are data: not words, too many, or different each time."""
    if len(names) > MAX_FIELDS or not all(map(_FIELD_NAME.fullmatch, names)):
        return True
    shared = sum(all(name in each for each in values) for name in names)
    return len(values) >= 3 and shared == 0 and len(names) > 2 * max(map(len, values))


def _infer_text(texts: Sequence[str]) -> JsonSchema:
    for pattern, form in ((_DATE, "date"), (_DATE_TIME, "date-time")):
        if all(len(each) <= 40 and pattern.fullmatch(each) for each in texts):
            return {"type": "string", "format": form}
    return {"type": "string"}
