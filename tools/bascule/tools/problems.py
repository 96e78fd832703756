"""pydantic's findings turned into words a script's author can act on.

Decides what each kind of mistake is called and what to write instead. The values come from the script and
are untrusted: they appear only as bounded JSON text.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic import JsonValue
from pydantic_core import ErrorDetails

from bascule.tools.canonical import join_path
from bascule.tools.errors import Problem
from bascule.tools.safe_text import shorten
from bascule.tools.schema import JsonSchema, is_object
from bascule.tools.type_text import literal_text, plain_names, type_text

MAX_GOT_CHARS = 80
MAX_MESSAGE_CHARS = 300
MAX_ALLOWED = 50
MAX_SHOWN_PROBLEMS = 20
MAX_PROBLEMS = 100
"""Problems worked out for one argument: a frame can hold 200,000 wrong values."""

_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_MISSING = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})
_TYPES = {
    "int_type": "int",
    "int_parsing": "int",
    "int_from_float": "int",
    "float_type": "float",
    "float_parsing": "float",
    "bool_type": "bool",
    "bool_parsing": "bool",
}

_SUBJECT = re.compile(r"^[A-Z]\w*(?: \w+)? should")

Loc = tuple[int | str, ...]


def _find_step(value: JsonValue, step: int | str) -> tuple[bool, JsonValue]:
    """Follow one step of a pydantic location into the input; steps that name union branches are not there."""
    if isinstance(value, dict) and isinstance(step, str) and step in value:
        return True, value[step]
    if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
        return True, value[step]
    return False, None


def resolve(value: JsonValue, loc: Loc) -> Loc:
    """Return the steps of a location that exist in the input."""
    found: list[int | str] = []
    for step in loc:
        exists, inner = _find_step(value, step)
        if exists:
            found.append(step)
            value = inner
    return tuple(found)


def describe_problems(
    name: str, value: JsonValue, errors: Sequence[ErrorDetails], schema: JsonSchema, defs: JsonSchema
) -> list[Problem]:
    """Turn the findings about one argument into problems, one for each place, at most MAX_PROBLEMS.

    Args:
        name: the parameter.
        value: what the script passed for it.
        schema, defs: the parameter's schema and what it refers to.
    """
    places: dict[str, list[Problem]] = {}
    for error in errors[:MAX_PROBLEMS]:
        problem = _describe(name, value, error, schema, defs)
        places.setdefault(problem.path, []).append(problem)
    return [_merge(problems) for problems in places.values()]


def _merge(problems: list[Problem]) -> Problem:
    """Join what the branches of a union say about one place."""
    messages = list(dict.fromkeys(problem.message for problem in problems))
    allowed = [value for problem in problems for value in problem.allowed]
    message = "; or ".join(messages)[:MAX_MESSAGE_CHARS]
    first = problems[0]
    return Problem(path=first.path, message=message, got=first.got, allowed=tuple(allowed[:MAX_ALLOWED]))


def _describe(
    name: str, value: JsonValue, error: ErrorDetails, schema: JsonSchema, defs: JsonSchema
) -> Problem:
    loc = error["loc"]
    steps = resolve(value, loc)
    kind = error["type"]
    here = list(_schemas_at(schema, steps, defs))
    if kind in _MISSING:
        inner = list(_schemas_at(schema, (*steps, loc[-1]), defs))
        return Problem(path=_path(name, (*steps, loc[-1])), message=f"missing, {_expected(inner)}")
    if kind in _UNKNOWN:
        parents = _schemas_at(schema, steps[:-1], defs)
        fields = list(dict.fromkeys(key for parent in parents for key in parent.get("properties", {})))
        return Problem(path=_path(name, steps), message=unknown_text(str(steps[-1]), fields, "fields"))
    got = value_at(value, steps)
    allowed = tuple(item for node in here for item in _allowed(node))[:MAX_ALLOWED]
    message = f"must be one of {', '.join(map(literal_text, allowed))}" if allowed else _say(error, got)
    if loc and loc[-1] == "[key]":
        message = f"the key {message}"
    return Problem(
        path=_path(name, steps), message=message[:MAX_MESSAGE_CHARS], got=bounded_json(got), allowed=allowed
    )


def unknown_text(name: str, known: Collection[str], noun: str) -> str:
    """Say that a name is unknown, with the nearest one and all there are."""
    near = difflib.get_close_matches(name[:100], known, n=1, cutoff=0.6)
    guess = f"unknown, did you mean {near[0]}?" if near else "unknown"
    return f"{guess} ({noun}: {', '.join(known) if known else 'none'})"


def bounded_json(value: JsonValue) -> str:
    """Return a value as ASCII JSON text of at most MAX_GOT_CHARS."""
    if isinstance(value, str):
        value = value[: MAX_GOT_CHARS + 1]
    text = json.dumps(value)
    return shorten(text, MAX_GOT_CHARS)


def _say(error: ErrorDetails, got: JsonValue) -> str:
    expected = _TYPES.get(error["type"])
    if expected and isinstance(got, str):
        return f"must be {expected}, not text{_without_quotes(expected, got)}"
    if expected and isinstance(got, bool):
        return f"must be {expected}, not a bool"
    if error["type"] == "bool_type" and got in (0, 1):
        return f"must be bool: write {bool(got)}"
    if error["type"] == "int_type" and isinstance(got, float):
        return "must be a whole number"
    if error["type"] == "string_type" and isinstance(got, int | float) and not isinstance(got, bool):
        return f"must be text: write {json.dumps(str(got))}"
    if error["type"] in ("value_error", "assertion_error"):
        return str(error.get("ctx", {}).get("error", error["msg"]))
    return _SUBJECT.sub("must", error["msg"])


def _without_quotes(expected: str, got: str) -> str:
    text = got.strip()
    if expected == "bool":
        lowered = text.lower()
        return f": write {lowered.capitalize()}" if lowered in ("true", "false") else ""
    try:
        number = int(text) if expected == "int" else float(text)
    except ValueError:
        return ""
    return f": write {number}, without quotes" if len(text) <= 30 else ""


def _path(name: str, steps: Loc) -> str:
    path = name
    for step in steps:
        path = join_path(path, step)
    return path[:200]


def value_at(value: JsonValue, steps: Loc) -> JsonValue:
    """Follow steps that `resolve` found."""
    for step in steps:
        value = _find_step(value, step)[1]
    return value


def _expected(nodes: list[JsonSchema]) -> str:
    texts = dict.fromkeys(type_text(node, name_object=plain_names) for node in nodes)
    return f"must be {' | '.join(texts)}" if texts else "is required"


def _allowed(node: Mapping[str, Any]) -> list[JsonValue]:
    if "const" in node:
        return [node["const"]]
    options: list[JsonValue] = node.get("enum", [])
    return options


def _schemas_at(schema: JsonSchema, steps: Loc, defs: JsonSchema) -> Iterator[JsonSchema]:
    """Yield every schema that describes the place, through references and unions; each of them once."""
    nodes = list(branches_of(schema, defs, frozenset()))
    for step in steps:
        nodes = [
            branch
            for node in nodes
            for inner in schemas_below(node, step)
            for branch in branches_of(inner, defs, frozenset())
        ]
    yield from nodes


def branches_of(node: JsonSchema, defs: JsonSchema, seen: frozenset[str]) -> Iterator[JsonSchema]:
    """Yield what a schema may stand for, through references and unions, less the references in ``seen``."""
    reference = str(node.get("$ref", "")).rsplit("/", 1)[-1]
    if reference:
        if reference in defs and reference not in seen:
            yield from branches_of(defs[reference], defs, seen | {reference})
        return
    options = [option for keyword in ("anyOf", "oneOf", "allOf") for option in node.get(keyword, [])]
    if not options:
        yield node
    for option in options:
        yield from branches_of(option, defs, seen)


def schemas_below(node: JsonSchema, step: int | str) -> list[JsonSchema]:
    """Return the schemas of a member or an item of what a schema without reference describes."""
    candidates: list[object] = []
    if isinstance(step, str):
        properties = node.get("properties", {})
        candidates.append(properties[step] if step in properties else node.get("additionalProperties"))
    else:
        prefix = node.get("prefixItems", [])
        candidates.append(prefix[step] if step < len(prefix) else node.get("items"))
    return [candidate for candidate in candidates if is_object(candidate)]
