"""``bascule runs resume`` and ``replay``: scripts that run again, with tools or without."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from bascule.cli.driver import Approve, Isolation
from bascule.cli.exits import Exit, exit_for_result
from bascule.cli.extra_tools import ScratchFlag, SearchFlag, add_extra_tools
from bascule.cli.store_option import JsonFlag, RunArgument, StoreOption, open_store

if TYPE_CHECKING:
    from bascule.bridge import Result
    from bascule.bridge.recording import Rerun

_Tools = Annotated[
    list[str],
    typer.Option(
        "--tools", metavar="SPEC", help="module:attr, file.py, mcp.json or openapi.yaml. Repeatable."
    ),
]
_Policy = Annotated[
    Optional[list[Path]],  # noqa: UP045  # read by typer at run time
    typer.Option("--policy", help="YAML rule file, a layer of the policy. Repeatable.", dir_okay=False),
]
_Isolation = Annotated[Isolation, typer.Option("--isolation", help="process is weaker; it says how.")]
_DockerHost = Annotated[str | None, typer.Option("--docker-host", help="Address of the engine.")]
_Runtime = Annotated[str | None, typer.Option("--runtime", help="Container runtime, as the engine names it.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("resume")(resume_run)
    app.command("replay")(replay_run)


def resume_run(
    store: StoreOption,
    run: RunArgument,
    tools: _Tools,
    search_tools: SearchFlag = False,
    scratch: ScratchFlag = False,
    policy: _Policy = None,
    approve: Annotated[
        Approve, typer.Option("--approve", help="Who decides where policy asks.")
    ] = "terminal",
    isolation: _Isolation = "container",
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait for people and timers, or suspend at once.")
    ] = True,
    docker_host: _DockerHost = None,
    runtime: _Runtime = None,
    json_: JsonFlag = False,
    receipts: Annotated[bool, typer.Option("--receipts", help="Print a table of all calls.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no account.")] = False,
) -> None:
    """Go on with a run that was suspended or whose host died, and print its result."""
    from bascule.bridge import Executor, Policy
    from bascule.bridge.limits import read_limits
    from bascule.cli.driver import (
        Telling,
        drive,
        has_pending,
        pick_approver,
        see_through_unattended,
        suspend_at_once,
    )
    from bascule.cli.logs import keep_log_safe
    from bascule.cli.next_steps import NextSteps, given_flags
    from bascule.cli.progress import Progress
    from bascule.cli.streams import tools_on_stderr
    from bascule.sandbox import WEAKER
    from bascule.tools.loading import load_sources

    keep_log_safe()
    opened = open_store(store)
    unattended = approve == "terminal" and not sys.stdin.isatty()
    at_once = not wait or (unattended and has_pending(opened, run))

    async def go_on() -> Result:
        result = await executor.resume(run, wait=wait and not unattended)
        return await see_through_unattended(executor, opened, result) if unattended and wait else result

    try:
        if unattended and not quiet:
            print(
                "bascule: no terminal: what policy asks about is left to `bascule approvals`", file=sys.stderr
            )
        with tools_on_stderr():
            given_tools = load_sources(*tools)
        executor = Executor(
            add_extra_tools(given_tools, opened, search_tools=search_tools, scratch=scratch),
            policy=Policy.load(*policy) if policy else None,
            approver=pick_approver("console" if unattended else approve),
            isolation=isolation,
            limits=read_limits(suspend_at_once({}, wait=not at_once), os.environ),
            store=opened,
            docker_host=docker_host,
            runtime=runtime,
        )
        if isolation == "process":
            print(f"bascule: {WEAKER}", file=sys.stderr)
        if not quiet:
            executor.subscribe(Progress(sys.stderr))
        result = drive(executor, go_on, sources=given_tools)
        given = given_flags(
            tools=tools, search_tools=search_tools, scratch=scratch, policy=policy or (),
            approve=approve, isolation=isolation, docker_host=docker_host, runtime=runtime,
        )  # fmt: skip
        steps = NextSteps(store=store, given=given)
        Telling(json=json_, receipts=receipts, quiet=quiet).tell(result, opened, steps)
    finally:
        opened.close()
    raise typer.Exit(exit_for_result(result))


def replay_run(
    recording: Annotated[Path, typer.Argument(help="A recording; with --store the id of a finished run.")],
    store: Annotated[Path | None, typer.Option("--store", help="File of the store.", dir_okay=False)] = None,
    isolation: _Isolation = "container",
    json_: JsonFlag = False,
) -> None:
    """Run a recorded script again, without tools and network, and say whether it does the same."""
    from bascule.bridge.errors import RunNotFound
    from bascule.bridge.recording import make_recording, read_recording, rerun
    from bascule.cli.summary import print_result
    from bascule.sandbox import open_backend

    if store is None:
        if not recording.is_file():
            print(f"bascule: there is no recording {recording}", file=sys.stderr)
            raise typer.Exit(Exit.NO_INPUT)
        read = read_recording(recording)
    else:
        opened = open_store(store)
        try:
            journal = opened.journal(str(recording))
            if journal is None:
                raise RunNotFound(str(recording))
            read = make_recording(str(recording), journal.entries)
        finally:
            opened.close()

    async def run() -> Rerun:
        backend = open_backend(isolation)
        try:
            return await rerun(read, backend)
        finally:
            await backend.close()

    done = asyncio.run(run())
    if json_:
        print_result(done.result, json=True)
    for problem in done.problems:
        print(f"bascule: {problem}", file=sys.stderr)
    if done.problems:
        raise typer.Exit(Exit.DIVERGED)
    calls = len(done.result.calls)
    print(
        f"bascule: {read.run_id}: the same {calls} call{'s' if calls != 1 else ''}, output and result",
        file=sys.stderr,
    )
