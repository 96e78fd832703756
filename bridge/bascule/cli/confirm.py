"""``bascule tools pending`` and ``confirm``: people look at what MCP servers say of their tools, and decide.

What is confirmed is what was shown: both come from one and the same list of the server.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import sys
from typing import TYPE_CHECKING, Annotated, Final, Literal, Optional

import typer

from bascule.cli.exits import Exit
from bascule.cli.streams import tools_on_stderr
from bascule.cli.waiting import name_waiting

if TYPE_CHECKING:
    from bascule.tools.mcp import McpSource, Waiting

MAX_SHOWN_LINES: Final = 400

_Specs = Annotated[
    list[str], typer.Option("--tools", metavar="FILE", help="File that names MCP servers. Repeatable.")
]
_Effects = Literal["read", "idempotent", "once", "suggested"]


def list_pending(
    tools: _Specs,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List tools that wait to be confirmed, with what their servers say of them."""
    with tools_on_stderr():
        waiting = asyncio.run(_list(tools))
    for each in waiting:
        if json_:
            definition = each.definition
            row = {
                "server": each.server,
                "tool": each.tool,
                "reason": each.reason,
                "note": each.note,
                "digest": None if definition is None else definition.digest,
                "suggested_effects": None if definition is None else definition.suggested,
                "definition": None if definition is None else definition.plain,
            }
            print(json.dumps(row))
        else:
            print(describe_waiting(each))


def confirm_tools(
    tools: _Specs,
    names: Annotated[
        Optional[list[str]],  # noqa: UP045  # read by typer at run time
        typer.Argument(
            metavar="SERVER:TOOL...", help="What to confirm, as `bascule tools pending` lists it."
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything that waits.")] = False,
    effects: Annotated[
        Optional[_Effects],  # noqa: UP045  # as above
        typer.Option(
            "--effects",
            help="Effects of all that is confirmed; suggested: what each server says. "
            "Default: as confirmed before, once for new ones.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask after showing.")] = False,
) -> None:
    """Confirm the definitions of tools, after showing them; from then on they can be called."""
    if bool(names) == all_:
        print("bascule: name what to confirm, or write --all", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    asyncio.run(_confirm(tools, names or [], effects, yes=yes))


async def _list(specs: list[str]) -> list[Waiting]:
    found: list[Waiting] = []
    for source in _sources(specs):
        try:
            await source.open()
            found += source.waiting
        finally:
            await source.close()
    return found


def _sources(specs: list[str]) -> list[McpSource]:
    from bascule.tools.loading import load_sources
    from bascule.tools.mcp import McpSource

    return [source for source in load_sources(*specs) if isinstance(source, McpSource)]


async def _confirm(specs: list[str], names: list[str], effects: _Effects | None, *, yes: bool) -> None:
    from bascule.bridge.display import show
    from bascule.bridge.terminal import whoami

    missing = set(names)
    for source in _sources(specs):
        try:
            with tools_on_stderr():
                await source.open()
            chosen = [
                each
                for each in source.waiting
                if (not names and each.definition is not None) or f"{each.server}:{each.tool}" in names
            ]
        finally:
            await source.close()
        missing -= {f"{each.server}:{each.tool}" for each in chosen}
        for each in chosen:
            print(describe_waiting(each))
        if not chosen or not (yes or _agrees(len(chosen))):
            continue
        for each in chosen:
            given = each.definition.suggested if effects == "suggested" and each.definition else effects
            assert given != "suggested"
            kept = source.confirm(each, by=whoami(), effects=given)
            print(f"confirmed {name_waiting(each)} with effects {kept}")
    if missing:
        print(f"bascule: these do not wait: {', '.join(map(show, sorted(missing)))}", file=sys.stderr)
        raise typer.Exit(Exit.CONFIGURATION)


def _agrees(count: int) -> bool:
    question = "Confirm this tool?" if count == 1 else f"Confirm these {count} tools?"
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        print("\nbascule: nobody is there to answer; write --yes to confirm what is shown", file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None


def describe_waiting(waiting: Waiting) -> str:
    """Return what a person has to see of a tool that waits: all of it, escaped; of a change, what changed."""
    from bascule.bridge.display import show

    head = f"{name_waiting(waiting)}  {waiting.reason}"
    if waiting.name:
        head += f", {waiting.name} in scripts"
    if waiting.definition is None:
        return f"{head}: {show(waiting.note)}" if waiting.note else head
    definition = waiting.definition
    lines = _pretty(definition.plain)
    if waiting.confirmed is not None:
        before = _pretty(waiting.confirmed.definition)
        lines = list(difflib.unified_diff(before, lines, "confirmed", "now", lineterm="", n=1))
    shown = [
        f"  {_indent(line)}{show(line.lstrip(' '), max_chars=10_000)}" for line in lines[:MAX_SHOWN_LINES]
    ]
    if len(lines) > MAX_SHOWN_LINES:
        shown.append(f"  [... {len(lines) - MAX_SHOWN_LINES} more lines; --json shows everything]")
    about = f"  suggested effects: {definition.suggested}; digest {definition.digest}"
    return "\n".join([head, *shown, about])


def _indent(line: str) -> str:
    """Return the layout of a line, which is ours: what a server wrote is within quotation marks."""
    return " " * (len(line) - len(line.lstrip(" ")))


def _pretty(plain: object) -> list[str]:
    return json.dumps(plain, indent=1, ensure_ascii=False, sort_keys=True).split("\n")
