"""Find and validate: from a name and loose arguments of a script to a tool and canonical arguments."""

from __future__ import annotations

import logging
from collections.abc import Set

from bascule.bridge.failure import CallFailed
from bascule.tools import AnyTool, Arguments, ArgumentsInvalid, Registry, ToolDefinitionError
from bascule.wire import Call, ToolFailure

_log = logging.getLogger("bascule.bridge")


def find_tool(registry: Registry, offered: Set[str], call: Call) -> AnyTool:
    """Return the tool of exactly this name.

    Args:
        offered: names of the tools this run may call; the others do not exist for it.

    Raises:
        CallFailed: ``unknown_tool``, with the nearest names.
    """
    tool = registry.get(call.tool)
    if tool is not None and call.tool in offered:
        return tool
    nearest = [name for name in registry.nearest(call.tool) if name in offered]
    suggestion = (
        f"did you mean {' or '.join(nearest)}?" if nearest else "call one of the tools you were given"
    )
    failure = ToolFailure(
        kind="unknown_tool",
        message=f"there is no tool named {call.tool[:100]!r}",
        suggestion=suggestion,
    )
    raise CallFailed(failure, "not_started")


def validate_arguments(tool: AnyTool, call: Call) -> Arguments:
    """Return what the tool will be called with, and its canonical bytes.

    Raises:
        CallFailed: ``invalid_arguments``, with every problem by argument path; ``failed`` when the tool's own
            types are unfit for arguments.
    """
    try:
        return tool.validate(call.args)
    except ArgumentsInvalid as error:
        failure = ToolFailure(kind="invalid_arguments", message=error.for_script())
        raise CallFailed(failure, "not_started") from error
    except ToolDefinitionError as error:
        _log.error("tool %s cannot be called: %s", tool.name, error)
        message = f"{tool.name} cannot be called with these arguments: a bug in the tool, not in the script"
        raise CallFailed(ToolFailure(kind="failed", message=message), "not_started") from error
