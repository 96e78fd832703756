"""The system prompt: the dialect, what comes back, and the stubs at the level that fits the budget.

Names and descriptions of tools may come from elsewhere: they stand in the stubs, which are valid Python
whatever they hold. Everything the text promises is proven by tests/unit/models/test_prompt.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bascule.tools.stubs import fit_stubs

if TYPE_CHECKING:
    from bascule.models.surface import ToolSurface

_SCRIPTS: Final = """\
# Tools

run_script(code) runs a Python script that calls the tools below. Use it when a task takes several calls, a
loop, or only a part of what tools return: results stay in the script's variables, and only what it prints
and its last value come back to you.

- Ordinary Python 3: functions, classes, comprehensions, try/except. Top-level `return` and `await` work.
- Call a tool as a function, by keyword: `{example}`. It returns plain data (dict, list, str, number, bool,
  None); do not parse it as JSON.
- Without any `await` in the script, calls simply return. With one, write `await` before every call;
  `asyncio.gather` makes calls in parallel.
- Imports: asyncio, json, re, math, datetime, time, random, collections, itertools, functools, statistics,
  decimal, csv, textwrap, dataclasses, typing and the like. No files, no network, no other packages.
- The result is what `return` gives, or the last expression, or the last assignment. Print or return the few
  lines you need, not whole results.
- A failing call raises ToolError (.message, .suggestion, .retryable); wrong arguments ToolArgumentError; a
  refused call ToolDenied: do not repeat it and do not try another way.
- Variables do not stay from one script to the next."""

_DIRECT: Final = """\
A tool that is also a function of its own: call it directly if one call and its whole result is all you
need."""

_RETURNS: Final = """\
What comes back: printed text, then the value as JSON. An error names the line and what to write instead, and
lists the calls that were made; do not repeat those. A long answer is cut and names a handle for read_output.
A call that changes something may wait for a person: the answer then names a run; get_run and resume_run take
it up."""

_HIDDEN: Final = "Further tools are not shown: search_tools finds them, describe_tool explains one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A system prompt.

    Attributes:
        text: all of it.
        tokens: of the text, by the surface's count.
        detail: how much the stubs show: ``full``, ``signatures`` or ``names``.
        hidden: tools that only a search finds.
    """

    text: str
    tokens: int
    detail: str
    hidden: int


def build_prompt(surface: ToolSurface, *, instructions: str = "") -> Prompt:
    """Return what a model must know of a surface.

    Args:
        instructions: the operator's own, put first.
    """
    parts = [instructions.strip()] if instructions.strip() else []
    detail, hidden = "names", 0
    if surface.scriptable:
        example = surface.scriptable[0]
        parameters = list(example.parameters["properties"])[:1]
        shown = f"{example.name}({''.join(f'{name}=...' for name in parameters)})"
        parts.append(_SCRIPTS.format(example=shown))
    if surface.direct and surface.scriptable:
        parts.append(_DIRECT)
    parts.append(_RETURNS)
    if surface.scriptable:
        fitted = fit_stubs(
            surface.scriptable,
            budget_tokens=surface.budget_tokens,
            count_tokens=surface.count_tokens,
            pinned=surface.pinned,
        )
        detail, hidden = fitted.detail, len(fitted.hidden)
        if hidden:
            parts.append(_HIDDEN)
        if fitted.text:
            parts.append(f"```python\n{fitted.text}```")
    text = "\n\n".join(parts)
    return Prompt(text=text, tokens=surface.count_tokens(text), detail=detail, hidden=hidden)
