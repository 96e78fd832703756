"""``bascule tools search`` and ``lint``: what models would find, and what would mislead them."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from bascule.cli.exits import Exit
from bascule.cli.streams import tools_on_stderr

_Specs = Annotated[
    list[str],
    typer.Option(
        "--tools", metavar="SPEC", help="module:attr, file.py, mcp.json or openapi.yaml. Repeatable."
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object per line.")]


def search_tools(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="What is to be done, in words; English or Chinese.")
    ],
    tools: _Specs,
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="How many at most.")] = 5,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Rank by meaning as well; needs bascule[embeddings].")
    ] = False,
    json_: _Json = False,
) -> None:
    """Find tools as models do: best first, with their signatures."""
    import json

    from bascule.bridge.display import show_block
    from bascule.cli.toolset import look_at
    from bascule.tools.search import ToolIndex

    with tools_on_stderr():
        registry = look_at(tools).registry
    embedder = None
    if vectors:
        from bascule.tools.embeddings import WordEmbedder

        embedder = WordEmbedder()
    matches = ToolIndex(registry, embedder=embedder).search(query, limit)
    for match in matches:
        if json_:
            print(json.dumps(asdict(match)))
        else:
            print(show_block(match.signature[:400]))
            print(f"    {show_block(match.summary[:200])}".rstrip())
    if not matches:
        print("bascule: no tool matches; try other words", file=sys.stderr)
        raise typer.Exit(Exit.FAILED)


def lint_tools(
    tools: _Specs,
    searchable: Annotated[
        bool, typer.Option("--searchable", help="Models search them, so there may be many.")
    ] = False,
    json_: _Json = False,
) -> None:
    """Find what makes models call tools wrongly; status 1 when there is something.

    What was repaired or left out of services' documents is told as well, and is no reason for that status.
    """
    import json

    from bascule.bridge.display import show
    from bascule.cli.toolset import look_at
    from bascule.tools import lint

    with tools_on_stderr():
        found = look_at(tools)
    findings = lint.lint_tools(found.registry, searchable=searchable)
    for finding in [*findings, *map(lint.judge_note, found.notes)]:
        print(json.dumps(asdict(finding)) if json_ else show(str(finding), max_chars=1000))
    if findings:
        raise typer.Exit(Exit.FAILED)
