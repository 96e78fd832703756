"""Live events of a conversation, for people who watch it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AgentEventName = Literal[
    "turn.started", "text", "turn.completed", "call.started", "call.completed", "suspended", "finished"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One event. Texts come from a model or a tool: make them safe before you show them in a terminal.

    Attributes:
        text: a piece of the model's text, an answer, or the status a conversation ended with.
        call_id, tool, run_id, is_error: of the call.
        round: the model's turn, from 1; 0 where it is not about one.
    """

    name: AgentEventName
    text: str = ""
    call_id: str = ""
    tool: str = ""
    run_id: str | None = None
    is_error: bool = False
    round: int = 0
