"""What a model is offered: the surface's own tools, and the operator's tools as functions to call directly.

Pure data. Names here are ours (tools keep their dots); each adapter maps them to what its API accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from bascule.bridge.result import JsonValue
from bascule.tools import AnyTool, Registry

Caller = Literal["direct", "script", "both"]
"""Who may call a tool: the model itself, its scripts, or both."""

JsonObject = dict[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceTool:
    """One function as a model sees it.

    Attributes:
        name: what `ToolSurface.call` takes.
        description: for the model.
        parameters: JSON Schema of an object, ``additionalProperties`` false.
        tool: the operator's tool that a call of it starts; None for the surface's own.
        returns: JSON Schema of what that tool gives, when it is declared.
    """

    name: str
    description: str
    parameters: JsonObject
    tool: str | None = None
    returns: JsonObject | None = None


def _object(required: Iterable[str], **properties: JsonValue) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


MAX_SEARCH_RESULTS: Final = 20
SEARCH_RESULTS: Final = 8
MAX_READ: Final = 16_000
READ: Final = 4_000

_RUN: Final[JsonObject] = {"type": "string", "description": "the id that a run's answer names"}

RUN_SCRIPT: Final = SurfaceTool(
    name="run_script",
    description=(
        "Run a Python script that calls tools. Only what it prints and its last value come back."
        " For several calls, loops, filters and sums."
    ),
    parameters=_object(["code"], code={"type": "string", "description": "the whole script"}),
)
SEARCH_TOOLS: Final = SurfaceTool(
    name="search_tools",
    description="Find tools by what they do; returns names, signatures and summaries.",
    parameters=_object(
        ["query"],
        query={"type": "string", "description": "a few words"},
        limit={"type": "integer", "minimum": 1, "maximum": MAX_SEARCH_RESULTS, "default": SEARCH_RESULTS},
    ),
)
DESCRIBE_TOOL: Final = SurfaceTool(
    name="describe_tool",
    description="Return the whole description of one tool: parameters, types, result.",
    parameters=_object(["name"], name={"type": "string", "description": "the tool's full name"}),
)
READ_OUTPUT: Final = SurfaceTool(
    name="read_output",
    description="Read what was cut, counted in items, members or characters.",
    parameters=_object(
        ["handle"],
        handle={"type": "string"},
        path={"type": "string", "description": "like value.rows[3] or output"},
        offset={"type": "integer", "minimum": 0, "default": 0},
        limit={"type": "integer", "minimum": 1, "maximum": MAX_READ, "default": READ},
    ),
)
GET_RUN: Final = SurfaceTool(
    name="get_run",
    description="Tell how a run stands: finished with its result, running, or waiting for people.",
    parameters=_object(["run_id"], run_id=_RUN),
)
RESUME_RUN: Final = SurfaceTool(
    name="resume_run",
    description="Go on with a run that waited, once it was decided, and return its result.",
    parameters=_object(["run_id"], run_id=_RUN),
)

OWN_TOOLS: Final = (RUN_SCRIPT, SEARCH_TOOLS, DESCRIBE_TOOL, READ_OUTPUT, GET_RUN, RESUME_RUN)


def direct_tools(registry: Registry, callers: Mapping[str, Caller]) -> tuple[SurfaceTool, ...]:
    """Return the operator's tools that a model may call itself, as functions.

    A tool that is called like one of the surface's own is offered as ``tool.NAME``.
    """
    taken = {own.name for own in OWN_TOOLS}
    found: list[SurfaceTool] = []
    for each in registry:
        if callers.get(each.name, "both") == "script":
            continue
        name = each.name
        while name in taken or (name != each.name and name in registry):
            name = f"tool.{name}"
        found.append(
            SurfaceTool(
                name=name,
                description=_describe(each),
                parameters=each.parameters,
                tool=each.name,
                returns=each.returns,
            )
        )
    return tuple(found)


def _describe(tool: AnyTool) -> str:
    effect = "" if tool.effects == "read" else "\n(It changes something; a person may be asked first.)"
    return f"{tool.description or tool.name}{effect}"
