"""Rehearsal: what a script wants to do, found out before anything happens.

Reads that policy allows are made; every other call is noted and withheld. The script goes on as long as it
does not use what it did not get. What it wants beyond that point stays unknown, and the rehearsal says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from bascule.bridge.display import show, show_block, show_json
from bascule.bridge.ledger import CallRecord
from bascule.bridge.policy import Verdict
from bascule.bridge.result import Result, describe_error
from bascule.bridge.rules import Effect
from bascule.tools import AnyTool

NOTHING: Final = {"type": "null"}
"""Schema of results that are always None, and so need not be withheld."""

_ARGUMENT_CHARS: Final = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedEffect:
    """A call the script wants to make.

    Attributes:
        arguments: canonical JSON.
        verdict, rules: what policy says about it as things stood.
    """

    seq: int
    tool: str
    effects: str
    arguments: bytes
    line: int
    verdict: Effect
    rules: tuple[str, ...]


class WantedEffects:
    """Notes the calls of one rehearsal that are not made."""

    def __init__(self) -> None:
        self.found: list[WantedEffect] = []

    def withholds(self, tool: AnyTool, record: CallRecord, verdict: Verdict) -> bool:
        """Note a call, unless it is a read that policy allows."""
        if tool.effects == "read" and verdict.effect == "allow":
            return False
        self.found.append(
            WantedEffect(
                seq=record.call.seq,
                tool=tool.name,
                effects=tool.effects,
                arguments=record.arguments or b"{}",
                line=record.call.line,
                verdict=verdict.effect,
                rules=verdict.rules,
            )
        )
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What a rehearsal found.

    Attributes:
        effects: the calls the script wants to make, in issue order.
        complete: the script came to its end, so there are no more; else it used a result nobody knows yet, or
            ended otherwise, and may want more after that.
        result: of the run in which nothing happened.
    """

    effects: Sequence[WantedEffect]
    complete: bool
    result: Result

    def describe(self) -> str:
        """Return one card with every call in full, safe to show."""
        count = f"{len(self.effects)} call{'s' if len(self.effects) > 1 else ''} with effects"
        lines = [f"The script wants {count}; none was made.", ""]
        for effect in self.effects:
            arguments = show_json(effect.arguments, max_chars=_ARGUMENT_CHARS)
            lines.append(
                f"[{effect.seq}] line {effect.line}: {show(effect.tool)} ({effect.effects}) {arguments}"
            )
            lines.append(f"     {effect.verdict} ({show(', '.join(effect.rules))})")
        if not self.effects:
            lines = ["The script wants no call with effects."]
        if not self.complete:
            error = self.result.error
            if error is None or error.kind == "rehearsal_end":
                why = "it ended early" if error is None else show(error.message, max_chars=500)
                lines.append(f"There may be more: {why}")
            else:
                lines.append(f"The script did not come to its end ({self.result.status}):")
                lines += [show_block(describe_error(each)) for each in self.result.errors]
        return "\n".join(lines) + "\n"

    def to_json(self) -> bytes:
        """Return the documented JSON form (docs/cli.md), one line of UTF-8."""
        effects = [
            {
                "seq": each.seq,
                "tool": each.tool,
                "effects": each.effects,
                "arguments": msgspec.Raw(each.arguments),
                "line": each.line,
                "verdict": each.verdict,
                "rules": each.rules,
            }
            for each in self.effects
        ]
        result = msgspec.Raw(self.result.to_json())
        return msgspec.json.encode({"complete": self.complete, "wanted": effects, "result": result})
