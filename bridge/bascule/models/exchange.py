"""One task as tokens, and what it costs a model in three ways: a call a round, parallel calls, one script.

The formulas are those of docs/models/token-account.md. Numbers only: nothing here reads a text, and nothing
here is trusted with more than to be right.

A model reads its whole context again in every round. So with B tokens before the first round (definitions,
the question), calls of a tokens and results of r tokens, and F tokens of framing for each call and result:

    n + 1 rounds of one call each read   (n + 1) B + sum over i of (n + 1 - i) (a_i + r_i + F)
    rounds of all calls possible read    (m + 1) B + sum over i of (m + 1 - round_i) (a_i + r_i + F)
    one script, s tokens, v come back    2 B' + s + v + F

The last round, in which the model answers in words, is in all of them; the answer itself in none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

FRAMING_TOKENS: Final = 8
"""Tokens around one call and its result: roles, names, the call's id. Providers do not say how many; counted
the same for direct calls and for scripts."""

Way = Literal["one_by_one", "parallel", "script"]
WAYS: Final[tuple[Way, ...]] = ("one_by_one", "parallel", "script")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTokens:
    """One call.

    Attributes:
        arguments: tokens of the call as a model writes it, its name and arguments as JSON.
        result: tokens of its whole result, which direct calls put into the context.
        result_bytes: size of the result.
        round: the first round, from 1, in which a model that plans perfectly could make it.
    """

    arguments: int
    result: int
    result_bytes: int
    round: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One task: what was asked, offered, called, written and given back.

    Attributes:
        id: names the task or run.
        origin: where it comes from: a benchmark, ``run``, ``transcript``.
        question: tokens of what was asked, system prompt aside.
        direct_definitions: tokens of the tools as a model is given them for direct calls (JSON Schemas).
        script_definitions: tokens of the same for scripts: prompt with stubs, and the surface's own tools.
        calls: in the order in which they were made.
        script: tokens of the call of ``run_script``, the script as JSON text.
        returned: tokens of what came back to the model.
        exact: whether all of it was counted, not estimated.
    """

    id: str
    origin: str
    question: int
    direct_definitions: int
    script_definitions: int
    calls: tuple[CallTokens, ...]
    script: int
    returned: int
    exact: bool = True

    @property
    def result_tokens(self) -> int:
        """Tokens of all results."""
        return sum(call.result for call in self.calls)

    @property
    def kept_out(self) -> int:
        """Tokens of results that never entered the context; negative when the script printed more."""
        return self.result_tokens - self.returned


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one way costs.

    Attributes:
        input: tokens read in all rounds together.
        fresh: those of them that no earlier round had read: what a perfect prompt cache leaves.
        output: tokens the model writes to make the calls.
        rounds: how often the model is asked, its closing words included.
    """

    input: int
    fresh: int
    output: int
    rounds: int


def cost_of(exchange: Exchange, way: Way) -> Cost:
    """Return what an exchange costs in one of the three ways."""
    if way == "script":
        return _script(exchange)
    rounds = range(1, len(exchange.calls) + 1) if way == "one_by_one" else _rounds(exchange)
    return _direct(exchange, tuple(rounds))


def _rounds(exchange: Exchange) -> tuple[int, ...]:
    """Return each call's round with the empty ones left out."""
    place = {number: index for index, number in enumerate(sorted({call.round for call in exchange.calls}), 1)}
    return tuple(place[call.round] for call in exchange.calls)


def _direct(exchange: Exchange, rounds: tuple[int, ...]) -> Cost:
    base = exchange.direct_definitions + exchange.question
    last = max(rounds, default=0) + 1
    added = [call.arguments + call.result + FRAMING_TOKENS for call in exchange.calls]
    return Cost(
        input=last * base + sum((last - made) * size for made, size in zip(rounds, added, strict=True)),
        fresh=base + sum(added),
        output=sum(call.arguments for call in exchange.calls),
        rounds=last,
    )


def _script(exchange: Exchange) -> Cost:
    base = exchange.script_definitions + exchange.question
    added = exchange.script + exchange.returned + FRAMING_TOKENS
    return Cost(input=2 * base + added, fresh=base + added, output=exchange.script, rounds=2)
