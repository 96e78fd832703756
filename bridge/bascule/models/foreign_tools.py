"""Tools of other frameworks as ours: described by JSON Schema, called by a coroutine.

The schema is the framework's and is tamed like any import's; the function is the operator's own, whom he
trusts, and what it returns is data like any tool's result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from pydantic import JsonValue

from bascule.tools import AnyTool, Effects, ToolContext
from bascule.tools.imported import Operation, choose_names, import_tool
from bascule.tools.mcp.arguments import read_members
from bascule.tools.options import DEFAULT_TIMEOUT_S


def import_foreign(
    name: str,
    description: str,
    schema: object,
    call: Callable[[Mapping[str, JsonValue]], Awaitable[object]],
    *,
    framework: str,
    effects: Effects = "once",
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> AnyTool:
    """Return a tool that scripts can call.

    Args:
        name: the framework's; made a Python name where it is none.
        schema: JSON Schema of an object.
        call: takes the arguments under the framework's names.
        framework: for messages.
        effects: frameworks do not declare them; ``once`` is what is safe.

    Raises:
        ToolDefinitionError: it cannot be offered.
    """
    members, defs, whole = read_members(schema)

    async def reach(arguments: dict[str, JsonValue], context: ToolContext) -> object:
        given = arguments.get(whole, {}) if whole is not None else arguments
        assert isinstance(given, dict)
        return await call(given)

    return import_tool(
        Operation(
            name=choose_names([name], namespace="")[name],
            description=description,
            members=members,
            defs=defs,
            returns=None,
            call=reach,
            location=framework,
            effects=effects,
            timeout_s=timeout_s,
        )
    )
