"""What is kept of one approval, and its states: the body of a record in the approvals table.

The card is written by the run that asks and by `decide`, nobody else. Everything in it that stems from the
script (arguments, line of source) is untrusted: show it through `bascule.bridge.display` only.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal

import msgspec

from bascule.bridge.approvals_table import ApprovalMove, ApprovalRecord
from bascule.bridge.requirement import Requirement
from bascule.bridge.rules import Move, Rung

Grade = Literal["once", "args_in_run", "tool_in_run", "script"]
"""How far an approval reaches within its run: this call, the same again, this tool, the listed tools."""

MAX_GRANTED_CALLS: Final = 1000
DEFAULT_GRANTED_CALLS: Final = 25

DROPPED: Final = '{"dropped":"by retention"}'
"""What stands for arguments and answers that retention dropped."""


class ApprovalState(StrEnum):
    """Where an approval stands. Only ``pending`` and ``approved`` are ever left."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    RESPONDED = "responded"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    INVALIDATED = "invalidated"
    CONSUMED = "consumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """One person's decision: who, through which channel, what, why, when (seconds since the epoch)."""

    by: str
    groups: tuple[str, ...]
    channel: str
    verdict: Move
    reason: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRule:
    """What a grant lets through without asking again; ends with the run, never beats deny.

    Attributes:
        tools: the tools it is for.
        tool_digest: definition of the tool it was given for (``args_in_run``, ``tool_in_run``).
        tool_digests: definitions of ``tools`` as they were then (``script``).
        arguments: canonical arguments (``args_in_run`` only).
        count: further calls it is good for.
    """

    rung: Rung
    tools: tuple[str, ...]
    tool_digest: str
    arguments: str | None
    count: int
    tool_digests: tuple[str, ...] = ()

    def is_for(self, name: str, digest: str) -> bool:
        """Tell whether a tool of this name and definition is one of those it was given for."""
        if self.rung == "script":
            return (name, digest) in zip(self.tools, self.tool_digests, strict=False)
        return name in self.tools and digest == self.tool_digest

    def describe(self, count: str = "") -> str:
        """Return the rule in words, unescaped.

        Args:
            count: words for how many further calls, while that is not chosen.
        """
        what = f"the same call of {self.tools[0]} with exactly these arguments"
        if self.rung == "tool_in_run":
            what = f"any call of {self.tools[0]} with any arguments"
        elif self.rung == "script":
            what = f"any call of {', '.join(self.tools)} by this script with any arguments"
        return f"{what}, at most {count or f'{self.count} more'} in this run; rules that deny still hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One approval.

    Attributes:
        arguments: canonical JSON of what will run; an edit replaces it, ``original`` then has what was asked.
        requester: for whom the run is made.
        tools, tool_digests: tools the run has asked about so far, and digests of their definitions; what a
            ``script`` grant is for.
        evidence: which argument values were seen in which earlier result, in words.
        preview: what the tool itself says the call would do; untrusted, for people only.
        note: why the same call is asked about again.
        voices: decisions so far; those on other arguments are dropped by an edit.
        response: JSON that a person answered in the tool's place.
        floats: where whole numbers stand that the tool receives as floats; see `bascule.bridge.spelling`.
    """

    tool: str
    description: str
    effects: str
    tool_digest: str
    arguments: str
    script_sha256: str
    line: int
    source: str
    requirement: Requirement
    requester: str | None = None
    duplicate: bool = False
    tools: tuple[str, ...] = ()
    tool_digests: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    preview: str = ""
    note: str = ""
    original: str | None = None
    voices: tuple[Voice, ...] = ()
    response: str | None = None
    grant: GrantRule | None = None
    floats: tuple[tuple[str | int, ...], ...] = ()

    @property
    def last(self) -> Voice | None:
        """The decision that came last."""
        return self.voices[-1] if self.voices else None

    @property
    def approved_by(self) -> str:
        """Names of those who approved or edited."""
        return ", ".join(voice.by for voice in self.voices if voice.verdict in ("approve", "edit"))

    def make_grant(self, rung: Rung, count: int) -> GrantRule:
        """Return the rule of a grant on this card, made from what is kept, not from what a client says."""
        return GrantRule(
            rung=rung,
            tools=self.tools if rung == "script" else (self.tool,),
            tool_digest=self.tool_digest,
            arguments=self.arguments if rung == "args_in_run" else None,
            count=count,
            tool_digests=self.tool_digests if rung == "script" else (),
        )

    def without_values(self) -> Card:
        """Return what retention keeps: what was asked of whom, and who said what, without any values."""
        grant = self.grant
        if grant is not None and grant.arguments is not None:
            grant = replace(grant, arguments=DROPPED)
        return replace(
            self, arguments=DROPPED, source="", evidence=(), preview="", floats=(), grant=grant,
            original=None if self.original is None else DROPPED,
            response=None if self.response is None else DROPPED,
        )  # fmt: skip

    def encode(self) -> bytes:
        """Return the body of the record."""
        return _encode(self)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Card).decode


def read_card(record: ApprovalRecord) -> Card:
    """Return the card of a record of this store."""
    return _decode(record.body)


def new_id() -> str:
    """Return a random id of an approval."""
    return f"apr-{secrets.token_hex(10)}"


def moved(record: ApprovalRecord, state: ApprovalState, card: Card | None = None) -> ApprovalMove:
    """Return the compare-and-set from a record as it was read to a state."""
    return ApprovalMove(
        id=record.id, version=record.version, state=state, body=None if card is None else card.encode()
    )
