"""Finds rules that can never match what a registry offers, before a call slips by them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from bascule.bridge.conditions import holds
from bascule.bridge.matching import is_about
from bascule.bridge.rules import Condition, Rule
from bascule.bridge.schema_paths import find_choices, find_types
from bascule.tools import AnyTool

BUILT_IN_LABELS = frozenset({"untrusted", "private", "external"})

_NUMBERS = frozenset({"integer", "number", "string"})
"""Types the comparisons read: decimals are text in canonical arguments."""

_READS = {
    "lt": _NUMBERS,
    "lte": _NUMBERS,
    "gt": _NUMBERS,
    "gte": _NUMBERS,
    "glob": frozenset({"string"}),
    "host_in": frozenset({"string"}),
    "len_lte": frozenset({"string", "array", "object"}),
}
_OF_JSON: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def lint_rules(
    rules: Sequence[tuple[str, Rule]], tools: Sequence[AnyTool], groups: Collection[str] = ()
) -> list[str]:
    """Return one line per fault of a rule, in the order of the rules.

    Args:
        rules: by name.
        groups: those that the policy defines.
    """
    problems: list[str] = []
    denying = [(name, rule) for name, rule in rules if rule.effect == "deny"]
    for name, rule in rules:
        about = [tool for tool in tools if is_about(rule, tool)]
        if not about:
            problems.append(f"rule {name}: {_about_nothing(rule, tools)}")
            continue
        found = [*_lint_arguments(rule, about), *_lint_labels(rule, tools), *_lint_groups(rule, groups)]
        if rule.effect == "allow":
            found += _lint_shadow(rule, about, denying)
        problems.extend(f"rule {name}: {problem}" for problem in found)
    return problems


def _lint_shadow(rule: Rule, about: Sequence[AnyTool], denying: Sequence[tuple[str, Rule]]) -> Iterable[str]:
    """Tell whether every tool an allow rule is about has a deny rule that matches whenever it does."""
    beaten = {
        tool.name: name
        for name, deny in denying
        if _asks_no_more(deny, rule)
        for tool in about
        if is_about(deny, tool)
    }
    if len(beaten) == len(about):
        yield f"it never lets anything through: {', '.join(sorted(set(beaten.values())))} always denies that"


def _asks_no_more(deny: Rule, allow: Rule) -> bool:
    """Tell whether all conditions of one rule are among those of another."""
    same = all(allow.match.args.get(path) == condition for path, condition in deny.match.args.items())
    labels, user = deny.match.run_labels, deny.match.user
    return (
        same
        and (labels is None or labels == allow.match.run_labels)
        and (user is None or user == allow.match.user)
    )


def _about_nothing(rule: Rule, tools: Sequence[AnyTool]) -> str:
    match = rule.match
    if match.label is not None and not any(match.label in tool.labels for tool in tools):
        return f"no tool has the label {match.label!r}{_nearest(match.label, _labels(tools))}"
    near = _nearest(match.tool or "", [tool.name for tool in tools])
    with_label = f" with the label {match.label!r}" if match.label is not None else ""
    return f"no tool matches {match.tool!r}{with_label}{near}"


def _labels(tools: Iterable[AnyTool]) -> set[str]:
    return {label for tool in tools for label in tool.labels}


def _nearest(wanted: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(wanted, sorted(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _lint_arguments(rule: Rule, about: Sequence[AnyTool]) -> Iterable[str]:
    named = {path: f"an argument {path!r}" for path in rule.match.args}
    if rule.budget is not None and rule.budget.sum is not None:
        named[rule.budget.sum.arg] = f"an argument {rule.budget.sum.arg!r} to sum up"
    for path in () if rule.approval is None else rule.approval.editable:
        named.setdefault(path, f"an argument {path!r} to edit")
    for path, what in named.items():
        types = [found for tool in about if (found := find_types(tool.parameters, path)) is not None]
        if not types:
            names = {name for tool in about for name in tool.parameters.get("properties", {})}
            yield f"no tool it is about has {what}{_nearest(path, names)}"
            continue
        condition = rule.match.args.get(path)
        if condition is not None:
            always = all(_has_always(tool.parameters, path) for tool in about)
            yield from _lint_condition(
                path, condition, types, [find_choices(t.parameters, path) for t in about], always=always
            )
    if rule.budget is not None and rule.budget.sum is not None:
        types = [found for tool in about if (found := find_types(tool.parameters, rule.budget.sum.arg))]
        if types and not any(each & _NUMBERS for each in types):
            yield f"the argument {rule.budget.sum.arg!r} is no number, so nothing can be summed up"


def _lint_condition(
    path: str,
    condition: Condition,
    types: Sequence[frozenset[str]],
    choices: Sequence[list[object] | None],
    *,
    always: bool,
) -> Iterable[str]:
    possible = frozenset(name for each in types for name in each)
    anything = frozenset() in types
    for operator, reads in _READS.items():
        if operator in condition.model_fields_set and not anything and not possible & reads:
            yield f"{path}: {operator} cannot be told of {', '.join(sorted(possible))}"
    wanted = [condition.eq] if "eq" in condition.model_fields_set else list(condition.in_ or ())
    if condition.in_ == ():
        yield f"{path}: in names no value"
    elif wanted and all(holds(condition, value) is False for value in wanted):
        yield f"{path}: no value is what all of {_operators(condition)} want"
    if condition.exists is False and always:
        yield f"{path}: every call has it, so it always exists"
    if wanted and not anything:
        if not any(_can_be(value, possible) for value in wanted):
            yield f"{path}: it is never {wanted[0]!r}; its type is {', '.join(sorted(possible))}"
        elif None not in choices:
            known = [value for each in choices for value in each or ()]
            if not any(value in known for value in wanted):
                yield f"{path}: it is never {wanted[0]!r}; it is one of {', '.join(map(repr, known))}"
    low = max((x for x in (condition.gt, condition.gte) if x is not None), default=None)
    high = min((x for x in (condition.lt, condition.lte) if x is not None), default=None)
    if low is not None and high is not None and (low > high or (low == high and _is_open(condition, low))):
        yield f"{path}: no number is above {low} and below {high}"


def _operators(condition: Condition) -> str:
    return ", ".join(sorted(name.rstrip("_") for name in condition.model_fields_set))


def _has_always(parameters: Mapping[str, Any], path: str) -> bool:
    """Tell whether every call has a value other than null at the path; unsure below the first level."""
    types = find_types(parameters, path)
    return path in parameters.get("required", ()) and bool(types) and "null" not in (types or ())


def _is_open(condition: Condition, bound: float) -> bool:
    return bound in (condition.gt, condition.lt)


def _can_be(value: object, types: frozenset[str]) -> bool:
    name = _OF_JSON[type(value)]
    return name in types or (name in ("integer", "number") and bool(types & {"integer", "number"}))


def _lint_labels(rule: Rule, tools: Sequence[AnyTool]) -> Iterable[str]:
    wanted = rule.match.run_labels
    if wanted is None:
        return
    known = _labels(tools)
    for label in wanted.all:
        if label not in known:
            yield f"no run ever has the label {label!r}: no tool has it{_nearest(label, known)}"
    if wanted.any and not known & set(wanted.any):
        yield f"no run ever has one of the labels {', '.join(wanted.any)}: no tool has them"
    for label in wanted.none:
        if label not in known | BUILT_IN_LABELS:
            yield f"no tool has the label {label!r}{_nearest(label, known)}"
    both = set(wanted.none) & set(wanted.all)
    if both:
        yield f"run_labels both wants and refuses {', '.join(sorted(both))}"


def _lint_groups(rule: Rule, groups: Collection[str]) -> Iterable[str]:
    named = [] if rule.match.user is None or rule.match.user.group is None else [rule.match.user.group]
    if rule.approval is not None and rule.approval.approvers is not None:
        named += rule.approval.approvers.groups
    for group in named:
        near = "" if group in groups else _nearest(group, groups)
        if near:  # other groups come from the host, which is not known here
            yield f"there is no group {group!r}{near}"
