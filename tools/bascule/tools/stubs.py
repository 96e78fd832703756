"""Tools as compact Python stubs: what a model reads in a prompt to know what it may call.

The text is deterministic and valid Python whatever the descriptions hold: they may come from elsewhere, so
line ends, control and bidirectional characters become spaces, and quotes cannot end the docstring.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from bascule.tools.docstrings import read_returns
from bascule.tools.safe_text import clean_line, docstring_block, docstring_line, shorten
from bascule.tools.schema import JsonSchema
from bascule.tools.shapes import Shapes, describe
from bascule.tools.tool import AnyTool
from bascule.tools.type_text import ALIASES, literal_text

Level = Literal["full", "signatures", "names"]
"""full: with whole descriptions and those of parameters. signatures: one line each. names: names only."""

_INDENT = "    "
_MAX_NAMES_CHARS = 80
_SHAPELESS = re.compile(r"(?: -> (?:Any|list|(?:list\[)*dict\]*)(?: \| None)?)?")

_Tree = dict[str, "_Tree | list[str]"]


def render_stubs(tools: Iterable[AnyTool], *, level: Level = "signatures") -> str:
    """Return the stubs of tools, in their order, ending with a line feed; empty without tools.

    Tools with a namespace are functions of a class of that name. The objects they take and give come first,
    each once, as classes. Tools that may change something say so in a comment (``# effect: once``).
    """
    if level == "names":
        lines = [f"{each.name}  # {shorten(clean_line(each.summary), _MAX_NAMES_CHARS)}" for each in tools]
        lines = [line.rstrip(" #") for line in lines]
        return "".join(f"{line}\n" for line in lines)
    shapes = Shapes()
    tree: _Tree = {}
    for each in tools:
        *namespaces, name = each.name.split(".")
        branch = tree
        for namespace in namespaces:
            inner = branch.setdefault(namespace, {})
            assert isinstance(inner, dict)  # a registry refuses a tool that is also a namespace
            branch = inner
        branch[name] = _render_tool(each, name, level, shapes)
    aliases = [f"{name} = {text}" for name, text in ALIASES.items() if name in shapes.aliases]
    blocks = ["\n".join(aliases), *shapes.classes(), "\n".join(_render_tree(tree, ""))]
    text = "\n\n".join(block for block in blocks if block)
    return f"{text}\n" if text else ""


def _render_tree(tree: _Tree, indent: str) -> list[str]:
    lines: list[str] = []
    for name, member in tree.items():
        if isinstance(member, dict):
            lines.append(f"{indent}class {name}:")
            lines += _render_tree(member, indent + _INDENT)
        else:
            lines += [f"{indent}{line}" if line else "" for line in member]
    return lines


def _render_tool(tool: AnyTool, name: str, level: Level, shapes: Shapes) -> list[str]:
    defs: JsonSchema = tool.parameters.get("$defs", {})
    arguments = [
        _render_parameter(parameter, schema, defs, shapes)
        for parameter, schema in tool.parameters["properties"].items()
    ]
    returned = ""
    if tool.returns is not None:
        returns = shapes.type_of(tool.returns, defs=tool.returns.get("$defs", {}), hint=f"{name}_result")
        returned = f" -> {returns}"
    head = f"def {name}({', '.join(arguments)}){returned}:"
    effect = "" if tool.effects == "read" else f"  # effect: {tool.effects}"
    text = _full_text(tool) if level == "full" else _short_text(tool, returned)
    if level == "full" and "\n" in text:
        return [f"{head}{effect}", *f"{_INDENT}{docstring_block(text, indent=_INDENT)}".split("\n")]
    return [f"{head} {docstring_line(text) if text else '...'}{effect}"]


def _render_parameter(name: str, schema: JsonSchema, defs: JsonSchema, shapes: Shapes) -> str:
    text = f"{name}: {shapes.type_of(schema, defs=defs, hint=name)}"
    return f"{text} = {literal_text(schema['default'])}" if "default" in schema else text


def _short_text(tool: AnyTool, returned: str) -> str:
    """Return the summary, and what the docstring says of a result whose type says nothing."""
    told = read_returns(tool.description) if _SHAPELESS.fullmatch(returned) else ""
    return f"{tool.summary} Returns: {told}" if told else tool.summary


def _full_text(tool: AnyTool) -> str:
    """Return the description and what is known of parameters beyond it."""
    told = clean_line(tool.description) if len(tool.description) < 300 else " ".join(tool.description.split())
    lines = [
        f"{_INDENT}{name}: {text}"
        for name, schema in tool.parameters["properties"].items()
        if (text := describe(schema)) and text not in told
    ]
    return "\n".join([tool.description, "", "Parameters:", *lines]).strip() if lines else tool.description
