"""Tools as compact Python stubs: what a model reads in a prompt to know what it may call.

The text is deterministic and valid Python whatever the descriptions hold: they may come from elsewhere, so
line ends, control and bidirectional characters become spaces, and quotes cannot end the docstring.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import JsonValue

from bascule.tools.docstrings import read_returns
from bascule.tools.safe_text import clean_line, docstring_block, docstring_line, shorten
from bascule.tools.schema import JsonSchema
from bascule.tools.shapes import Shapes, describe
from bascule.tools.tool import AnyTool
from bascule.tools.type_text import ALIASES, literal_text

Detail = Literal["names", "signatures", "full"]
"""full: with whole descriptions and those of parameters. signatures: one line each. names: names only."""

_INDENT = "    "
_MAX_NAMES_CHARS = 80
_SHAPELESS = re.compile(r"\)(?: -> (?:Any|list|(?:list\[)*dict\]*)(?: \| None)?)?:$")

_MAX_NAMESPACES: Final = 40

_Tree = dict[str, "_Tree | list[str]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedStubs:
    """The stubs of many tools within a budget.

    Attributes:
        text: for the prompt; ends with a line feed unless it is empty.
        detail: the level that fits for all tools that are shown; pinned ones have signatures at least.
        tokens: of the text, as counted by the function given.
        shown, hidden: names of tools in the text, and of those there was no room for.
    """

    text: str
    detail: Detail
    tokens: int
    shown: tuple[str, ...]
    hidden: tuple[str, ...]


def render_stubs(tools: Iterable[AnyTool], *, detail: Detail = "signatures") -> str:
    """Return the stubs of tools, in their order, ending with a line feed; empty without tools.

    Tools with a namespace are functions of a class of that name. The objects they take and give come first,
    each once, as classes. Tools that may change something say so in a comment (``# effect: once``), and so do
    results whose shape is only known from earlier calls (``# result as observed``).
    """
    if detail == "names":
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
        branch[name] = _render_tool(each, name, detail, shapes)
    aliases = [f"{name} = {text}" for name, text in ALIASES.items() if name in shapes.aliases]
    blocks = ["\n".join(aliases), *shapes.classes(), "\n".join(_render_tree(tree, ""))]
    text = "\n\n".join(block for block in blocks if block)
    return f"{text}\n" if text else ""


def render_signature(tool: AnyTool) -> str:
    """Return how a tool is called, on one line: full name, parameters, result, effect."""
    head, remarks = _render_head(tool, tool.name, Shapes())
    return f"{head.removeprefix('def ').removesuffix(':')}{remarks}"


def _render_tree(tree: _Tree, indent: str) -> list[str]:
    lines: list[str] = []
    for name, member in tree.items():
        if isinstance(member, dict):
            lines.append(f"{indent}class {name}:")
            lines += _render_tree(member, indent + _INDENT)
        else:
            lines += [f"{indent}{line}" if line else "" for line in member]
    return lines


def _render_tool(tool: AnyTool, name: str, detail: Detail, shapes: Shapes) -> list[str]:
    head, remarks = _render_head(tool, name, shapes)
    text = _full_text(tool) if detail == "full" else _short_text(tool, head)
    if detail == "full" and "\n" in text:
        return [f"{head}{remarks}", *f"{_INDENT}{docstring_block(text, indent=_INDENT)}".split("\n")]
    return [f"{head} {docstring_line(text) if text else '...'}{remarks}"]


def _render_head(tool: AnyTool, name: str, shapes: Shapes) -> tuple[str, str]:
    """Return the ``def`` line and the comment that belongs behind it."""
    defs: JsonSchema = tool.parameters.get("$defs", {})
    arguments = [
        _render_parameter(parameter, schema, defs, shapes)
        for parameter, schema in tool.parameters["properties"].items()
    ]
    returned = ""
    result = tool.returns if tool.returns is not None else tool.observed
    if result is not None:
        hint = f"{name.rsplit('.', 1)[-1]}_result"
        returned = f" -> {shapes.type_of(result, defs=result.get('$defs', {}), hint=hint)}"
    remarks = [] if tool.effects == "read" else [f"effect: {tool.effects}"]
    if result is not tool.returns:
        remarks.append("result as observed")
    return (
        f"def {name}({', '.join(arguments)}){returned}:",
        f"  # {'; '.join(remarks)}" if remarks else "",
    )


def _render_parameter(name: str, schema: JsonSchema, defs: JsonSchema, shapes: Shapes) -> str:
    text = f"{name}: {shapes.type_of(schema, defs=defs, hint=name)}"
    return f"{text} = {literal_text(schema['default'])}" if "default" in schema else text


def _short_text(tool: AnyTool, head: str) -> str:
    """Return the summary, and what the docstring says of a result whose type says nothing."""
    told = read_returns(tool.description) if _SHAPELESS.search(head) else ""
    return f"{tool.summary} Returns: {told}" if told else tool.summary


def _full_text(tool: AnyTool) -> str:
    """Return the description, what is known of parameters beyond it, and the examples."""
    told = clean_line(tool.description) if len(tool.description) < 300 else " ".join(tool.description.split())
    lines = [
        f"{_INDENT}{name}: {text}"
        for name, schema in tool.parameters["properties"].items()
        if (text := describe(schema)) and text not in told
    ]
    blocks = [tool.description]
    if lines:
        blocks.append("\n".join(["Parameters:", *lines]))
    if tool.examples:
        calls = (render_call(tool.name, example) for example in tool.examples)
        blocks.append("\n".join(["Examples:", *(f"{_INDENT}{call}" for call in calls)]))
    return "\n\n".join(block for block in blocks if block)


def render_call(name: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return a call as a script would write it."""
    return f"{name}({', '.join(f'{key}={literal_text(value)}' for key, value in arguments.items())})"


def bound_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text: one for every three bytes of UTF-8.

    Tokenizers of current models need fewer for English, code and JSON, and about as many for Chinese.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


def fit_stubs(
    tools: Iterable[AnyTool],
    *,
    budget_tokens: int,
    count_tokens: Callable[[str], int] | None = None,
    pinned: Collection[str] = (),
) -> FittedStubs:
    """Return the stubs of tools at the richest level of detail that fits a budget; the text never exceeds it.

    Full documentation of all, else signatures of all, else names of all with signatures of the pinned ones.
    Where not even these fit, the pinned ones stay longest, then tools in their order, and a last line says
    how many are missing in which namespace.

    Args:
        budget_tokens: what the text may cost; at 0 nothing is shown.
        count_tokens: the tokenizer of the model; `bound_tokens` when None.
        pinned: names of tools that must be shown first; unknown ones do not matter.
    """
    listed = list(tools)
    count = count_tokens or bound_tokens
    names = tuple(each.name for each in listed)
    for detail in ("full", "signatures"):
        text = render_stubs(listed, detail=detail)
        if (tokens := count(text)) <= budget_tokens:
            return FittedStubs(text=text, detail=detail, tokens=tokens, shown=names, hidden=())
    first = [each for each in listed if each.name in pinned]
    rest = [each for each in listed if each.name not in pinned]
    for pinned_detail in ("signatures", "names"):
        fitted = _fit_names(first, rest, pinned_detail, budget_tokens, count)
        if fitted is not None:
            return fitted
    fitted = _fit_names([], [*first, *rest], "names", budget_tokens, count)
    return fitted or FittedStubs(text="", detail="names", tokens=count(""), shown=(), hidden=names)


def _fit_names(
    first: Sequence[AnyTool],
    rest: Sequence[AnyTool],
    detail: Detail,
    budget_tokens: int,
    count: Callable[[str], int],
) -> FittedStubs | None:
    """Return all of ``first`` and the names of as many others as fit, or None when ``first`` does not."""
    head = render_stubs(first, detail=detail)

    def attempt(shown: int) -> tuple[str, int]:
        tail = render_stubs(rest[:shown], detail="names") + _describe_hidden(rest[shown:])
        text = "\n".join(part for part in (head, tail) if part) if detail != "names" else head + tail
        return text, count(text)

    low, high = 0, len(rest)
    text, tokens = attempt(high)
    if tokens > budget_tokens:
        text, tokens = attempt(0)
        if tokens > budget_tokens:
            return None
        high -= 1
        while low < high:  # the text grows with every name, but for what the last line saves
            middle = (low + high + 1) // 2
            if attempt(middle)[1] <= budget_tokens:
                low = middle
            else:
                high = middle - 1
        text, tokens = attempt(low)
    else:
        low = high
    shown = [*first, *rest[:low]]
    return FittedStubs(
        text=text,
        detail="names",
        tokens=tokens,
        shown=tuple(each.name for each in shown),
        hidden=tuple(each.name for each in rest[low:]),
    )


def _describe_hidden(hidden: Sequence[AnyTool]) -> str:
    if not hidden:
        return ""
    counts = Counter(each.name.rpartition(".")[0] or "without namespace" for each in hidden).most_common()
    parts = [f"{namespace} {number}" for namespace, number in counts[:_MAX_NAMESPACES]]
    if len(counts) > _MAX_NAMESPACES:
        parts.append(f"and {len(counts) - _MAX_NAMESPACES} more namespaces")
    return f"# {len(hidden)} more tools are not shown: {', '.join(parts)}\n"
