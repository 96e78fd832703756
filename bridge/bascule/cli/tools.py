"""``bascule tools``: what a script could call, as people and as prompts see it."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Optional

import typer

from bascule.cli import confirm, judge_tools
from bascule.cli.exits import Exit
from bascule.cli.streams import tools_on_stderr
from bascule.cli.waiting import name_waiting

if TYPE_CHECKING:
    from bascule.tools import AnyTool, Registry

MAX_NOTES: Final = 20
"""Notes about the documents of services that are shown."""

app: Final = typer.Typer(help="List, show and confirm tools.", no_args_is_help=True)
app.command("pending")(confirm.list_pending)
app.command("confirm")(confirm.confirm_tools)
app.command("refuse")(confirm.refuse_tools)
app.command("search")(judge_tools.search_tools)
app.command("lint")(judge_tools.lint_tools)

_Specs = Annotated[
    list[str],
    typer.Option(
        "--tools", metavar="SPEC", help="module:attr, file.py, mcp.json or openapi.yaml. Repeatable."
    ),
]


@app.command("list")
def list_tools(
    tools: _Specs,
    stubs: Annotated[bool, typer.Option("--stubs", help="As Python stubs, as a prompt has them.")] = False,
    observed: Annotated[
        Optional[Path],  # noqa: UP045  # read by typer at run time
        typer.Option("--observed", help="Store whose results show the shapes of undeclared ones."),
    ] = None,
    namespaces: Annotated[
        bool, typer.Option("--namespaces", help="Only namespaces and their counts.")
    ] = False,
) -> None:
    """List tools: name, effects, summary; and how many each namespace has."""
    from bascule.bridge.display import show
    from bascule.cli.toolset import look_at
    from bascule.tools import render_stubs

    if observed is not None and not stubs:
        print("bascule: --observed shows shapes in stubs: say --stubs as well", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    with tools_on_stderr():
        found = look_at(tools)
    registry = found.registry
    if stubs:
        print(render_stubs(registry if observed is None else _observe(registry, observed)), end="")
        return
    counts = Counter(tool.name.rpartition(".")[0] for tool in registry)
    if namespaces:
        width = max(map(len, counts), default=0)
        for namespace, count in counts.items():
            print(f"{namespace or '-':<{width}}  {count}")
        return
    width = max((len(each.name) for each in (*registry, *found.waiting)), default=0)
    for tool in registry:
        print(f"{tool.name:<{width}}  {tool.effects:<10}  {show(tool.summary, max_chars=200)}".rstrip())
    if len(counts) > 1:
        listed = ", ".join(
            f"{namespace or 'without namespace'} {count}" for namespace, count in counts.items()
        )
        print(f"{len(registry)} tool{'s' if len(registry) != 1 else ''}: {listed}")
    for each in found.waiting:
        name = each.name or name_waiting(each)
        if refused := found.refused.get((each.server, each.tool)):
            why = f": {show(refused.said)}" if refused.said else ""
            print(f"{name:<{width}}  {'refused':<10}  by {show(refused.by)}{why}")
            continue
        file = shlex.quote(tools[0]) if len(tools) == 1 else "FILE"
        command = f": bascule tools confirm --tools {file} {shlex.quote(name_waiting(each))}"
        note = f": {show(each.note)}" if each.note else ""
        print(f"{name:<{width}}  {'waiting':<10}  {each.reason}{command if each.name else note}")
    for note in found.notes[:MAX_NOTES]:
        print(f"bascule: {show(note, max_chars=300)}", file=sys.stderr)
    if len(found.notes) > MAX_NOTES:
        print(f"bascule: and {len(found.notes) - MAX_NOTES} more notes", file=sys.stderr)


def _observe(registry: Registry, store: Path) -> list[AnyTool]:
    from bascule.bridge.observing import observe_store
    from bascule.cli.store_option import open_store

    opened = open_store(store)
    try:
        return observe_store(registry, opened)
    finally:
        opened.close()


@app.command("show")
def show_tool(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool's name, as a script would write it.")],
    tools: _Specs,
    detail: Annotated[
        Literal["names", "signatures", "full"], typer.Option("--detail", help="As a prompt has it.")
    ] = "full",
) -> None:
    """Show one tool: signature, description, schema, digest."""
    import json

    from bascule.bridge.display import show
    from bascule.cli.toolset import look_at
    from bascule.tools import render_stubs

    with tools_on_stderr():
        found = look_at(tools)
    registry = found.registry
    tool = registry.get(name)
    for each in found.waiting:
        if tool is None and each.name and name in (each.name, f"{each.server}:{each.tool}"):
            command = f"bascule tools confirm --tools FILE {shlex.quote(name_waiting(each))}"
            print(f"bascule: {each.name} waits ({each.reason}) for `{command}`", file=sys.stderr)
            raise typer.Exit(Exit.CONFIGURATION)
    if tool is None:
        nearest = registry.nearest(name)
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        print(f"bascule: there is no tool {show(name)}{hint}", file=sys.stderr)
        raise typer.Exit(Exit.CONFIGURATION)
    print(render_stubs([tool], detail=detail), end="" if detail != "full" else "\n")
    if detail != "full":
        return
    print(f"effects    {tool.effects}")
    print(f"labels     {', '.join(sorted(tool.labels)) or '-'}")
    print(f"timeout    {tool.timeout_s:g} s")
    print(f"resource   {tool.resource or '-'}")
    print(f"defined    {tool.location or '-'}")
    print(f"digest     {tool.digest}")
    print(f"arguments  {json.dumps(tool.parameters)}")
    print(f"result     {json.dumps(tool.returns)}")


@app.command("stats")
def show_stats(
    store: Annotated[
        Path, typer.Option("--store", envvar="BASCULE_STORE", help="File of the store.", dir_okay=False)
    ],
    tools: Annotated[
        Optional[list[str]],  # noqa: UP045  # read by typer at run time
        typer.Option("--tools", metavar="SPEC", help="Tools to list even if never called. Repeatable."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Show what the audit table says of tools: never called, mis-named, refused, slow, large."""
    import json

    from bascule.bridge.display import show
    from bascule.bridge.tool_stats import collect_stats
    from bascule.cli.store_option import open_store
    from bascule.cli.toolset import look_at

    names = list(look_at(tools).registry.names()) if tools else []
    opened = open_store(store)
    try:
        found = [stats.summary() for stats in collect_stats(opened.audit_entries(), names)]
    finally:
        opened.close()
    for row in found:
        if json_:
            print(json.dumps(row))
            continue
        words = [
            _tell_figure(key, value)
            for key, value in row.items()
            if key != "tool" and (value or key == "calls")
        ]
        print(f"{show(str(row['tool']), max_chars=100)}: {', '.join(words)}")


def _tell_figure(name: str, value: object) -> str:
    if isinstance(value, float) and name.endswith("_s"):
        return f"{name.removesuffix('_s')} {value * 1000:.1f} ms"
    return f"{name} {value:,.0f}" if isinstance(value, int | float) else f"{name} {value}"
