"""Edits: what a person's arguments change on a card, and whether the operator's list lets them be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import msgspec

from bascule.bridge.approval import Decision
from bascule.bridge.approval_card import Card
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.result import JsonValue
from bascule.tools.canonical import canonical_json, join_path

CheckEdit = Callable[[Card, Mapping[str, JsonValue]], bytes]
"""Validates edited arguments and returns their canonical form; raises BasculeError with what is wrong."""


def apply_edit(card: Card, decision: Decision, check_edit: CheckEdit | None) -> Card:
    """Return a card with the arguments a person wrote, for which nobody has spoken yet.

    Raises:
        DecisionRefused: ``edit_not_allowed``; the message says why.
    """
    if decision.arguments is None:
        raise DecisionRefused("edit_not_allowed", "an edit needs all arguments")
    before = msgspec.json.decode(card.arguments)
    edited = dict(decision.arguments)
    try:
        canonical = canonical_json(edited) if check_edit is None else check_edit(card, edited)
    except ValueError as error:
        raise DecisionRefused("edit_not_allowed", f"these arguments are no JSON: {error}") from error
    changed = find_changes(before, msgspec.json.decode(canonical))
    locked = [path for path in changed if not is_editable(path, card.requirement.editable)]
    if locked:
        allowed = ", ".join(card.requirement.editable)
        raise DecisionRefused("edit_not_allowed", f"{', '.join(locked)} cannot be edited; only {allowed}")
    if not changed:
        raise DecisionRefused("edit_not_allowed", "the arguments are unchanged; approve instead")
    return replace(
        card, arguments=canonical.decode(), original=card.original or card.arguments, voices=(), grant=None
    )


def find_changes(before: JsonValue, after: JsonValue) -> list[str]:
    """Return the paths at which two objects differ, each as short as says it; lists differ as a whole."""
    return list(_changes(before, after, ""))


def is_editable(path: str, editable: Iterable[str]) -> bool:
    """Tell whether a changed path is one of these, or lies below one."""
    return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in editable)


def _changes(before: JsonValue, after: JsonValue, path: str) -> Iterable[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            below = join_path(path, key)
            if key not in before or key not in after:
                yield below
            else:
                yield from _changes(before[key], after[key], below)
    elif canonical_json(before) != canonical_json(after):  # == would take 1 for True
        yield path
