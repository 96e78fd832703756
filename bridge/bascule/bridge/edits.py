"""What an edit changes: paths of differing values, and whether an operator's list lets them be changed."""

from __future__ import annotations

from collections.abc import Iterable

from bascule.bridge.result import JsonValue
from bascule.tools.canonical import canonical_json, join_path


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
