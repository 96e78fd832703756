"""Whether a rule matches a call, and why: three answers for each part, and the rule's effect decides doubt.

True and False are sure; None says that it cannot be told (a value is missing, of another type, or nobody
knows for whom the run is). Deny and ask rules match in doubt, allow rules do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bascule.bridge.conditions import find_argument, glob_matches, holds
from bascule.bridge.result import JsonValue
from bascule.bridge.rules import Rule, RunLabels, UserMatch
from bascule.tools import AnyTool

_SAID = {True: "holds", False: "does not hold", None: "cannot be told: missing or of another type"}


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody a run is made for, or who decides: a name, groups and tenant the host vouches for."""

    name: str
    groups: frozenset[str] = frozenset()
    tenant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What policy knows of a call beside tool and arguments.

    Attributes:
        run_id: names the run in budgets.
        user: for whom the run is made; None when that is not known.
        labels: labels of the tools that this run has called so far.
        day: the UTC date that daily budgets count under, ``YYYY-MM-DD``.
    """

    run_id: str = ""
    user: User | None = None
    labels: frozenset[str] = field(default_factory=frozenset[str])
    day: str = ""


def is_about(rule: Rule, tool: AnyTool) -> bool:
    """Tell whether a rule is about a tool at all."""
    match = rule.match
    if match.tool is not None and not glob_matches(match.tool, tool.name):
        return False
    return match.label is None or match.label in tool.labels


def rule_matches(rule: Rule, arguments: Mapping[str, JsonValue], facts: Facts) -> bool:
    """Tell whether a rule that `is_about` the tool matches this call."""
    answers = [answer for _, answer in _answers(rule, arguments, facts)]
    if False in answers:
        return False
    return None not in answers or rule.effect != "allow"


def explain_rule(
    rule: Rule, tool: AnyTool, arguments: Mapping[str, JsonValue], facts: Facts
) -> tuple[bool, str]:
    """Return whether a rule matches, and every part of the reason in words for the operator."""
    if not is_about(rule, tool):
        about = [rule.match.tool or "", f"label {rule.match.label}" if rule.match.label else ""]
        return False, f"it is about {' with '.join(filter(None, about))}"
    said = [f"{what}: {_SAID[answer]}" for what, answer in _answers(rule, arguments, facts)]
    return rule_matches(rule, arguments, facts), "; ".join(said) or "it has no conditions"


def _answers(
    rule: Rule, arguments: Mapping[str, JsonValue], facts: Facts
) -> Iterator[tuple[str, bool | None]]:
    match = rule.match
    for path, condition in match.args.items():
        wanted = condition.model_dump(include=condition.model_fields_set, by_alias=True)
        yield f"{path} {wanted}", holds(condition, find_argument(arguments, path))
    if match.run_labels is not None:
        wanted = match.run_labels.model_dump(exclude_defaults=True)
        yield f"run_labels {wanted}", _labels_hold(match.run_labels, facts.labels)
    if match.user is not None:
        wanted = match.user.model_dump(exclude_none=True)
        yield f"user {wanted}", _user_holds(match.user, facts.user)


def _labels_hold(wanted: RunLabels, labels: frozenset[str]) -> bool:
    return (
        labels.issuperset(wanted.all)
        and (not wanted.any or not labels.isdisjoint(wanted.any))
        and labels.isdisjoint(wanted.none)
    )


def _user_holds(wanted: UserMatch, user: User | None) -> bool | None:
    if user is None:
        return None
    if wanted.name is not None and wanted.name != user.name:
        return False
    return wanted.group is None or wanted.group in user.groups
