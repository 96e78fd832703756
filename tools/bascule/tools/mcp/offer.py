"""Which tools of a server are offered, which wait for people, and why.

Decides by the operator's file and the confirmed digests alone; nothing a server says widens anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import mcp_types as types

from bascule.tools.imported.review import Review, ReviewState
from bascule.tools.mcp.config import ServerConfig
from bascule.tools.mcp.confirmed import Confirmation, Refusal
from bascule.tools.mcp.definitions import Definition, read_definition
from bascule.tools.options import Effects

Reason = Literal["new", "changed", "listed twice", "unusable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A tool that is listed and cannot be called.

    Attributes:
        server, tool: whose, and its name there; untrusted.
        reason: why it waits; ``listed twice`` and ``unusable`` cannot be confirmed.
        note: more about the reason.
        name: what scripts call it once everything that waits is confirmed; empty when it cannot be confirmed.
        definition: as the server gives it now; None for an unusable one.
        confirmed: as it was confirmed before, for ``changed``.
    """

    server: str
    tool: str
    reason: Reason
    note: str = ""
    name: str = ""
    definition: Definition | None = None
    confirmed: Confirmation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A tool that may be called, with the effects people gave it."""

    definition: Definition
    effects: Effects


def sort_tools(
    server: ServerConfig, listed: Sequence[types.Tool], confirmed: Mapping[str, Confirmation]
) -> tuple[list[Offer], list[Waiting]]:
    """Return what a server's list means: the tools on offer, and those that wait."""
    offers: list[Offer] = []
    waiting: list[Waiting] = []
    counts = Counter(tool.name for tool in listed)
    for tool in {each.name: each for each in listed if server.offers(each.name)}.values():
        if counts[tool.name] > 1:
            waiting.append(Waiting(server=server.name, tool=tool.name, reason="listed twice"))
            continue
        try:
            definition = read_definition(tool)
        except ValueError as error:
            note = str(error)
            waiting.append(Waiting(server=server.name, tool=tool.name, reason="unusable", note=note))
            continue
        found = _decide(server, definition, confirmed.get(tool.name))
        if isinstance(found, Offer):
            offers.append(found)
        else:
            waiting.append(found)
    return offers, waiting


def _decide(server: ServerConfig, definition: Definition, known: Confirmation | None) -> Offer | Waiting:
    given = server.effects_of(definition.tool)
    if server.unsafe_trust_definitions:
        return Offer(definition=definition, effects=given or "once")
    if known is not None and known.digest == definition.digest:
        return Offer(definition=definition, effects=given or known.effects)
    return Waiting(
        server=server.name,
        tool=definition.tool,
        reason="new" if known is None else "changed",
        definition=definition,
        confirmed=known,
    )


def review_waiting(waiting: Waiting, confirmed: Confirmation | None, refused: Refusal | None) -> Review:
    """Return a tool that waits as people see it, with what they decided about this very definition."""
    definition = waiting.definition
    state: ReviewState = "waiting"
    by = said = ""
    effects: Effects | None = None
    if definition is not None and confirmed is not None and confirmed.digest == definition.digest:
        state, by, effects = "confirmed", confirmed.confirmed_by, confirmed.effects
    elif definition is not None and refused is not None and refused.digest == definition.digest:
        state, by, said = "refused", refused.refused_by, refused.reason
    before = waiting.confirmed
    return Review(
        server=waiting.server,
        tool=waiting.tool,
        reason=waiting.reason,
        note=waiting.note,
        name=waiting.name,
        digest=None if definition is None else definition.digest,
        suggested=None if definition is None else definition.suggested,
        definition=None if definition is None else definition.plain,
        before=None if before is None else before.definition,
        before_effects=None if before is None else before.effects,
        state=state,
        by=by,
        said=said,
        effects=effects,
    )
