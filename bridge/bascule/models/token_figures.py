"""Figures that the accounts of one run and of a whole conversation have in common."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bascule.models.definitions import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFigures:
    """Tokens, all estimated; the formulas are those of docs/models/token-account.md.

    Attributes:
        definitions: what the model is told before anything is asked: the prompt and all functions.
        returned: what it was answered.
        results: all results of tools.
        input: what it reads for these calls, the question aside; each run is taken alone.
        direct_definitions: the tools as functions of their own.
        direct_calls: the calls of the scripts as the model would have written them one by one.
        one_by_one, at_once: what it would have read for these with one call a round, and with all calls of
            a run in one round.
    """

    definitions: int
    returned: int
    results: int
    input: int
    direct_definitions: int
    direct_calls: int
    one_by_one: int
    at_once: int

    @property
    def kept_out(self) -> int:
        """Tokens of results that never entered the context; negative when more came back than went in."""
        return self.results - self.returned

    def to_data(self) -> JsonObject:
        """Return the numbers as plain data."""
        return {**asdict(self), "kept_out": self.kept_out, "estimated": True}
