"""The token account of a conversation: the sum over its runs, and what was answered without a run.

Numbers only. Kept with the state of a conversation, so that it goes on when another process goes on with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bascule.models.exchange import FRAMING_TOKENS
from bascule.models.run_account import Definitions
from bascule.models.run_tokens import RunTokens
from bascule.models.token_figures import TokenFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAccount(TokenFigures):
    """Tokens of a conversation.

    Attributes:
        runs: how many runs are counted.
        written: all the model's calls as it wrote them, scripts among them.
    """

    runs: int
    written: int


class ConversationTokens(msgspec.Struct, kw_only=True):
    """What a conversation has used so far.

    Attributes:
        runs: of each run the newest account.
        answers, written, returned: of answers that no run gave (searches, the rest of outputs, refusals), and
            of answers that told of a run once more.
    """

    runs: dict[str, RunTokens] = msgspec.field(default_factory=dict[str, RunTokens])
    answers: int = 0
    written: int = 0
    returned: int = 0

    def note_run(self, run_id: str, tokens: RunTokens, *, again: bool) -> None:
        """Take note of what a run came to.

        Args:
            again: the model was told of this run before; both answers are counted.
        """
        before = self.runs.get(run_id)
        if before is not None and again:
            self.note_answer(written=0, returned=before.returned)
        self.runs[run_id] = tokens

    def note_answer(self, *, written: int, returned: int) -> None:
        """Take note of an answer that is not the account of a run."""
        self.answers += 1
        self.written += written
        self.returned += returned

    def total(self, definitions: Definitions) -> TokenAccount:
        """Return the account.

        Args:
            definitions: what the conversation's surface tells.
        """
        runs = self.runs.values()
        others = self.answers * (definitions.script + FRAMING_TOKENS) + self.written + self.returned
        return TokenAccount(
            runs=len(runs),
            definitions=definitions.script,
            written=self.written + sum(each.script for each in runs),
            returned=self.returned + sum(each.returned for each in runs),
            results=sum(each.results for each in runs),
            input=others + sum(each.input for each in runs),
            direct_definitions=definitions.direct,
            direct_calls=sum(each.direct_calls for each in runs),
            one_by_one=sum(each.one_by_one for each in runs),
            at_once=sum(each.at_once for each in runs),
        )
