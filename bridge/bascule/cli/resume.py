"""``bascule runs resume`` and ``replay``: scripts that run again, with tools or without."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, Optional, cast

import typer

from bascule.cli.driver import Approve, Isolation
from bascule.cli.exits import Exit, exit_for_result
from bascule.cli.extra_tools import ScratchFlag, SearchFlag, add_extra_tools
from bascule.cli.host_flags import DockerHostFlag, RuntimeFlag, SecretFlag
from bascule.cli.limit_flags import add_limit_flags
from bascule.cli.store_option import (
    JsonFlag,
    PlaceOption,
    RunArgument,
    ServerOption,
    open_place,
    open_store,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bascule.bridge import Result
    from bascule.bridge.history import StartedRun
    from bascule.bridge.recording import Rerun
    from bascule.cli.driver import Telling

_Tools = Annotated[
    Optional[list[str]],  # noqa: UP045  # read by typer at run time
    typer.Option(
        "--tools",
        metavar="SPEC",
        help="module:attr, file.py, mcp.json or openapi.yaml. Repeatable. A console has its own.",
    ),
]
_Policy = Annotated[
    Optional[list[Path]],  # noqa: UP045  # read by typer at run time
    typer.Option(
        "--policy", metavar="FILE", help="YAML rule file, a layer of the policy. Repeatable.", dir_okay=False
    ),
]
_Approve = Annotated[Approve, typer.Option("--approve", help="Who decides where policy asks.")]
_Isolation = Annotated[Isolation, typer.Option("--isolation", help="process is weaker; it says how.")]
_Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait for people and timers, or suspend at once.")
]
_Receipts = Annotated[bool, typer.Option("--receipts", help="Print a table of all calls.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no account.")]

_FLAGS: Final[dict[str, Any]] = {
    "store": PlaceOption,
    "server": ServerOption,
    "run": RunArgument,
    "tools": _Tools,
    "search_tools": SearchFlag,
    "scratch": ScratchFlag,
    "policy": _Policy,
    "secret": SecretFlag,
    "approve": _Approve,
    "isolation": _Isolation,
    "wait": _Wait,
    "docker_host": DockerHostFlag,
    "runtime": RuntimeFlag,
    "json_": JsonFlag,
    "receipts": _Receipts,
    "quiet": _Quiet,
}


def register(app: typer.Typer) -> None:
    """Add the commands; resuming takes the limits of a run, which are the host's to set."""
    app.command("resume")(add_limit_flags(resume_run, _FLAGS))
    app.command("replay")(replay_run)


def resume_run(
    run: str,
    *,
    store: Path | None = None,
    server: str | None = None,
    tools: list[str] | None = None,
    search_tools: bool = False,
    scratch: bool = False,
    policy: list[Path] | None = None,
    secret: list[str] | None = None,
    approve: Approve = "terminal",
    isolation: Isolation = "container",
    wait: bool = True,
    docker_host: str | None = None,
    runtime: str | None = None,
    json_: bool = False,
    receipts: bool = False,
    quiet: bool = False,
    **limits: float | None,
) -> None:
    """Go on with a run that was suspended or whose host died, and print its result."""
    from bascule.bridge import Executor, Policy, ask_later
    from bascule.bridge.limits import read_limits
    from bascule.cli.driver import (
        Telling,
        drive,
        is_unattended,
        pick_approver,
        see_through_here,
        suspend_at_once,
    )
    from bascule.cli.logs import keep_log_safe
    from bascule.cli.next_steps import NextSteps, given_flags
    from bascule.cli.progress import Progress
    from bascule.cli.run import read_secrets
    from bascule.cli.run_tokens import count_tokens
    from bascule.cli.streams import tools_on_stderr
    from bascule.sandbox import WEAKER
    from bascule.tools.loading import load_sources

    keep_log_safe()
    if server is not None:
        own = {"--tools": tools, "--policy": policy, "--secret": secret, "--search-tools": search_tools}
        if given := [flag for flag, value in own.items() if value]:
            print(
                f"bascule: the console goes on with its own tools and rules, not {given[0]}", file=sys.stderr
            )
            raise typer.Exit(Exit.USAGE)
        # Without the tools there is no surface to count the tokens of.
        telling = Telling(json=json_, receipts=receipts, quiet=quiet, tokens=lambda result: None)
        _resume_there(run, server, wait=wait, telling=telling)
    if not tools:
        print("bascule: say with which --tools the run goes on", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    if store is None:
        print("bascule: say --store FILE or --server URL", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    opened = open_store(store)
    unattended = is_unattended(approve)

    async def go_on() -> Result:
        result = await executor.resume(run, wait=False)
        return await see_through_here(executor, result, steps, approve) if wait else result

    try:
        with tools_on_stderr():
            given_tools = load_sources(*tools)
        executor = Executor(
            add_extra_tools(given_tools, opened, search_tools=search_tools, scratch=scratch),
            policy=Policy.load(*policy) if policy else None,
            approver=ask_later if unattended else pick_approver(approve),
            isolation=isolation,
            limits=read_limits(suspend_at_once(limits, wait=wait), os.environ),
            secrets=read_secrets(secret or ()),
            store=opened,
            docker_host=docker_host,
            runtime=runtime,
        )
        if isolation == "process":
            print(f"bascule: {WEAKER}", file=sys.stderr)
        if not quiet:
            executor.subscribe(Progress(sys.stderr))
        given = given_flags(
            tools=tools, search_tools=search_tools, scratch=scratch, policy=policy or (), secret=secret or (),
            approve=approve, isolation=isolation, docker_host=docker_host, runtime=runtime, limits=limits,
        )  # fmt: skip
        steps = NextSteps(store=store, given=given)
        _tell_other_rules(opened.started(run), policy or ())
        result = drive(executor, go_on, sources=given_tools)
        telling = Telling(
            json=json_, receipts=receipts, quiet=quiet, unattended=unattended,
            tokens=lambda result: count_tokens(executor, result),
        )  # fmt: skip
        telling.tell(result, opened, steps)
    finally:
        opened.close()
    raise typer.Exit(exit_for_result(result))


def _tell_other_rules(begun: StartedRun | None, policy: Sequence[Path]) -> None:
    """Say when a run goes on without the rules it was begun with: nothing else would show it."""
    from bascule.cli.decider import policies_of

    given = {path.resolve() for path in policy}
    if left_out := [str(path) for path in policies_of(begun) if path.resolve() not in given]:
        print(
            f"bascule: the run was begun with --policy {' '.join(left_out)}, and goes on without",
            file=sys.stderr,
        )


def _resume_there(run: str, server: str, *, wait: bool, telling: Telling) -> NoReturn:
    """Have a console go on with a run, and print its result once it is finished, or where it stands."""
    from bascule.bridge.errors import RunNotFound
    from bascule.bridge.store import Store
    from bascule.cli.next_steps import NextSteps
    from bascule.cli.remote import RemoteStore

    console = RemoteStore(server)
    try:
        if console.run(run) is None:
            raise RunNotFound(run)
        console.resume(run)
        result = console.result(run, wait=wait)
        telling.tell(result, cast("Store", console), NextSteps(store=None, server=server))
    finally:
        console.close()
    raise typer.Exit(exit_for_result(result))


def replay_run(
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDING", help="A recording; with --store or --server the id of a finished run."
        ),
    ],
    store: Annotated[Path | None, typer.Option("--store", help="File of the store.", dir_okay=False)] = None,
    server: Annotated[
        Optional[str],  # noqa: UP045  # read by typer at run time
        typer.Option("--server", help="Address of a console; its token in BASCULE_TOKEN."),
    ] = None,
    isolation: _Isolation = "container",
    json_: JsonFlag = False,
) -> None:
    """Run a recorded script again, without tools and network, and say whether it does the same."""
    from bascule.bridge.errors import RunNotFound
    from bascule.bridge.recording import make_recording, read_recording, rerun
    from bascule.cli.summary import print_result
    from bascule.sandbox import open_backend

    if store is None and server is None:
        if not recording.is_file():
            of_store = "; a run of a store needs --store FILE" if str(recording).startswith("run-") else ""
            print(f"bascule: there is no recording {recording}{of_store}", file=sys.stderr)
            raise typer.Exit(Exit.NO_INPUT)
        read = read_recording(recording)
    else:
        opened = open_place(store, server)
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
