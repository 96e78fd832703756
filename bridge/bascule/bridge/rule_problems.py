"""What is wrong with a rule file, in words for who wrote it: the rule by its id, and which keys there are."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Final, cast

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from bascule.bridge import rules

_SECTIONS: Final[Mapping[str, type[BaseModel]]] = {
    "match": rules.Match,
    "run_labels": rules.RunLabels,
    "user": rules.UserMatch,
    "budget": rules.BudgetSection,
    "sum": rules.Sum,
    "approval": rules.ApprovalSection,
    "approvers": rules.Approvers,
}
"""The key of a section to what may stand in it."""


def describe_problem(problem: ErrorDetails, data: object) -> str:
    """Return one finding in one line.

    Args:
        data: the whole file as it was read, for the ids of its rules.
    """
    path = problem["loc"]
    where = ".".join(map(str, path))
    rule = _rule_id(path, data)
    if rule is not None:
        where = f"{where} (rule {rule!r:.80})"
    text = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        text = _describe_unknown(str(path[-1]), _section_of(path[:-1]))
    return f"{where}: {text}" if where else text


def _describe_unknown(key: str, section: type[BaseModel]) -> str:
    keys = [field.alias or name for name, field in section.model_fields.items()]
    near = difflib.get_close_matches(key, keys, n=1)
    guess = f" did you mean {near[0]}?" if near else ""
    return f"unknown key;{guess} it may have {', '.join(keys)}"


def _section_of(path: Sequence[int | str]) -> type[BaseModel]:
    if not path:
        return rules.RuleFile
    if path[-1] in _SECTIONS and "args" not in path:
        return _SECTIONS[str(path[-1])]
    return rules.Condition if "args" in path else rules.Rule


def _rule_id(path: Sequence[int | str], data: object) -> str | None:
    """Return the id of the rule a path leads into, when it has one."""
    if len(path) < 2 or path[0] != "rules" or not isinstance(path[1], int) or not isinstance(data, dict):
        return None
    listed = cast("dict[object, object]", data).get("rules")
    if not isinstance(listed, list) or path[1] >= len(cast("list[object]", listed)):
        return None
    rule = cast("list[object]", listed)[path[1]]
    found = cast("dict[object, object]", rule).get("id") if isinstance(rule, dict) else None
    return found if isinstance(found, str) else None
