"""What a script may call: functions with types, made tools that the bridge can validate and describe.

Knows nothing of scripts, sandboxes or policy. Trusts the authors of tools, never the arguments of calls.
"""

from bascule.tools.arguments import Arguments
from bascule.tools.canonical import canonical_json
from bascule.tools.context import DidNotHappen, Happened, OutcomeUnknown, Pending, ToolContext
from bascule.tools.errors import ArgumentsInvalid, Problem, ResultInvalid, ToolDefinitionError, ToolLoadError
from bascule.tools.loading import load_tools
from bascule.tools.registry import Registry
from bascule.tools.stubs import render_stubs
from bascule.tools.tool import AnyTool, Effects, Tool, tool

__all__ = [
    "AnyTool",
    "Arguments",
    "ArgumentsInvalid",
    "DidNotHappen",
    "Effects",
    "Happened",
    "OutcomeUnknown",
    "Pending",
    "Problem",
    "Registry",
    "ResultInvalid",
    "Tool",
    "ToolContext",
    "ToolDefinitionError",
    "ToolLoadError",
    "canonical_json",
    "load_tools",
    "render_stubs",
    "tool",
]
