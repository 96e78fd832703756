"""``bascule run``: one script from a file or standard input, its result on standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Optional

import typer

from bascule.cli.driver import Approve, Isolation
from bascule.cli.exits import Exit, describe_exits, exit_for_rehearsal, exit_for_result
from bascule.cli.extra_tools import ScratchFlag, SearchFlag, add_extra_tools
from bascule.cli.host_flags import DockerHostFlag, RuntimeFlag, SecretFlag
from bascule.cli.limit_flags import add_limit_flags
from bascule.cli.streams import tools_on_stderr

if TYPE_CHECKING:
    from bascule.bridge import Result, Store

MAX_SCRIPT_BYTES: Final = 1 << 20
"""Largest script that is read."""

_Script = Annotated[
    str, typer.Argument(metavar="SCRIPT", help="File with the script, or - for standard input.")
]
_Tools = Annotated[
    list[str],
    typer.Option(
        "--tools", metavar="SPEC", help="module:attr, file.py, mcp.json or openapi.yaml. Repeatable."
    ),
]
_Policy = Annotated[
    Optional[list[Path]],  # noqa: UP045  # read by typer at run time
    typer.Option(
        "--policy", metavar="FILE", help="YAML rule file, a layer of the policy. Repeatable.", dir_okay=False
    ),
]
_User = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="For whom the run is. Default: who runs this.")
]
_Approve = Annotated[Approve, typer.Option("--approve", help="Who decides where policy asks.")]
_Isolation = Annotated[
    Isolation,
    typer.Option("--isolation", help="oci: runc or crun without an engine. process is weaker; it says how."),
]
_Seed = Annotated[
    int | None, typer.Option("--seed", min=0, max=2**63 - 1, help="Decides random and uuid4 in the script.")
]
_StoreFile = Annotated[
    Optional[Path],  # noqa: UP045  # as above
    typer.Option(
        "--store", envvar="BASCULE_STORE", help="File that keeps runs; made when missing.", dir_okay=False
    ),
]
_Record = Annotated[
    Optional[Path],  # noqa: UP045  # as above
    typer.Option("--record", help="Write a recording, for `bascule runs replay`.", dir_okay=False),
]
_Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for people, or suspend the run at once.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the whole result as one JSON object.")]
_Rehearse = Annotated[
    bool, typer.Option("--rehearse", help="Only list the effects the script wants; none happens.")
]
_Receipts = Annotated[bool, typer.Option("--receipts", help="Print a table of all calls at the end.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no account.")]


_FLAGS: Final[dict[str, Any]] = {
    "script": _Script,
    "tools": _Tools,
    "search_tools": SearchFlag,
    "scratch": ScratchFlag,
    "policy": _Policy,
    "user": _User,
    "secret": SecretFlag,
    "approve": _Approve,
    "isolation": _Isolation,
    "seed": _Seed,
    "store": _StoreFile,
    "record": _Record,
    "wait": _Wait,
    "docker_host": DockerHostFlag,
    "runtime": RuntimeFlag,
    "rehearse": _Rehearse,
    "json": _Json,
    "receipts": _Receipts,
    "quiet": _Quiet,
}


def register(app: typer.Typer) -> None:
    """Add the command, with one flag for each row of the table of limits."""
    app.command("run", epilog=describe_exits())(add_limit_flags(run, _FLAGS))


def run(
    script: str,
    *,
    tools: list[str],
    search_tools: bool = False,
    scratch: bool = False,
    policy: list[Path] | None = None,
    user: str | None = None,
    secret: list[str] | None = None,
    approve: Approve = "terminal",
    isolation: Isolation = "container",
    seed: int | None = None,
    store: Path | None = None,
    record: Path | None = None,
    wait: bool = True,
    docker_host: str | None = None,
    runtime: str | None = None,
    rehearse: bool = False,
    json: bool = False,
    receipts: bool = False,
    quiet: bool = False,
    **limits: float | None,
) -> None:
    """Run one script and print its result."""
    from bascule.bridge import Executor, Policy, ask_later
    from bascule.bridge.history import CommandLine
    from bascule.bridge.limits import read_limits
    from bascule.bridge.memory_store import MemoryStore
    from bascule.bridge.terminal import whoami
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
    from bascule.cli.run_tokens import count_tokens
    from bascule.cli.store_option import make_store
    from bascule.cli.summary import print_json
    from bascule.sandbox import WEAKER
    from bascule.tools.loading import load_sources

    keep_log_safe()
    if store is None and (approve == "console" or not wait):
        flag, why = ("--no-wait", "keeps the run") if not wait else ("--approve console", "people decide in")
        print(f"bascule: {flag} needs --store FILE, which {why}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    if record is not None:
        _check_record(record, rehearse=rehearse)
    text = _read_script(script)
    kept: Store = MemoryStore(keep_values=record is not None) if store is None else make_store(store)
    with tools_on_stderr():
        given_tools = load_sources(*tools)
    given = given_flags(
        tools=tools, search_tools=search_tools, scratch=scratch, policy=policy or (), secret=secret or (),
        approve=approve, isolation=isolation, docker_host=docker_host, runtime=runtime, limits=limits,
    )  # fmt: skip
    unattended = store is not None and is_unattended(approve)
    executor = Executor(
        add_extra_tools(given_tools, kept, search_tools=search_tools, scratch=scratch),
        policy=Policy.load(*policy) if policy else None,
        approver=ask_later if unattended else pick_approver(approve),
        isolation=isolation,
        limits=read_limits(suspend_at_once(limits, wait=wait), os.environ),
        user=user or whoami(),
        secrets=read_secrets(secret or ()),
        store=kept,
        docker_host=docker_host,
        runtime=runtime,
    )
    if isolation == "process":
        print(f"bascule: {WEAKER}", file=sys.stderr)
    if approve == "all":
        print("bascule: --approve all: every call that policy asks about is approved", file=sys.stderr)
    if not quiet:
        executor.subscribe(Progress(sys.stderr))
    try:
        if rehearse:
            rehearsal = drive(executor, lambda: executor.rehearse(text, seed=seed), sources=given_tools)
            if json:
                print_json(rehearsal.to_json())
            else:
                print(rehearsal.describe(), end="")
            raise typer.Exit(exit_for_rehearsal(rehearsal))
        command = None if store is None else CommandLine(flags=tuple(given), folder=os.getcwd())

        steps = None if store is None else NextSteps(store=store, given=given)

        async def see_it_through() -> Result:
            result = await executor.run(text, seed=seed, wait=wait and steps is None, command=command)
            return await see_through_here(executor, result, steps, approve) if steps and wait else result

        result = drive(executor, see_it_through, sources=given_tools)
        recorded = record is None or _record(kept, result, record)
        telling = Telling(
            json=json, receipts=receipts, quiet=quiet, unattended=unattended,
            tokens=lambda result: count_tokens(executor, result, text),
        )  # fmt: skip
        telling.tell(result, kept, steps)
    finally:
        kept.close()
    raise typer.Exit(exit_for_result(result) if recorded else Exit.INTERNAL)


def _check_record(path: Path, *, rehearse: bool) -> None:
    """Find out before anything runs that a recording has nowhere to go."""
    problem = None
    if rehearse:
        problem = "a rehearsal is not recorded"
    elif not path.parent.is_dir():
        problem = f"there is no folder {path.parent}"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        problem = f"{path} cannot be written"
    if problem is not None:
        print(f"bascule: --record: {problem}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)


def _record(store: Store, result: Result, path: Path) -> bool:
    """Write a recording; return False, and say so, where it cannot be: the result is told all the same."""
    from bascule.bridge.recording import make_recording, write_recording

    if result.status in ("suspended", "cancelled"):
        print(f"bascule: {result.run_id} is {result.status}; it is not recorded", file=sys.stderr)
        return True
    journal = store.journal(result.run_id)
    assert journal is not None
    try:
        write_recording(make_recording(result.run_id, journal.entries), path)
    except OSError as error:
        print(f"bascule: the recording cannot be written: {error}", file=sys.stderr)
        return False
    return True


def read_secrets(names: Sequence[str]) -> dict[str, str]:
    """Return secrets from the environment, by name.

    Raises:
        typer.Exit: one is not set.
    """
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        print(f"bascule: not set in the environment: {', '.join(missing)}", file=sys.stderr)
        raise typer.Exit(Exit.CONFIGURATION)
    return {name: os.environ[name] for name in names}


def _read_script(script: str) -> str:
    try:
        if script == "-":
            data = sys.stdin.buffer.read(MAX_SCRIPT_BYTES + 1)
        else:
            with open(script, "rb") as file:
                data = file.read(MAX_SCRIPT_BYTES + 1)
        if len(data) > MAX_SCRIPT_BYTES:
            raise ValueError(f"it is larger than {MAX_SCRIPT_BYTES} bytes")
        return data.decode("utf-8")
    except (OSError, ValueError) as error:
        why: object = error
        if isinstance(error, OSError):
            why = f"{script}: {error.strerror}"
        elif isinstance(error, UnicodeDecodeError):
            why = f"{script} is not UTF-8 text (byte {error.start + 1})"
        print(f"bascule: the script cannot be read: {why}", file=sys.stderr)
        raise typer.Exit(Exit.NO_INPUT) from error
