"""Preflight of results: fields that the declared return type of a tool does not have."""

from __future__ import annotations

import ast

from bascule.guest.advice import did_you_mean
from bascule.guest.schemas import Schema, fields, literal, only_type
from bascule.guest.survey import Survey

_CATCHES = ("KeyError", "LookupError", "TypeError", "AttributeError", "IndexError")
_MAX_FIELDS = 40
_DICT_NAMES = frozenset(dir(dict))


def check_fields(survey: Survey) -> None:
    """Find uses of results that cannot work."""
    stored = _stored_keys(survey)
    for node in survey.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            _check_key(survey, node, stored)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            _check_attribute(survey, node)


def _stored_keys(survey: Survey) -> set[str]:
    """Return the keys that the script itself puts into any dict by assignment."""
    return {
        key
        for node in survey.nodes
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
        if isinstance(key := literal(node.slice), str)
    } | {
        key
        for node in survey.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in ("setdefault", "update")
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(key := part.value, str)
    }


def _check_key(survey: Survey, node: ast.Subscript, stored: set[str]) -> None:
    key = literal(node.slice)
    if not isinstance(key, str) or key in stored or survey.is_caught(node, *_CATCHES):
        return
    if _check_loop_over_dict(survey, node):
        return
    found = survey.returned(node.value)
    if found is None:
        return
    schema, root, tool = found
    kind, _ = only_type(schema, root)
    known = fields(schema, root)
    if known is not None and key not in known:
        hint = did_you_mean(key, known)
        survey.find(
            node, "unknown_field", f"the result of {tool}() has no {key!r} here: {_fields(known)}", hint
        )
    elif kind == "array":
        example = f"{ast.unparse(node.value)[:40]}[0][{key!r}]"
        message = f"{tool}() gives a list here, not a dict: {key!r} is no index"
        survey.find(node, "unknown_field", message, f"loop over it, or write `{example}`")
    elif kind == "string":
        message = f"{tool}() gives text here: {key!r} is no index"
        survey.find(node, "unknown_field", message, f"parse it with json.loads before using [{key!r}]")
    elif kind in ("integer", "number", "boolean", "null"):
        survey.find(node, "unknown_field", f"{tool}() gives {kind} here, which has no {key!r}")


def _check_loop_over_dict(survey: Survey, node: ast.Subscript) -> bool:
    """Find a loop over a dict result whose variable is used as if it were an item of a list in it."""
    if not isinstance(node.value, ast.Name):
        return False
    source, of_items = survey.only_value(node.value.id)
    if source is None or not of_items:
        return False
    found = survey.returned(source)
    known = fields(found[0], found[1]) if found is not None else None
    if found is None or known is None:
        return False
    lists = [name for name, schema in known.items() if only_type(schema, found[1])[0] == "array"]
    message = f"{found[2]}() gives a dict here, looping over it gives its keys: {_fields(known)}"
    hint = f'loop over `{ast.unparse(source)[:60]}["{lists[0]}"]`' if len(lists) == 1 else None
    survey.find(source, "unknown_field", message, hint)
    return True


def _check_attribute(survey: Survey, node: ast.Attribute) -> None:
    if survey.is_caught(node, *_CATCHES):
        return
    found = survey.returned(node.value)
    known = fields(found[0], found[1]) if found is not None else None
    if found is None or known is None or node.attr in _DICT_NAMES:
        return
    message = f"{found[2]}() gives a dict, which has no attribute {node.attr!r}: {_fields(known)}"
    hint = f'write ["{node.attr}"]' if node.attr in known else did_you_mean(node.attr, known)
    survey.find(node, "unknown_field", message, hint)


def _fields(known: dict[str, Schema]) -> str:
    return "it has " + ", ".join(repr(name) for name in list(known)[:_MAX_FIELDS])
