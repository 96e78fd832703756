"""Fields of a form for the argument values that a rule lets people edit, and back.

A text that is plain is edited as it is. Any other value is edited as ASCII JSON, so that nothing in it is
invisible while somebody edits around it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from bascule.bridge.display import show
from bascule.bridge.result import JsonValue
from bascule.console.problems import Problem
from bascule.console.reading import parse_json


@dataclass(frozen=True, slots=True)
class Field:
    """One field; ``name`` in the form is ``text:PATH`` or ``json:PATH``."""

    path: str
    kind: Literal["text", "json"]
    value: str

    @property
    def name(self) -> str:
        """Name in the form."""
        return f"{self.kind}:{self.path}"

    @property
    def rows(self) -> int:
        """Lines of the field."""
        return min(12, max(1, self.value.count("\n") + 1 + len(self.value) // 60))


def make_fields(arguments: Mapping[str, JsonValue], editable: Iterable[str]) -> list[Field]:
    """Return a field for each editable path; of one that is not there, an empty one for JSON."""
    fields: list[Field] = []
    for path in editable:
        found, value = _find(arguments, path)
        if not found:
            fields.append(Field(path, "json", ""))
        elif isinstance(value, str) and all(show(line) == line for line in value.split("\n")):
            fields.append(Field(path, "text", value))
        else:
            fields.append(Field(path, "json", json.dumps(value, ensure_ascii=True)))
    return fields


def read_fields(arguments: dict[str, JsonValue], form: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the arguments with what the fields of a form say.

    Raises:
        Problem: a field is no JSON, or leads nowhere.
    """
    edited = copy.deepcopy(arguments)
    for name, text in form.items():
        kind, _, path = name.partition(":")
        if kind == "text":
            _set(edited, path, text.replace("\r\n", "\n"))
        elif kind == "json" and text.strip():
            try:
                _set(edited, path, parse_json(text.encode()))
            except Problem as problem:
                raise Problem(422, problem.code, f"{path}: {problem.detail}") from problem
    return edited


def _find(arguments: Mapping[str, JsonValue], path: str) -> tuple[bool, JsonValue]:
    value: JsonValue = dict(arguments)
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return False, None
        value = value[name]
    return True, value


def _set(arguments: dict[str, JsonValue], path: str, value: JsonValue) -> None:
    *way, last = path.split(".")
    holder = arguments
    for name in way:
        found = holder.get(name)
        if not isinstance(found, dict):
            raise Problem(422, "edit_not_allowed", f"there is nothing at {path}")
        holder = found
    holder[last] = value
