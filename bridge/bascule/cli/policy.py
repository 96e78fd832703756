"""``bascule policy``: whether rule files can be used, and what they say about one call."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from bascule.cli.exits import Exit

app: Final = typer.Typer(help="Check rule files and explain what they decide.", no_args_is_help=True)

_Files = Annotated[
    list[Path],
    typer.Option("--policy", metavar="FILE", help="YAML rule file, a layer. Repeatable.", dir_okay=False),
]
_Tools = Annotated[
    list[str],
    typer.Option(
        "--tools", metavar="SPEC", help="module:attr, file.py, mcp.json or openapi.yaml. Repeatable."
    ),
]


@app.command("lint")
def lint(policy: _Files, tools: _Tools) -> None:
    """Find rules that cannot be read or can never match these tools."""
    from bascule.bridge import Policy
    from bascule.cli.toolset import look_at

    loaded = Policy.load(*policy)
    loaded.check(look_at(tools).registry)
    count = len(loaded.rules)
    print(f"{count} rule{'s' if count != 1 else ''}, no faults, digest {loaded.digest[:16]}")


@app.command("explain")
def explain(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Name of the tool.")],
    tools: _Tools,
    arguments: Annotated[str, typer.Argument(metavar="ARGS", help="Arguments as a JSON object.")] = "{}",
    policy: Annotated[
        list[Path] | None,
        typer.Option(
            "--policy", metavar="FILE", help="YAML rule file, a layer. Repeatable. Without one: the defaults."
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="For whom the run would be.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="NAME", help="A group of theirs. Repeatable.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--run-label", metavar="LABEL", help="A label the run has gathered. Repeatable."),
    ] = None,
) -> None:
    """Hold every rule against one call: which match, why, and what comes of it."""
    from bascule.bridge import Policy
    from bascule.bridge.display import show, show_json
    from bascule.bridge.matching import Facts, User
    from bascule.bridge.spelling import find_whole_floats, spell
    from bascule.cli.toolset import look_at
    from bascule.tools import ArgumentsInvalid

    loaded = Policy.load(*policy) if policy else Policy.default()
    registry = look_at(tools).registry
    loaded.check(registry)
    found = registry.get(tool)
    if found is None:
        nearest = registry.nearest(tool)
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        print(f"bascule: there is no tool {show(tool)}, so every call of it is denied{hint}", file=sys.stderr)
        raise typer.Exit(Exit.FAILED)
    try:
        given = json.loads(arguments)
    except ValueError as error:
        print(f"bascule: ARGS is no JSON object: {error}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from error
    try:
        valid = found.validate(given)
    except ArgumentsInvalid as error:
        print(f"bascule: these arguments never reach policy: {error}", file=sys.stderr)
        raise typer.Exit(Exit.FAILED) from error
    who = None if user is None else User(name=user, groups=frozenset(group or ()))
    facts = Facts(user=loaded.identify(who), labels=frozenset(label or ()))
    print(f"{found.name}({show_json(spell(valid.canonical, find_whole_floats(valid.values)))})")
    for each in loaded.explain(found, valid.plain, facts):
        print(f"{'matches' if each.matches else '-':<8} {each.effect:<6} {each.rule}: {show(each.why)}")
    verdict = loaded.decide(found, valid.plain, facts)
    print(f"=> {verdict.effect} ({', '.join(verdict.rules)})")
    for charge in verdict.charges:
        print(f"   charges the budget of {charge.rule}: {charge.text}")
    if verdict.requirement is not None:
        from bascule.bridge.decide import describe_demand

        for demand in verdict.requirement.demands:
            print(f"   {describe_demand(demand)}")
        print(f"   may {', '.join(verdict.requirement.may)}")
