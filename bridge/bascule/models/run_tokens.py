"""What every answer of a surface tells its host of tokens: the account of one run, as a few numbers.

Estimated, so that it costs next to nothing: results from their sizes in the receipts, texts by the surface's
own count when it was given one. `bascule bench tokens` counts the same from the journal. Numbers only, and
never for the model, which would pay for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from bascule.bridge.result import Result
from bascule.models.counting import ByteEstimate, TokenCounter
from bascule.models.exchange import cost_of
from bascule.models.prompt import build_prompt
from bascule.models.run_account import Definitions, account_result, count_call
from bascule.models.token_figures import TokenFigures
from bascule.models.tokens import CountTokens
from bascule.tools.stubs import bound_tokens

if TYPE_CHECKING:
    from bascule.models.surface import ToolSurface

ESTIMATE: Final = ByteEstimate()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTokens(TokenFigures):
    """Tokens of one run.

    Attributes:
        script: the call as the model wrote it.
    """

    script: int


def measure_definitions(surface: ToolSurface, counter: TokenCounter) -> Definitions:
    """Return the tokens of what a surface tells a model, and of its tools as functions of their own."""
    offered = [[each.name, each.description, each.parameters] for each in surface.tools]
    direct = [[each.name, each.description, each.parameters] for each in surface.executor.registry]
    return Definitions(
        direct=counter.count(msgspec.json.encode(direct).decode()),
        script=counter.count(build_prompt(surface).text)
        + counter.count(msgspec.json.encode(offered).decode()),
    )


def measure_run(
    result: Result,
    script: str,
    *,
    text: str,
    direct: bool,
    definitions: Definitions,
    counter: TokenCounter = ESTIMATE,
) -> RunTokens:
    """Return the account of a run as far as it got.

    Args:
        script: what was run.
        text: what the model was told of it.
        direct: the script is ours, for one call that the model wrote as a function call.
    """
    counted = account_result(result, script, counter, definitions=definitions)
    calls = sum(call.arguments for call in counted.calls)
    counted = replace(counted, returned=counter.count(text), script=calls if direct else counted.script)
    return RunTokens(
        definitions=definitions.script,
        script=counted.script,
        returned=counted.returned,
        results=counted.result_tokens,
        input=cost_of(counted, "script").input,
        direct_definitions=definitions.direct,
        direct_calls=calls,
        one_by_one=cost_of(counted, "one_by_one").input,
        at_once=cost_of(counted, "parallel").input,
    )


class Meter:
    """Counts for one surface.

    Args:
        count_tokens: the surface's; its default is an upper bound, for budgets, where an account wants the
            likely figure.
    """

    def __init__(self, surface: ToolSurface, count_tokens: CountTokens) -> None:
        self._surface = surface
        self._counter = ESTIMATE if count_tokens is bound_tokens else SurfaceCount(count_tokens)
        self._definitions: Definitions | None = None

    @property
    def definitions(self) -> Definitions:
        """What the surface tells a model, counted once."""
        if self._definitions is None:
            self._definitions = measure_definitions(self._surface, self._counter)
        return self._definitions

    def measure(self, result: Result, script: str, *, text: str, direct: bool) -> RunTokens:
        """Return the account of a run; see `measure_run`."""
        return measure_run(
            result,
            script,
            text=text,
            direct=direct,
            definitions=self.definitions,
            counter=self._counter,
        )

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        return self._counter.count(text)

    def count_call(self, name: str, arguments: object) -> int:
        """Return the tokens of a call as a model wrote it."""
        return count_call(name, msgspec.json.encode(arguments), self._counter)


@dataclass(frozen=True, slots=True)
class SurfaceCount:
    """Counts with the function that a surface was given for its model."""

    count_tokens: CountTokens
    name: str = "the surface's count_tokens"
    exact: bool = False

    def count(self, text: str) -> int:
        return self.count_tokens(text)
