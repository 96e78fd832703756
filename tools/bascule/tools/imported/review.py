"""A definition that people look at, confirm or refuse: what it is now, what it was, what was decided so far.

All of it but the decision is a service's word; whoever shows it makes it safe to show.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from pydantic import JsonValue

from bascule.tools.options import Effects

ReviewState = Literal["waiting", "confirmed", "refused"]
Mark = Literal["same", "added", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One definition that is not in force.

    Attributes:
        server, tool: whose, and its name there.
        reason: why it waits: ``new``, ``changed``, or what cannot be confirmed.
        note: more about the reason.
        name: what scripts would call it; empty when it cannot be confirmed.
        digest: names what is looked at; None when it cannot be confirmed.
        suggested: effects that the server suggests.
        definition: as plain data.
        before: as it was confirmed, for ``changed``.
        before_effects: those it was confirmed with.
        state: what people decided about this digest; what is confirmed is in force from the next opening on.
        by, said: who decided, and why.
        effects: those it is confirmed with by now.
    """

    server: str
    tool: str
    reason: str
    note: str = ""
    name: str = ""
    digest: str | None = None
    suggested: Effects | None = None
    definition: dict[str, JsonValue] | None = None
    before: dict[str, JsonValue] | None = None
    before_effects: Effects | None = None
    state: ReviewState = "waiting"
    by: str = ""
    said: str = ""
    effects: Effects | None = None

    def lines(self) -> list[tuple[Mark, str]]:
        """Return the definition line by line: all of it when it is new, else what changed and some around it.

        The layout of a line is ours; what a server wrote is within quotation marks, its line feeds escaped.
        """
        if self.definition is None:
            return []
        now = _pretty(self.definition)
        if self.before is None:
            return [("same", line) for line in now]
        marks: dict[str, Mark] = {"+": "added", "-": "removed", " ": "same"}
        changed = difflib.unified_diff(_pretty(self.before), now, lineterm="", n=2)
        return [(marks[line[0]], line[1:]) for line in changed if not line.startswith(("---", "+++", "@@"))]


@runtime_checkable
class Reviewed(Protocol):
    """A source whose definitions people confirm."""

    def review(self) -> Sequence[Review]:
        """Return what is not in force, with what people decided about it so far."""
        ...

    def settle(
        self,
        server: str,
        tool: str,
        digest: str,
        *,
        confirm: bool,
        by: str,
        effects: Effects | None,
        reason: str,
    ) -> Effects | None:
        """Write that a definition is confirmed, or refused, and return the effects it was confirmed with.

        Raises:
            ToolLoadError: ``definition_changed``: it is not what was shown; or the file cannot be read.
        """
        ...


def _pretty(plain: object) -> list[str]:
    return json.dumps(plain, indent=1, ensure_ascii=False, sort_keys=True).split("\n")
