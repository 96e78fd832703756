"""The tool surface as a toolset of pydantic-ai, and its function tools as ours.

A run that waits for people is an answer like any other: it names the run, and the model (or the application,
by `ToolSurface`) takes it up later. pydantic-ai's own deferred approvals are not used: whoever resumes an
agent could answer those, and that is not who our policy asks.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import JsonValue
from pydantic_core import SchemaValidator, core_schema

from bascule.models.definitions import SurfaceTool
from bascule.models.foreign_tools import import_foreign
from bascule.models.names import NameMap
from bascule.models.prompt import build_prompt
from bascule.models.surface import ToolSurface
from bascule.tools import AnyTool, Effects

try:
    from pydantic_ai import RunContext, Tool, ToolFailed
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "this toolset needs pydantic-ai: pip install pydantic-ai-slim", name=error.name
    ) from error

_ANY: Final = SchemaValidator(schema=core_schema.any_schema())


class SurfaceToolset(AbstractToolset[Any]):
    """Everything of a surface, for ``Agent(toolsets=[SurfaceToolset(surface)])``.

    Its instructions teach the dialect of scripts, so the agent needs none of its own for that.
    """

    def __init__(self, surface: ToolSurface, *, id: str = "bascule") -> None:
        self._surface = surface
        self._id = id
        self._names = NameMap(each.name for each in surface.tools)

    @property
    def id(self) -> str:
        """Names the toolset, for durable runs."""
        return self._id

    async def get_instructions(self, ctx: RunContext[Any]) -> str:
        """Return what a model must know to write scripts."""
        return build_prompt(self._surface).text

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the surface's functions under names that every API accepts."""
        return {self._names.to_wire(each.name): self._offer(each) for each in self._surface.tools}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        """Make one call.

        Raises:
            ToolFailed: it did not do what was asked; the model reads why and may go on.
            BasculeError: the host cannot run anything now.
        """
        result = await self._surface.call(self._names.from_wire(name), tool_args)
        if result.is_error:
            raise ToolFailed(result.text)
        return result.text

    def _offer(self, tool: SurfaceTool) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=self._names.to_wire(tool.name),
            description=tool.description,
            parameters_json_schema=tool.parameters,
        )
        # The surface validates: its messages teach, and nothing reaches a tool unvalidated.
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=3, args_validator=_ANY)


def import_pydantic_ai(tool: Tool[Any], *, effects: Effects = "once") -> AnyTool:
    """Return a function tool of pydantic-ai as ours.

    Raises:
        ValueError: it takes the agent's run context, which scripts have not.
        ToolDefinitionError: it cannot be offered.
    """
    schema = tool.function_schema
    if schema.takes_ctx:
        raise ValueError(f"{tool.name} takes a RunContext; wrap it in a function without one")

    async def call(arguments: Any) -> object:
        values: dict[str, JsonValue] = schema.validator.validate_python(dict(arguments))
        return await schema.call(values, _no_context())

    return import_foreign(
        tool.name,
        tool.description or "",
        schema.json_schema,
        call,
        framework="pydantic-ai",
        effects=effects,
    )


def _no_context() -> Any:
    """Stand in for the context that these functions do not take."""
    return None
