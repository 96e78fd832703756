"""The loop between a model and its tools.

    agent = Agent(OpenAIChat("gpt-5"), executor)
    result = await agent.run("Which of Ann's orders are open?")

A conversation always stands where it can be sent on: every call the model made has its answer, in order,
invalid ones too, also after a cancellation and after a failure of the host. Only while a run waits for people
does a turn stay unanswered, and then the state says so and `resume` answers it, in any process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bascule.bridge import Executor
from bascule.models.agent_state import AgentState
from bascule.models.conversation import AgentResult, Conversation
from bascule.models.errors import StateInvalid
from bascule.models.events import AgentEvent
from bascule.models.spending import Budget
from bascule.models.surface import ToolSurface
from bascule.models.transcript import Transcript
from bascule.models.turn import Message, ModelClient

_DEFAULT_BUDGET: Final = Budget()


class Agent:
    """A model with the tools of an executor.

    Args:
        client: the adapter of an API, for example `OpenAIChat`.
        instructions: the operator's part of the system prompt.
        budget: limits of each conversation.
        surface: makes the tool surface of a conversation; `functools.partial` gives it options.
        on_event: called with what happens, in the loop's own thread; be quick.
        transcript: a file that gets one line for everything that is said and done.
    """

    def __init__(
        self,
        client: ModelClient,
        executor: Executor,
        *,
        instructions: str = "",
        budget: Budget = _DEFAULT_BUDGET,
        surface: Callable[[Executor], ToolSurface] = ToolSurface,
        on_event: Callable[[AgentEvent], object] | None = None,
        transcript: Path | str | None = None,
    ) -> None:
        self._client = client
        self._executor = executor
        self._instructions = instructions
        self._budget = budget
        self._surface = surface
        self._on_event = on_event
        self._transcript = None if transcript is None else Transcript(transcript, redact=executor.redact)

    def start(self, messages: str | Sequence[Message] = ()) -> Conversation:
        """Begin a conversation.

        Args:
            messages: what the user says, or a history in the API's own form, without a system message.
        """
        conversation = self._open(AgentState(api=self._client.api))
        if isinstance(messages, str):
            conversation.say(messages)
        else:
            conversation.state.messages.extend(messages)
        return conversation

    async def run(self, messages: str | Sequence[Message]) -> AgentResult:
        """Begin a conversation and go on with it until the model is done; see `Conversation.run`."""
        return await self.start(messages).run()

    async def resume(self, state: AgentState | bytes | str, *, say: str | None = None) -> AgentResult:
        """Go on with a conversation: one that was suspended, that broke off, or that was done.

        Args:
            state: of its result, or of that the JSON. Whoever gives it is trusted with the conversation.
            say: what the user says next; not while a run waits for people.

        Raises:
            StateInvalid: it is no state, or one of another API; or ``say`` while calls are pending.
        """
        found = state if isinstance(state, AgentState) else AgentState.from_json(state)
        if found.api != self._client.api:
            raise StateInvalid(f"the state is one of {found.api}, this agent speaks {self._client.api}")
        conversation = self._open(found)
        if say is not None:
            if found.pending:
                raise StateInvalid("a run still waits; resume without saying anything first")
            conversation.say(say)
        return await conversation.run()

    def run_sync(self, messages: str | Sequence[Message]) -> AgentResult:
        """See `run`; for callers without an event loop, with an executor used as ``with``."""
        return self._executor.wait_for(self.run(messages))

    def resume_sync(self, state: AgentState | bytes | str, *, say: str | None = None) -> AgentResult:
        """See `resume` and `run_sync`."""
        return self._executor.wait_for(self.resume(state, say=say))

    def _open(self, state: AgentState) -> Conversation:
        return Conversation(
            client=self._client,
            surface=self._surface(self._executor),
            state=state,
            budget=self._budget,
            instructions=self._instructions,
            on_event=self._on_event,
            transcript=self._transcript,
        )
