"""The tool surface as tools of LangChain and LangGraph, and their tools as ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from bascule.models.definitions import SurfaceTool
from bascule.models.foreign_tools import import_foreign
from bascule.models.names import NameMap
from bascule.models.surface import ToolSurface
from bascule.tools import AnyTool, Effects
from bascule.tools.schema import is_object

try:
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "these tools need LangChain: pip install langchain-core", name=error.name
    ) from error


def make_langchain_tools(surface: ToolSurface) -> list[BaseTool]:
    """Return everything of a surface as tools, for ``ToolNode``, ``bind_tools`` and agents.

    They are asynchronous (``ainvoke``), as the executor is. A call that did not do what was asked gives a
    message with ``status="error"``; the artifact of every answer is the `SurfaceResult`. Give the model
    `build_prompt(surface).text` as its system message.
    """
    names = NameMap(each.name for each in surface.tools)
    return [_make(surface, each, names.to_wire(each.name)) for each in surface.tools]


def import_langchain(tool: BaseTool, *, effects: Effects = "once") -> AnyTool:
    """Return a tool of LangChain as ours; injected arguments are not among its parameters.

    Raises:
        ToolDefinitionError: it cannot be offered.
    """
    described: Any = tool.tool_call_schema
    schema: object = described if is_object(described) else described.model_json_schema()

    async def call(arguments: Mapping[str, JsonValue]) -> object:
        return await tool.ainvoke(dict(arguments))

    return import_foreign(tool.name, tool.description, schema, call, framework="LangChain", effects=effects)


def _make(surface: ToolSurface, tool: SurfaceTool, wire: str) -> BaseTool:
    async def call(**arguments: Any) -> tuple[str, object]:
        result = await surface.call(tool.name, arguments)
        if result.is_error:
            raise ToolException(result.text)
        return result.text, result

    def refuse(**arguments: Any) -> tuple[str, object]:
        raise NotImplementedError(f"{wire} is asynchronous: use ainvoke")

    made = StructuredTool(
        name=wire,
        description=tool.description,
        args_schema=tool.parameters,
        func=refuse,
        coroutine=call,
        response_format="content_and_artifact",
    )
    made.handle_tool_error = True
    return made
