"""Where a conversation stands, as JSON: it can be stored, and gone on with in another process.

Trusts whoever keeps it: a state says which run's result answers which call. It holds the conversation, so
keep it as you keep that.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from bascule.models.conversation_tokens import ConversationTokens
from bascule.models.errors import StateInvalid
from bascule.models.turn import ModelCall, TokenUsage

STATE_VERSION: Final = 1

AgentStatus = Literal[
    "done",
    "suspended",
    "refused",
    "length",
    "context_full",
    "rounds",
    "budget",
    "repeating",
    "malformed",
    "empty",
]
"""``done``: the model has answered. ``suspended``: a run waits for people; resume. ``refused``: model or
filter declined. ``length``, ``context_full``: output or context ended before the answer did. ``rounds``,
``budget``: ours did. ``repeating``: the same call over and over. ``malformed``, ``empty``: turns nobody can
use, more than once."""


class PendingCall(msgspec.Struct, kw_only=True):
    """One call of the last turn.

    Attributes:
        run_id: the run that waits; its result is the answer.
        text: the answer; None while there is none.
        value: the whole result as JSON, where the caller is a program that reads it.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    problem: str = ""
    caller: dict[str, Any] | None = None
    run_id: str | None = None
    text: str | None = None
    is_error: bool = False
    value: str | None = None

    @classmethod
    def of(cls, call: ModelCall) -> PendingCall:
        """Return a call that has no answer yet."""
        return cls(
            id=call.id,
            name=call.name,
            arguments=call.arguments,
            problem=call.problem,
            caller=call.caller,
        )

    def as_call(self) -> ModelCall:
        """Return the call as the adapter read it."""
        return ModelCall(
            id=self.id,
            name=self.name,
            arguments=self.arguments,
            problem=self.problem,
            caller=self.caller,
        )


class Repetition(msgspec.Struct):
    """How often one call has given one result."""

    count: int
    result: str


class AgentState(msgspec.Struct, kw_only=True):
    """Where a conversation stands.

    Attributes:
        api: whose messages these are.
        messages: the history in the API's own form. While calls are `pending` their turn is its last item.
        carry: what the API wants back.
        labels: what the runs so far have read, for policy.
        usage, rounds, runs: so far; ``usage`` as the model's server counted it.
        tokens: what the runs and answers so far came to, by our count.
        misses: turns in a row that were of no use.
        refused_repeats: calls that were not made again because they had given the same several times.
    """

    api: str
    version: int = STATE_VERSION
    messages: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    carry: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    labels: list[str] = msgspec.field(default_factory=list[str])
    pending: list[PendingCall] = msgspec.field(default_factory=list[PendingCall])
    repetitions: dict[str, Repetition] = msgspec.field(default_factory=dict[str, Repetition])
    usage: TokenUsage = msgspec.field(default_factory=TokenUsage)
    tokens: ConversationTokens = msgspec.field(default_factory=ConversationTokens)
    rounds: int = 0
    runs: list[str] = msgspec.field(default_factory=list[str])
    misses: int = 0
    refused_repeats: int = 0

    def to_json(self) -> bytes:
        """Return the state as JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes | str) -> AgentState:
        """Return a state from its JSON.

        Raises:
            StateInvalid: it is none, or one of another version.
        """
        try:
            state = msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise StateInvalid(f"this is no state of an agent: {error}") from error
        if state.version != STATE_VERSION:
            raise StateInvalid(f"the state has version {state.version}, this program knows {STATE_VERSION}")
        return state
