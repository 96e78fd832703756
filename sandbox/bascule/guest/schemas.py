"""JSON Schema as far as a message about a script needs it: references, unions, fields, literal values.

Schemas come from the host and are trusted to be schemas; the values checked against them are syntax trees of
the script. What is not literal, or not understood, is never called wrong.
"""

from __future__ import annotations

import ast
import datetime
import json
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from bascule.guest.advice import nearest

Schema = Mapping[str, Any]
Problem = tuple[ast.expr, str, str | None]
"""Where, what, and what to write instead."""

_MAX_STEPS = 20
_TYPE_NAMES = {
    "string": "a text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "True or False",
    "null": "None",
    "array": "a list",
    "object": "a dict",
}
_ISO_DATE_CHARACTERS = len("2025-03-31")


class Unknown:
    """Stands for a value that is known only when the script runs."""


UNKNOWN = Unknown()


def resolved(schema: Schema, root: Schema) -> Schema:
    """Follow ``$ref`` to definitions of ``root``; an unknown reference says nothing."""
    for _ in range(_MAX_STEPS):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        target: object = root
        for step in reference.removeprefix("#/").split("/"):
            target = cast(Schema, target).get(step) if isinstance(target, dict) else None
        schema = cast(Schema, target) if isinstance(target, dict) else {}
    return {}


def only_type(schema: Schema, root: Schema) -> tuple[str | None, Schema]:
    """Return the one JSON type a value must have, with its schema; None when there are several."""
    schema = resolved(schema, root)
    for key in ("anyOf", "oneOf", "allOf"):
        options = schema.get(key)
        if isinstance(options, list) and len(cast(list[object], options)) == 1:
            return only_type(cast(Schema, options[0]), root)
    kind = schema.get("type")
    return (kind, schema) if isinstance(kind, str) else (None, schema)


def fields(schema: Schema, root: Schema) -> dict[str, Schema] | None:
    """Return the fields of an object that has no others, or None when it may have any."""
    kind, schema = only_type(schema, root)
    properties = schema.get("properties")
    if kind != "object" or not isinstance(properties, dict) or schema.get("additionalProperties"):
        return None
    return cast("dict[str, Schema]", properties)


def literal(node: ast.expr) -> object:
    """Return the value of a literal without parts, or UNKNOWN."""
    if isinstance(node, ast.Constant):
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        value = node.operand.value
        return -value if isinstance(value, (int, float)) and not isinstance(value, bool) else UNKNOWN
    return UNKNOWN


def _literal_type(node: ast.expr) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return "string"
    if isinstance(node, (ast.List, ast.Tuple, ast.ListComp)):
        return "array"
    if isinstance(node, (ast.Dict, ast.DictComp)):
        return "object"
    match literal(node):
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "number"
        case None:
            return "null"
        case _:
            return None


def problems(node: ast.expr, schema: Schema, root: Schema, path: str) -> Iterator[Problem]:
    """Yield what is certainly wrong with an argument: the place, the message, the suggestion.

    Args:
        node: the argument as written.
        schema: what it must fit.
        root: where references point to.
        path: how messages name it.
    """
    schema = resolved(schema, root)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            yield from _union_problems(node, cast("list[Schema]", schema[key]), root, path)
            return
    kind = _literal_type(node)
    if kind is None:
        return
    value = literal(node)
    allowed: object = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(allowed, list) and not isinstance(value, Unknown):
        if value not in cast("list[object]", allowed):
            yield node, *_not_allowed(value, cast("list[object]", allowed), path)
        return
    wanted = schema.get("type")
    kinds = [wanted] if isinstance(wanted, str) else cast("list[str]", wanted or [])
    if kinds and not _fits(kind, value, kinds):
        names = " or ".join(_TYPE_NAMES.get(name, name) for name in kinds)
        yield node, f"{path} must be {names}, got {_shown(node)}", _rewritten(node, value, kinds)
        return
    if kind == "string" and isinstance(value, str):
        yield from _text_problems(node, value, schema, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number_problems(node, value, schema, path)
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield from _list_problems(node, schema, root, path)
    elif isinstance(node, ast.Dict):
        yield from _dict_problems(node, schema, root, path)


def _rewritten(node: ast.expr, value: object, kinds: list[str]) -> str | None:
    """Return the argument as it should have been written, when only its form is wrong."""
    if kinds == ["array"] and not isinstance(node, ast.JoinedStr) and value is not None:
        return f"write a list: `[{_shown(node)}]`"
    if not isinstance(value, str):
        if kinds == ["string"] and isinstance(value, (int, float)) and not isinstance(value, bool):
            return f'write a text: `"{value}"`'
        return None
    text = value.strip()
    if kinds == ["boolean"] and text.lower() in ("true", "yes", "false", "no"):
        return f"write `{text.lower() in ('true', 'yes')}`"
    if kinds[0] in ("integer", "number") and text.isascii() and text.replace(".", "", 1).isdecimal():
        return f"write the number: `{text}`" if kinds == ["number"] or "." not in text else None
    return None


def _union_problems(node: ast.expr, options: list[Schema], root: Schema, path: str) -> Iterator[Problem]:
    found = [list(problems(node, option, root, path)) for option in options]
    if not all(found):
        return
    kind = _literal_type(node)
    same = [
        issues
        for option, issues in zip(options, found, strict=True)
        if only_type(option, root)[0] in (kind, None)
    ]
    if len(same) == 1:
        yield from same[0]
        return
    not_null = [
        issues for option, issues in zip(options, found, strict=True) if only_type(option, root)[0] != "null"
    ]
    if len(not_null) == 1:
        yield from not_null[0]
        return
    names = [only_type(option, root)[0] or "object" for option in options]
    wanted = " or ".join(dict.fromkeys(_TYPE_NAMES.get(name, name) for name in names))
    yield node, f"{path} must be {wanted}, got {_shown(node)}", None


def _fits(kind: str, value: object, kinds: list[str]) -> bool:
    if kind in kinds:
        return True
    if kind == "integer":
        return "number" in kinds
    return kind == "number" and "integer" in kinds and isinstance(value, float) and value.is_integer()


def _not_allowed(value: object, allowed: list[object], path: str) -> tuple[str, str | None]:
    names = ", ".join(json.dumps(item, ensure_ascii=False) for item in allowed[:60])
    message = f"{path} must be one of {names}; got {value!r}"
    near = (
        nearest(value, [item for item in allowed if isinstance(item, str)], 1)
        if isinstance(value, str)
        else []
    )
    return message, f"did you mean {near[0]!r}?" if near else None


def _text_problems(node: ast.expr, value: str, schema: Schema, path: str) -> Iterator[Problem]:
    form = schema.get("format")
    if form in ("date", "date-time") and not _is_iso(value, str(form)):
        example = "2025-03-31" if form == "date" else "2025-03-31T14:30:00Z"
        what = "an ISO date" if form == "date" else "an ISO date and time"
        yield node, f"{path} must be {what} such as {example}, got {value!r}", None
    shortest, longest = schema.get("minLength"), schema.get("maxLength")
    if isinstance(shortest, int) and len(value) < shortest:
        yield node, f"{path} must have at least {shortest} characters, got {len(value)}", None
    if isinstance(longest, int) and len(value) > longest:
        yield node, f"{path} must have at most {longest} characters, got {len(value)}", None


def _is_iso(value: str, form: str) -> bool:
    text = value.strip().replace("Z", "+00:00") if value.endswith("Z") else value
    try:
        if form == "date":
            datetime.date.fromisoformat(text[:_ISO_DATE_CHARACTERS])
            return len(text) == _ISO_DATE_CHARACTERS or bool(datetime.datetime.fromisoformat(text))
        datetime.datetime.fromisoformat(text)
    except ValueError:
        # Numbers of seconds are read as moments by lenient validators: not certainly wrong.
        return form == "date-time" and value.replace(".", "", 1).isdigit()
    return True


_BOUNDS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("minimum", "at least", operator.ge),
    ("maximum", "at most", operator.le),
    ("exclusiveMinimum", "more than", operator.gt),
    ("exclusiveMaximum", "less than", operator.lt),
)


def _number_problems(node: ast.expr, value: float, schema: Schema, path: str) -> Iterator[Problem]:
    for key, words, holds in _BOUNDS:
        limit = schema.get(key)
        if isinstance(limit, (int, float)) and not isinstance(limit, bool) and not holds(value, limit):
            yield node, f"{path} must be {words} {limit}, got {value}", None


def _list_problems(node: ast.List | ast.Tuple, schema: Schema, root: Schema, path: str) -> Iterator[Problem]:
    items = schema.get("items")
    starred = any(isinstance(item, ast.Starred) for item in node.elts)
    least, most = schema.get("minItems"), schema.get("maxItems")
    if not starred and isinstance(least, int) and len(node.elts) < least:
        yield node, f"{path} must have at least {least} items, got {len(node.elts)}", None
    if not starred and isinstance(most, int) and len(node.elts) > most:
        yield node, f"{path} must have at most {most} items, got {len(node.elts)}", None
    if isinstance(items, dict):
        for index, item in enumerate(node.elts):
            if not isinstance(item, ast.Starred):
                yield from problems(item, cast(Schema, items), root, f"{path}[{index}]")


def _dict_problems(node: ast.Dict, schema: Schema, root: Schema, path: str) -> Iterator[Problem]:
    properties = cast("dict[str, Schema]", schema.get("properties") or {})
    written: dict[str, ast.expr] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        name = literal(key) if key is not None else UNKNOWN
        if not isinstance(name, str):
            return  # a key that is not known: nothing certain can be said about the rest
        written[name] = value
    for name in cast("list[str]", schema.get("required") or []):
        if name not in written:
            yield node, f"{path} is missing the field {name!r}", None
    closed = schema.get("additionalProperties") is False
    for name, value in written.items():
        if name in properties:
            yield from problems(value, properties[name], root, f"{path}.{name}")
        elif closed and properties:
            near = nearest(name, properties, 1)
            known = ", ".join(properties)
            hint = f"did you mean {near[0]!r}?" if near else None
            yield node, f"{path} has no field {name!r}; it has: {known}", hint


def _shown(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 80 else text[:77] + "..."
