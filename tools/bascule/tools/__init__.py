"""What a script may call: functions with types, made tools that the bridge can validate and describe.

Knows nothing of scripts, sandboxes or policy. Trusts the authors of tools, never the arguments of calls.
"""

from bascule.tools.arguments import Arguments
from bascule.tools.canonical import canonical_json
from bascule.tools.context import DidNotHappen, Happened, OutcomeUnknown, Pending, ToolContext
from bascule.tools.errors import ArgumentsInvalid, Problem, ResultInvalid, ToolDefinitionError, ToolLoadError
from bascule.tools.loading import load_sources, load_tools
from bascule.tools.options import Effects
from bascule.tools.registry import Registry
from bascule.tools.source import ToolSource
from bascule.tools.stubs import FittedStubs, fit_stubs, render_stubs
from bascule.tools.tool import AnyTool, Tool, tool

__all__ = [
    "AnyTool",
    "Arguments",
    "ArgumentsInvalid",
    "DidNotHappen",
    "Effects",
    "FittedStubs",
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
    "ToolSource",
    "canonical_json",
    "fit_stubs",
    "load_sources",
    "load_tools",
    "render_stubs",
    "tool",
]
