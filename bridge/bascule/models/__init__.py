"""Models: the tools they are offered, the APIs they speak, and the loop between both.

Trusts the operator's executor and SDK clients, never what a model or its server sends. SDKs are extras
(``bascule[openai]``, ``[anthropic]``, ``[google]``); names are imported when they are first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bascule.models.agent import Agent
    from bascule.models.agent_state import AgentState
    from bascule.models.anthropic import AnthropicMessages
    from bascule.models.conversation import AgentResult, Conversation
    from bascule.models.conversation_tokens import TokenAccount
    from bascule.models.definitions import Caller, SurfaceTool
    from bascule.models.errors import ModelError, SdkMissing, StateInvalid
    from bascule.models.events import AgentEvent
    from bascule.models.gemini import Gemini
    from bascule.models.openai_chat import OpenAIChat
    from bascule.models.openai_responses import OpenAIResponses
    from bascule.models.prompt import Prompt, build_prompt
    from bascule.models.rendering import SurfaceResult
    from bascule.models.spending import Budget, Price
    from bascule.models.surface import ToolSurface
    from bascule.models.turn import ModelClient, TokenUsage

__all__ = [
    "Agent",
    "AgentEvent",
    "AgentResult",
    "AgentState",
    "AnthropicMessages",
    "Budget",
    "Caller",
    "Conversation",
    "Gemini",
    "ModelClient",
    "ModelError",
    "OpenAIChat",
    "OpenAIResponses",
    "Price",
    "Prompt",
    "SdkMissing",
    "StateInvalid",
    "SurfaceResult",
    "SurfaceTool",
    "TokenAccount",
    "TokenUsage",
    "ToolSurface",
    "build_prompt",
]

_HOMES = {
    "Agent": "bascule.models.agent",
    "AgentEvent": "bascule.models.events",
    "AgentResult": "bascule.models.conversation",
    "AgentState": "bascule.models.agent_state",
    "AnthropicMessages": "bascule.models.anthropic",
    "Budget": "bascule.models.spending",
    "Caller": "bascule.models.definitions",
    "Conversation": "bascule.models.conversation",
    "Gemini": "bascule.models.gemini",
    "ModelClient": "bascule.models.turn",
    "ModelError": "bascule.models.errors",
    "OpenAIChat": "bascule.models.openai_chat",
    "OpenAIResponses": "bascule.models.openai_responses",
    "Price": "bascule.models.spending",
    "Prompt": "bascule.models.prompt",
    "SdkMissing": "bascule.models.errors",
    "StateInvalid": "bascule.models.errors",
    "SurfaceResult": "bascule.models.rendering",
    "SurfaceTool": "bascule.models.definitions",
    "TokenAccount": "bascule.models.conversation_tokens",
    "TokenUsage": "bascule.models.turn",
    "ToolSurface": "bascule.models.surface",
    "build_prompt": "bascule.models.prompt",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
