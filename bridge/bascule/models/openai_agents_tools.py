"""The tool surface as function tools of the OpenAI Agents SDK, and its function tools as ours.

A run that waits for people is an answer that names it. The SDK's own ``needs_approval`` is not used: whoever
holds the interrupted run could answer that, and that is not who our policy asks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic import JsonValue

from bascule.models.definitions import SurfaceTool
from bascule.models.foreign_tools import import_foreign
from bascule.models.names import NameMap
from bascule.models.surface import ToolSurface
from bascule.tools import AnyTool, Effects

try:
    from agents import FunctionTool
    from agents import Tool as AgentTool
    from agents.tool_context import ToolContext as AgentToolContext
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "these tools need the OpenAI Agents SDK: pip install openai-agents", name=error.name
    ) from error


def make_agents_tools(surface: ToolSurface) -> list[AgentTool]:
    """Return everything of a surface as tools; the agent's instructions should be `build_prompt`'s text."""
    names = NameMap(each.name for each in surface.tools)
    return [_make(surface, each, names.to_wire(each.name)) for each in surface.tools]


def import_agents_tool(tool: FunctionTool, *, effects: Effects = "once") -> AnyTool:
    """Return a function tool of the SDK as ours. It is called without an agent's context of its own.

    Raises:
        ToolDefinitionError: it cannot be offered.
    """

    async def call(arguments: Mapping[str, JsonValue]) -> object:
        written = json.dumps(dict(arguments))
        context: AgentToolContext[Any] = AgentToolContext(
            context=None, tool_name=tool.name, tool_call_id="script", tool_arguments=written
        )
        return await tool.on_invoke_tool(context, written)

    return import_foreign(
        tool.name,
        tool.description,
        tool.params_json_schema,
        call,
        framework="OpenAI Agents SDK",
        effects=effects,
    )


def _make(surface: ToolSurface, tool: SurfaceTool, wire: str) -> FunctionTool:
    async def invoke(context: AgentToolContext[Any], arguments: str) -> str:
        try:
            given: object = msgspec.json.decode(arguments or "{}")
        except msgspec.DecodeError as error:
            return f"the arguments are no JSON: {error}"
        return (await surface.call(tool.name, given)).text

    return FunctionTool(
        name=wire,
        description=tool.description,
        params_json_schema=tool.parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )
