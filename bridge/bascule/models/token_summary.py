"""From many exchanges to few figures: totals, and how many times fewer tokens a script needs, with the tails.

A ratio is the input tokens of direct calls divided by those of the script: above 1 the script needs fewer,
below 1 it loses. Everything drawn anywhere is drawn from a `TokenSummary`, which is plain data.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from bascule.models.exchange import FRAMING_TOKENS, WAYS, Exchange, Way, cost_of

SUMMARY_VERSION: Final = 1

_CALL_STEPS: Final = (1, 2, 3, 4, 5, 6, 8, 10)
_SIZE_STEPS: Final = (0, 250, 1_000, 3_000, 10_000, 30_000)


class Spread(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ratios of some tasks: the worst, the tenth, the half and the ninetieth of a hundred, the best."""

    worst: float
    p10: float
    median: float
    p90: float
    best: float


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Some tasks.

    Attributes:
        label: what they have in common.
        one_by_one, parallel: ratios against each direct way.
        fresh: the ratio against both direct ways when every token is paid once: a perfect prompt cache.
        loses: share of the tasks in which the script needs more than perfectly parallel calls.
    """

    label: str
    tasks: int
    one_by_one: Spread
    parallel: Spread
    fresh: Spread
    loses: float


class Totals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All tasks of a set in one way, summed up."""

    input: int
    fresh: int
    output: int
    rounds: int


class TokenSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One origin of exchanges; ``exact`` when everything was counted by a tokenizer."""

    name: str
    tasks: int
    calls: int
    result_tokens: int
    returned_tokens: int
    largest_result_bytes: int
    exact: bool
    totals: dict[Way, Totals]
    whole: Row
    by_calls: tuple[Row, ...]
    by_size: tuple[Row, ...]


class TokenSummary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `bascule bench tokens` tells."""

    version: int = SUMMARY_VERSION
    framing_tokens: int = FRAMING_TOKENS
    sets: tuple[TokenSet, ...]


def summarise(exchanges: Iterable[Exchange]) -> TokenSummary:
    """Return the figures of exchanges, by origin. Those without any call say nothing and are left out."""
    by_origin: defaultdict[str, list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        if exchange.calls:
            by_origin[exchange.origin].append(exchange)
    return TokenSummary(sets=tuple(_summarise_set(name, some) for name, some in sorted(by_origin.items())))


def ratio(exchange: Exchange, way: Way) -> float:
    """Return how many times the script's input tokens a direct way needs."""
    return cost_of(exchange, way).input / max(1, cost_of(exchange, "script").input)


def _fresh_ratio(exchange: Exchange) -> float:
    return cost_of(exchange, "one_by_one").fresh / max(1, cost_of(exchange, "script").fresh)


def _summarise_set(name: str, some: Sequence[Exchange]) -> TokenSet:
    return TokenSet(
        name=name,
        tasks=len(some),
        calls=sum(len(each.calls) for each in some),
        result_tokens=sum(each.result_tokens for each in some),
        returned_tokens=sum(each.returned for each in some),
        largest_result_bytes=max(call.result_bytes for each in some for call in each.calls),
        exact=all(each.exact for each in some),
        totals={way: _total(some, way) for way in WAYS},
        whole=_row("all", some),
        by_calls=_rows(some, _CALL_STEPS, lambda each: len(each.calls), "call"),
        by_size=_rows(some, _SIZE_STEPS, lambda each: each.result_tokens, "token"),
    )


def _total(some: Sequence[Exchange], way: Way) -> Totals:
    costs = [cost_of(each, way) for each in some]
    return Totals(
        input=sum(cost.input for cost in costs),
        fresh=sum(cost.fresh for cost in costs),
        output=sum(cost.output for cost in costs),
        rounds=sum(cost.rounds for cost in costs),
    )


def _rows(
    some: Sequence[Exchange], steps: Sequence[int], measure: Callable[[Exchange], int], unit: str
) -> tuple[Row, ...]:
    rows: list[Row] = []
    for low, above in zip(steps, [*steps[1:], None], strict=True):
        among = [each for each in some if low <= measure(each) and (above is None or measure(each) < above)]
        if among:
            rows.append(_row(_label(low, above, unit), among))
    return tuple(rows)


def _label(low: int, above: int | None, unit: str) -> str:
    if above is None:
        return f"{low:,} and more {unit}s"
    if unit == "token":
        return f"below {above:,} tokens" if low == 0 else f"{low:,} to {above:,} tokens"
    if above == low + 1:
        return f"{low} {unit}" + "s" * (low > 1)
    return f"{low} to {above - 1} {unit}s"


def _row(label: str, some: Sequence[Exchange]) -> Row:
    parallel = [ratio(each, "parallel") for each in some]
    return Row(
        label=label,
        tasks=len(some),
        one_by_one=_spread([ratio(each, "one_by_one") for each in some]),
        parallel=_spread(parallel),
        fresh=_spread([_fresh_ratio(each) for each in some]),
        loses=round(sum(each < 1 for each in parallel) / len(some), 3),
    )


def _spread(values: Iterable[float]) -> Spread:
    """Return the spread of some ratios, by nearest rank, to two decimals."""
    ordered = sorted(values)

    def rank(share: float) -> float:
        return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 2)

    return Spread(worst=rank(0), p10=rank(0.1), median=rank(0.5), p90=rank(0.9), best=rank(1))
