"""``bascule tools pending``, ``confirm``, ``refuse``: people look at what servers say of tools, and decide.

What is confirmed is what was shown: both come from one and the same list of the server, bound by its digest.
With ``--server`` the list and the decision are those of a console, made by whoever the token is of.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal, Optional

import typer

from bascule.cli.exits import Exit
from bascule.cli.store_option import ServerOption
from bascule.cli.streams import tools_on_stderr

if TYPE_CHECKING:
    from bascule.tools.imported.review import Review, Reviewed

MAX_SHOWN_LINES: Final = 400

_Specs = Annotated[
    Optional[list[str]],  # noqa: UP045  # read by typer at run time
    typer.Option("--tools", metavar="FILE", help="File that names MCP servers. Repeatable."),
]
_Names = Annotated[
    Optional[list[str]],  # noqa: UP045  # as above
    typer.Argument(metavar="SERVER:TOOL...", help="Which, as `bascule tools pending` lists them."),
]
_All = Annotated[bool, typer.Option("--all", help="Everything that waits and was not refused.")]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask after showing.")]
_Effects = Literal["read", "idempotent", "once", "suggested"]


def list_pending(
    tools: _Specs = None,
    server: ServerOption = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List tools that wait to be confirmed, with what their servers say of them."""

    def show_all(source: Reviewed) -> None:
        for each in source.review():
            print(json.dumps(_row(each)) if json_ else describe_review(each))

    _with_sources(tools, server, show_all)


def confirm_tools(
    names: _Names = None,
    tools: _Specs = None,
    server: ServerOption = None,
    all_: _All = False,
    effects: Annotated[
        Optional[_Effects],  # noqa: UP045  # read by typer at run time
        typer.Option(
            "--effects",
            help="Effects of all that is confirmed; suggested: what each server says. "
            "Default: as confirmed before, once for new ones.",
        ),
    ] = None,
    yes: _Yes = False,
) -> None:
    """Confirm the definitions of tools, after showing them; from the next start on they can be called."""

    def settle(source: Reviewed, each: Review) -> str:
        given = each.suggested if effects == "suggested" else effects
        kept = source.settle(
            each.server, each.tool, each.digest or "", confirm=True, by=_whoami(), effects=given, reason=""
        )
        return f"confirmed {name_review(each)} with effects {kept}"

    _decide(names, tools, server, settle, all_=all_, yes=yes, question="Confirm")


def refuse_tools(
    names: _Names = None,
    tools: _Specs = None,
    server: ServerOption = None,
    all_: _All = False,
    reason: Annotated[str, typer.Option("--reason", help="For the record.")] = "",
    yes: _Yes = False,
) -> None:
    """Refuse the definitions of tools, after showing them; `--all` passes over them until they change."""

    def settle(source: Reviewed, each: Review) -> str:
        source.settle(
            each.server,
            each.tool,
            each.digest or "",
            confirm=False,
            by=_whoami(),
            effects=None,
            reason=reason,
        )
        return f"refused {name_review(each)}"

    _decide(names, tools, server, settle, all_=all_, yes=yes, question="Refuse")


def _decide(
    names: Sequence[str] | None,
    tools: list[str] | None,
    server: str | None,
    settle: Callable[[Reviewed, Review], str],
    *,
    all_: bool,
    yes: bool,
    question: str,
) -> None:
    from bascule.bridge.display import show

    if bool(names) == all_:
        print(f"bascule: name what to {question.lower()}, or write --all", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    missing = set(names or ())

    def decide(source: Reviewed) -> None:
        chosen = [
            each
            for each in source.review()
            if f"{each.server}:{each.tool}" in missing
            or (not names and each.digest is not None and each.state == "waiting")
        ]
        missing.difference_update([f"{each.server}:{each.tool}" for each in chosen])
        for each in chosen:
            print(describe_review(each))
        if chosen and (yes or _agrees(question, len(chosen))):
            for each in chosen:
                print(settle(source, each))

    _with_sources(tools, server, decide)
    if missing:
        print(f"bascule: these do not wait: {', '.join(map(show, sorted(missing)))}", file=sys.stderr)
        raise typer.Exit(Exit.CONFIGURATION)


def _with_sources(tools: list[str] | None, server: str | None, look: Callable[[Reviewed], None]) -> None:
    if server is not None and tools is None:
        from bascule.cli.remote import RemoteStore

        console = RemoteStore(server)
        try:
            look(console.definitions)
        finally:
            console.close()
    elif tools is not None:
        asyncio.run(_open(tools, look))
    else:
        print("bascule: say --tools FILE or --server URL", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)


async def _open(specs: list[str], look: Callable[[Reviewed], None]) -> None:
    from bascule.tools.imported.review import Reviewed
    from bascule.tools.loading import load_sources
    from bascule.tools.source import ToolSource

    for source in load_sources(*specs):
        if not isinstance(source, ToolSource) or not isinstance(source, Reviewed):
            continue
        try:
            with tools_on_stderr():
                await source.open()
            look(source)
        finally:
            await source.close()


def _whoami() -> str:
    from bascule.bridge.terminal import whoami

    return whoami()


def _agrees(verb: str, count: int) -> bool:
    question = f"{verb} this tool?" if count == 1 else f"{verb} these {count} tools?"
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        print(
            f"\nbascule: nobody is there to answer; write --yes to {verb.lower()} what is shown",
            file=sys.stderr,
        )
        raise typer.Exit(Exit.USAGE) from None


def name_review(review: Review) -> str:
    """Return how a tool that waits is called on the command line, escaped."""
    from bascule.bridge.display import show

    return f"{show(review.server)}:{show(review.tool, max_chars=200)}"


def describe_review(review: Review) -> str:
    """Return what a person has to see of a tool that waits: all of it, escaped; of a change, what changed."""
    from bascule.bridge.display import show

    head = f"{name_review(review)}  {review.reason}"
    if review.name:
        head += f", {show(review.name)} in scripts"
    if review.state != "waiting":
        why = f": {show(review.said)}" if review.said else ""
        when = ", in force from the next start on" if review.state == "confirmed" else ""
        head += f", {review.state} by {show(review.by)}{why}{when}"
    if review.digest is None:
        return f"{head}: {show(review.note)}" if review.note else head
    lines = review.lines()
    marks = {"same": " ", "added": "+", "removed": "-"}
    shown = [
        f"  {marks[mark]} {_indent(line)}{show(line.lstrip(' '), max_chars=10_000)}"
        for mark, line in lines[:MAX_SHOWN_LINES]
    ]
    if len(lines) > MAX_SHOWN_LINES:
        shown.append(f"  [... {len(lines) - MAX_SHOWN_LINES} more lines; --json shows everything]")
    about = f"  suggested effects: {review.suggested}; digest {review.digest}"
    return "\n".join([head, *shown, about])


def _row(review: Review) -> dict[str, object]:
    return {
        "server": review.server,
        "tool": review.tool,
        "reason": review.reason,
        "note": review.note,
        "digest": review.digest,
        "suggested_effects": review.suggested,
        "definition": review.definition,
        "confirmed": review.before,
        "state": review.state,
        "by": review.by,
        "said": review.said,
    }


def _indent(line: str) -> str:
    """Return the layout of a line, which is ours: what a server wrote is within quotation marks."""
    return " " * (len(line) - len(line.lstrip(" ")))
