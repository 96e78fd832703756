"""One turn of a model in our words, whatever API it came over, and what an adapter must be able to do.

The history itself stays in the API's own form (`Message`), because every API has items that only it
understands and wants back unchanged: reasoning, signatures, fingerprints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from bascule.bridge.result import JsonValue
from bascule.models.definitions import JsonObject, SurfaceTool

Message = JsonObject
"""One item of a history, as the API's own JSON."""

Stop = Literal["end", "calls", "length", "refusal", "pause", "context_full", "malformed"]
"""``end``: the model is done. ``calls``: it waits for answers. ``length``: cut off at the output limit.
``refusal``: it, or a filter, declined. ``pause``: it goes on when asked again. ``context_full``: nothing more
fits. ``malformed``: the server itself could not read what its model wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call a model asks for. Untrusted.

    Attributes:
        id: pairs it with its answer; ours where the server's was missing, odd or taken.
        name: a tool of the surface, or whatever the model wrote.
        arguments: decoded; None when they are no JSON object.
        problem: why it must not be executed, for the model; empty when it can be.
        caller: what the API wants echoed with the answer.
    """

    id: str
    name: str
    arguments: JsonObject | None
    problem: str = ""
    caller: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Tokens of one turn or of many.

    Attributes:
        input, output: all of them, those read from a cache and those of reasoning included.
        cached: of the input, read from a cache.
        estimated: at least one server did not say; then a third of the bytes stands in.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            estimated=self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a model sent.

    Attributes:
        text: for the user.
        calls: in the order of the turn.
        messages: the turn as it goes into the history; empty when there is nothing of it to keep.
        usage: None when the server did not say.
        carry: what the API wants back with every further request; empty keeps what the last turn said.
        dropped_calls: calls beyond `reading.MAX_CALLS`, which are not in the history.
    """

    text: str
    calls: tuple[ModelCall, ...]
    stop: Stop
    messages: tuple[Message, ...]
    usage: TokenUsage | None = None
    carry: JsonObject = field(default_factory=dict[str, JsonValue])
    dropped_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent back for one call.

    Attributes:
        value: the whole result as JSON, for a program that made the call; None when it failed.
    """

    call: ModelCall
    text: str
    is_error: bool = False
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a turn is asked with.

    Attributes:
        messages: the history, never changed by an adapter.
        on_text: called with pieces of text as they arrive, when the adapter streams.
    """

    system: str
    tools: Sequence[SurfaceTool]
    messages: Sequence[Message]
    carry: JsonObject
    on_text: Callable[[str], None]


class ModelClient(Protocol):
    """An adapter of one API. It holds no state of a conversation."""

    @property
    def api(self) -> str:
        """Names the form of the messages, for saved states."""
        ...

    async def complete(self, request: Request) -> Turn:
        """Return the model's next turn, complete.

        Raises:
            ModelError: the server gave none.
        """
        ...

    def user_message(self, text: str) -> Message:
        """Return what a user says as a message."""
        ...

    def answer_messages(self, answers: Sequence[Answer]) -> list[Message]:
        """Return the answers to all calls of the last turn, in the order of its calls."""
        ...
