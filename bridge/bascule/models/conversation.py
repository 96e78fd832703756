"""One conversation while it goes on: asks for turns, has their calls answered, and knows when to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from bascule.models.agent_state import AgentState, AgentStatus, PendingCall
from bascule.models.answering import Answering
from bascule.models.conversation_tokens import TokenAccount
from bascule.models.events import AgentEvent
from bascule.models.prompt import build_prompt
from bascule.models.repetition import ENDED_AT
from bascule.models.spending import Budget, usage_of
from bascule.models.surface import ToolSurface
from bascule.models.transcript import Transcript
from bascule.models.turn import Answer, Message, ModelClient, Request, Stop, TokenUsage, Turn

MAX_MISSES: Final = 3
"""Turns in a row that were cut off, empty or unreadable before it ends."""

_log = logging.getLogger("bascule.bridge")

_NOT_MADE: Final[dict[Stop, str]] = {
    "length": "Your turn was cut off at the output limit, so nothing was called. Write less in one turn.",
    "refusal": "Nothing was called: the turn was refused.",
    "context_full": "Nothing was called: the context is full.",
    "pause": "Nothing was called: the turn was paused before it was complete. Call again.",
    "malformed": "Nothing was called: the turn could not be read.",
}
_OUT_OF_BUDGET: Final = "Nothing was called: the budget of this conversation is used up."
_EMPTY: Final = "Your last turn was empty. Go on, or say what you found."
_UNREADABLE: Final = "Your last function call could not be read. Write it again, exactly as declared."


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """What a conversation came to.

    Attributes:
        status: see `AgentStatus`.
        text: what the model said last.
        state: with which it can be gone on, also when it is done.
        waiting: runs that wait for people, when it is suspended.
        tokens: what its scripts cost and kept out of the context, and what direct calls would have cost.
        cost: in the currency of the budget's price; None without one.
    """

    status: AgentStatus
    text: str
    state: AgentState
    tokens: TokenAccount
    waiting: tuple[str, ...] = ()
    cost: float | None = None

    @property
    def messages(self) -> list[Message]:
        """The history in the API's own form."""
        return self.state.messages

    @property
    def usage(self) -> TokenUsage:
        """What all turns used, as the model's server counted it."""
        return self.state.usage

    @property
    def rounds(self) -> int:
        return self.state.rounds


@dataclass(slots=True, kw_only=True)
class Conversation:
    """One conversation. `run` it; whatever happens, `state` can be gone on with.

    Attributes:
        state: where it stands; also after an exception or a cancellation.
    """

    client: ModelClient
    surface: ToolSurface
    state: AgentState
    budget: Budget
    instructions: str = ""
    on_event: Callable[[AgentEvent], object] | None = None
    transcript: Transcript | None = None
    _system: str = field(init=False)
    _answering: Answering = field(init=False)

    def __post_init__(self) -> None:
        self._system = build_prompt(self.surface, instructions=self.instructions).text
        self.surface.add_labels(self.state.labels)
        self._answering = Answering(self.state, self.surface, emit=self._emit, transcript=self.transcript)

    def say(self, text: str) -> None:
        """Add what the user says."""
        self.state.messages.append(self.client.user_message(text))

    async def run(self) -> AgentResult:
        """Go on until the model is done, a run waits for people, or a limit is reached.

        Raises:
            ModelError: the model's server gave no turn; run again to ask once more.
            BasculeError: the host cannot run anything; see `ToolSurface.call`.
        """
        self._note("started", api=self.client.api, tools=[each.name for each in self.surface.tools],
                   system=self._system, messages=self.state.messages)  # fmt: skip
        try:
            status, text = await self._go_on()
        except BaseException:
            self._answering.interrupt()
            self._send_answers()
            raise
        finally:
            self.state.labels = sorted(self.surface.labels)
        return self._finish(status, text)

    async def _go_on(self) -> tuple[AgentStatus, str]:
        text = ""
        if self.state.pending and not await self._answer():
            return "suspended", text
        while True:
            if self.state.rounds >= self.budget.max_rounds:
                return "rounds", text
            if self.budget.is_spent(self.state.usage):
                return "budget", text
            turn = await self._ask()
            text = turn.text or text
            status = await self._take(turn)
            if status is not None:
                return status, turn.text if status in ("done", "refused") else text

    async def _ask(self) -> Turn:
        state = self.state
        self._emit(AgentEvent(name="turn.started", round=state.rounds + 1))
        request = Request(
            system=self._system,
            tools=self.surface.tools,
            messages=state.messages,
            carry=state.carry,
            on_text=lambda text: self._emit(AgentEvent(name="text", text=text, round=state.rounds + 1)),
        )
        turn = await self.client.complete(request)
        used = usage_of(turn, system=self._system, tools=self.surface.tools, messages=state.messages)
        state.usage += used
        state.rounds += 1
        state.carry = turn.carry or state.carry
        state.messages.extend(turn.messages)
        state.pending = [PendingCall.of(call) for call in turn.calls]
        self._emit(AgentEvent(name="turn.completed", text=turn.text, round=state.rounds))
        calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in turn.calls]
        self._note("turn", text=turn.text, calls=calls, stop=turn.stop, dropped_calls=turn.dropped_calls,
                   input_tokens=used.input, output_tokens=used.output, cached_tokens=used.cached,
                   estimated=used.estimated)  # fmt: skip
        return turn

    async def _take(self, turn: Turn) -> AgentStatus | None:
        """Do what a turn asks for; return how the conversation ends with it, if it does."""
        if turn.stop == "calls":
            self.state.misses = 0
            return await self._take_calls(turn)
        if turn.calls:
            self._refuse(_NOT_MADE.get(turn.stop, _NOT_MADE["malformed"]))
        if turn.stop == "refusal":
            return "refused"
        if turn.stop == "context_full":
            return "context_full"
        if turn.stop == "pause":
            return None
        if turn.stop == "end" and turn.text.strip():
            self.state.misses = 0
            return "done"
        if turn.stop == "length" and not turn.calls:
            return "length"
        return self._miss(turn)

    async def _take_calls(self, turn: Turn) -> AgentStatus | None:
        if self.budget.is_spent(self.state.usage):
            self._refuse(_OUT_OF_BUDGET)
            return "budget"
        if self.state.rounds >= self.budget.max_rounds:
            self._refuse(_OUT_OF_BUDGET)
            return "rounds"
        if not await self._answer():
            return "suspended"
        if turn.dropped_calls:
            self.say(f"{turn.dropped_calls} further calls of your turn were dropped; make fewer at once.")
        return "repeating" if self.state.refused_repeats >= ENDED_AT else None

    def _miss(self, turn: Turn) -> AgentStatus | None:
        """Count a turn that is of no use and say so; return how it ends when there are too many."""
        self.state.misses += 1
        if self.state.misses >= MAX_MISSES:
            return "length" if turn.stop == "length" else "malformed" if turn.stop == "malformed" else "empty"
        if not turn.calls:
            self.say(_UNREADABLE if turn.stop == "malformed" else _EMPTY)
        return None

    async def _answer(self) -> bool:
        answered = await self._answering.answer_all()
        if answered:
            self._send_answers()
        return answered

    def _refuse(self, text: str) -> None:
        self._answering.refuse_all(text)
        self._send_answers()

    def _send_answers(self) -> None:
        """Put the answers into the history, once all calls have theirs."""
        pending = self.state.pending
        if not pending or any(call.text is None for call in pending):
            return
        answers = [
            Answer(call=call.as_call(), text=call.text or "", is_error=call.is_error, value=call.value)
            for call in pending
        ]
        self.state.messages.extend(self.client.answer_messages(answers))
        self.state.pending = []

    def _finish(self, status: AgentStatus, text: str) -> AgentResult:
        state = self.state
        open_calls = [call for call in state.pending if call.text is None]
        waiting = tuple(call.run_id for call in open_calls if call.run_id is not None)
        cost = self.budget.cost(state.usage)
        self._emit(AgentEvent(name="finished", text=status))
        usage = state.usage
        tokens = state.tokens.total(self.surface.meter.definitions)
        self._note("finished", status=status, text=text, rounds=state.rounds, runs=state.runs,
                   waiting=waiting, input_tokens=usage.input, output_tokens=usage.output,
                   cached_tokens=usage.cached, estimated=usage.estimated, cost=cost,
                   tokens=tokens.to_data())  # fmt: skip
        return AgentResult(status=status, text=text, state=state, tokens=tokens, waiting=waiting, cost=cost)

    def _emit(self, event: AgentEvent) -> None:
        if self.on_event is None:
            return
        try:
            self.on_event(event)
        except Exception:  # a watcher's bug must not end what it watches
            _log.exception("a watcher of a conversation raised")

    def _note(self, kind: str, **fields: object) -> None:
        if self.transcript is not None:
            self.transcript.add(kind, **fields)
