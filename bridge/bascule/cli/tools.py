"""``bascule tools``: what a script could call, as people and as prompts see it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final, Optional

import typer

from bascule.cli.exits import Exit
from bascule.cli.streams import tools_on_stderr

app: Final = typer.Typer(help="List and show tools.", no_args_is_help=True)

_Specs = Annotated[
    list[str],
    typer.Option("--tools", metavar="SPEC", help="module:attr, module, file.py or file.py:attr. Repeatable."),
]


@app.command("list")
def list_tools(
    tools: _Specs,
    stubs: Annotated[bool, typer.Option("--stubs", help="As Python stubs, as a prompt has them.")] = False,
) -> None:
    """List tools: name, effects, summary."""
    from bascule.bridge.display import show
    from bascule.tools import Registry, load_tools

    with tools_on_stderr():
        registry = Registry(load_tools(*tools))
    if stubs:
        print(registry.render_stubs(), end="")
        return
    width = max((len(tool.name) for tool in registry), default=0)
    for tool in registry:
        print(f"{tool.name:<{width}}  {tool.effects:<10}  {show(tool.summary, max_chars=200)}".rstrip())


@app.command("show")
def show_tool(
    name: Annotated[str, typer.Argument(help="The tool's name, as a script would write it.")],
    tools: _Specs,
) -> None:
    """Show one tool: signature, description, schema, digest."""
    import json

    from bascule.bridge.display import show
    from bascule.tools import Registry, load_tools, render_stubs

    with tools_on_stderr():
        registry = Registry(load_tools(*tools))
    tool = registry.get(name)
    if tool is None:
        nearest = registry.nearest(name)
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        print(f"bascule: there is no tool {show(name)}{hint}", file=sys.stderr)
        raise typer.Exit(Exit.CONFIGURATION)
    print(render_stubs([tool], detail="full"))
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
    from bascule.tools import load_tools

    names = [tool.name for tool in load_tools(*tools)] if tools else []
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
            f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in row.items()
            if key != "tool" and (value or key == "calls")
        ]
        print(f"{show(str(row['tool']), max_chars=100)}: {', '.join(words)}")
