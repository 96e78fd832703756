"""What a conversation may use up, and what it has: rounds, tokens, money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from bascule.models.definitions import SurfaceTool
from bascule.models.turn import Message, TokenUsage, Turn
from bascule.tools.stubs import bound_tokens

MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model costs, in any currency, for a million tokens each; ``cached`` None is as ``input``."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: TokenUsage) -> float:
        """Return what tokens cost."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input - usage.cached
        return (fresh * self.input + usage.cached * cached + usage.output * self.output) / MILLION


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of one conversation. A turn that passes one is the last; its calls are not made.

    Attributes:
        max_rounds: turns of the model.
        max_tokens: input and output of all turns together.
        max_cost: in the currency of ``price``; needs one.

    Raises:
        ValueError: a limit is not above 0, or a cost is limited without a price.
    """

    max_rounds: int = 40
    max_tokens: int = 1_000_000
    max_cost: float | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.max_rounds <= 0 or self.max_tokens <= 0 or (self.max_cost is not None and self.max_cost <= 0):
            raise ValueError("limits of a budget must be above 0")
        if self.max_cost is not None and self.price is None:
            raise ValueError("max_cost needs a price")

    def is_spent(self, usage: TokenUsage) -> bool:
        """Tell whether tokens or money are used up."""
        if usage.total >= self.max_tokens:
            return True
        cost = self.cost(usage)
        return self.max_cost is not None and cost is not None and cost >= self.max_cost

    def cost(self, usage: TokenUsage) -> float | None:
        """Return what tokens cost; None without a price."""
        return None if self.price is None else self.price.of(usage)


def usage_of(
    turn: Turn, *, system: str, tools: Sequence[SurfaceTool], messages: Sequence[Message]
) -> TokenUsage:
    """Return what a turn used: as the server said, else an estimate, so that no budget can be kept silent."""
    if turn.usage is not None:
        return turn.usage
    asked = [[each.name, each.description, each.parameters] for each in tools]
    return TokenUsage(
        input=bound_tokens(system) + _estimate(asked) + _estimate(list(messages)),
        output=_estimate(list(turn.messages)),
        estimated=True,
    )


def _estimate(value: object) -> int:
    return bound_tokens(msgspec.json.encode(value).decode())
