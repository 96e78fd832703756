"""Finds rules that can never match what a registry offers, before a call slips by them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from bascule.bridge.conditions import glob_matches
from bascule.bridge.rules import Rule
from bascule.tools import AnyTool

_MAX_REFERENCES: Final = 32


def lint_rules(rules: Sequence[Rule], tools: Sequence[AnyTool]) -> list[str]:
    """Return one line per rule that is about nothing, in the order of the file."""
    problems: list[str] = []
    always_denied = {
        tool.name
        for tool in tools
        for rule in rules
        if rule.effect == "deny" and not rule.match.args and glob_matches(rule.match.tool, tool.name)
    }
    for rule in rules:
        about = [tool for tool in tools if glob_matches(rule.match.tool, tool.name)]
        if not about:
            problems.append(f"rule {rule.id}: no tool matches {rule.match.tool!r}{_nearest(rule, tools)}")
            continue
        problems.extend(
            f"rule {rule.id}: no tool it is about has an argument {path!r}"
            for path in rule.match.args
            if not any(_has_argument(tool.parameters, path) for tool in about)
        )
        if rule.effect == "allow" and all(tool.name in always_denied for tool in about):
            problems.append(f"rule {rule.id}: a deny rule without conditions always beats it")
    return problems


def _nearest(rule: Rule, tools: Sequence[AnyTool]) -> str:
    close = difflib.get_close_matches(rule.match.tool, [tool.name for tool in tools], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _has_argument(parameters: Mapping[str, Any], path: str) -> bool:
    return _leads_somewhere(parameters, parameters, path.split("."))


def _leads_somewhere(schema: object, root: Mapping[str, Any], names: Sequence[str], depth: int = 0) -> bool:
    """Tell whether a JSON Schema allows an object member at the path, through references and unions."""
    if not names:
        return True
    if not isinstance(schema, dict) or depth > _MAX_REFERENCES:
        return False
    members = cast("dict[str, Any]", schema)
    reference = members.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        return _leads_somewhere(
            root.get("$defs", {}).get(reference.removeprefix("#/$defs/")), root, names, depth + 1
        )
    for union in ("anyOf", "oneOf", "allOf"):
        if any(_leads_somewhere(option, root, names, depth + 1) for option in members.get(union, ())):
            return True
    properties = members.get("properties", {})
    if names[0] in properties:
        return _leads_somewhere(properties[names[0]], root, names[1:], depth + 1)
    free = members.get("additionalProperties", False)
    return bool(free) and _leads_somewhere(free, root, names[1:], depth + 1)
