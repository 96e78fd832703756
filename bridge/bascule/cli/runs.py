"""``bascule runs``: what a store holds, and what can be done with a run that is not over."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Optional

import typer

from bascule.cli.exits import Exit, exit_for_result

if TYPE_CHECKING:
    from bascule.bridge import Result
    from bascule.bridge.recording import Rerun
    from bascule.bridge.sqlite_store import SqliteStore

app: Final = typer.Typer(
    help="List, show, resume, replay, cancel and resolve runs.", no_args_is_help=True, add_completion=False
)

Status = Literal["running", "suspended", "finished"]
Approve = Literal["terminal", "console", "deny", "all"]
Isolation = Literal["container", "process"]

_Store = Annotated[
    Path, typer.Option("--store", envvar="BASCULE_STORE", help="File of the store.", dir_okay=False)
]
_Run = Annotated[str, typer.Argument(help="Id of the run.")]
_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
_Tools = Annotated[
    list[str],
    typer.Option("--tools", metavar="SPEC", help="module:attr, module, file.py or file.py:attr. Repeatable."),
]
_Policy = Annotated[
    Optional[list[Path]],  # noqa: UP045  # read by typer at run time
    typer.Option("--policy", help="YAML rule file, a layer of the policy. Repeatable.", dir_okay=False),
]
_Isolation = Annotated[Isolation, typer.Option("--isolation", help="process is weaker; it says how.")]


def open_store(path: Path) -> SqliteStore:
    """Open a store that is there."""
    from bascule.bridge.sqlite_store import SqliteStore

    if not path.exists():
        print(f"bascule: there is no store {path}", file=sys.stderr)
        raise typer.Exit(Exit.CONFIGURATION)
    return SqliteStore(path)


@app.command("list")
def list_runs(
    store: _Store,
    status: Annotated[Status | None, typer.Option("--status", help="Only these.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many, the newest first.")] = 50,
    json_: _Json = False,
) -> None:
    """List runs, the newest first."""
    from bascule.bridge.display import show

    opened = open_store(store)
    try:
        rows = opened.runs(status=status, limit=limit)
    finally:
        opened.close()
    for row in rows:
        state = row.outcome or row.status
        begun = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.created_at))
        if json_:
            fields = ("run_id", "status", "outcome", "created_at", "user", "reason", "wake_at", "session")
            print(json.dumps({name: getattr(row, name) for name in fields}))
        else:
            print(f"{row.run_id}  {begun}  {state:<10}  {show(row.reason, max_chars=120)}".rstrip())


@app.command("show")
def show_run(store: _Store, run: _Run, json_: _Json = False) -> None:
    """Show one run: its row, its calls as far as they are known, its events."""
    from bascule.bridge.display import show, show_json

    opened = open_store(store)
    try:
        row, journal = _row(opened, run), opened.journal(run)
        entries = () if journal is None else journal.entries
    finally:
        opened.close()
    if json_:
        for entry in entries:
            payload = None if entry.payload is None else entry.payload.decode("utf-8", "replace")
            line: dict[str, Any] = {"index": entry.index, "kind": entry.kind, "at": entry.at}
            print(json.dumps({**line, "facts": dict(entry.facts), "payload": payload}))
        return
    print(f"{row.run_id}: {row.outcome or row.status} {show(row.reason, max_chars=300)}".rstrip())
    print(f"user {show(row.user or '-', max_chars=100)}, image {row.image[:12]}, epoch {row.epoch}")
    for entry in entries:
        facts = {name: value for name, value in entry.facts.items() if not name.endswith("sha256")}
        print(f"{entry.index:>5}  {entry.kind:<18} {show_json(json.dumps(facts).encode(), max_chars=200)}")


@app.command("resume")
def resume_run(
    store: _Store,
    run: _Run,
    tools: _Tools,
    policy: _Policy = None,
    approve: Annotated[
        Approve, typer.Option("--approve", help="Who decides where policy asks.")
    ] = "terminal",
    isolation: _Isolation = "container",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for people and timers.")] = True,
    json_: _Json = False,
) -> None:
    """Go on with a run that was suspended or whose host died, and print its result."""
    from bascule.bridge import Executor, Policy
    from bascule.bridge.limits import read_limits
    from bascule.cli.logs import keep_log_safe
    from bascule.cli.run import pick_approver
    from bascule.cli.summary import print_result
    from bascule.tools import load_tools

    keep_log_safe()
    opened = open_store(store)
    executor = Executor(
        load_tools(*tools),
        policy=Policy.load(*policy) if policy else None,
        approver=pick_approver(approve),
        isolation=isolation,
        limits=read_limits({}, os.environ),
        store=opened,
    )

    async def resume() -> Result:
        async with executor:
            return await executor.resume(run, wait=wait)

    try:
        result = asyncio.run(resume())
    finally:
        opened.close()
    print_result(result, json=json_)
    raise typer.Exit(exit_for_result(result))


@app.command("replay")
def replay_run(
    recording: Annotated[Path, typer.Argument(help="A recording; with --store the id of a finished run.")],
    store: Annotated[Path | None, typer.Option("--store", help="File of the store.", dir_okay=False)] = None,
    isolation: _Isolation = "container",
    json_: _Json = False,
) -> None:
    """Run a recorded script again, without tools and network, and say whether it does the same."""
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
            journal = opened.journal(_row(opened, str(recording)).run_id)
            read = make_recording(str(recording), () if journal is None else journal.entries)
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
    print(
        f"bascule: {read.run_id}: the same {len(done.result.calls)} calls, output and result", file=sys.stderr
    )


@app.command("cancel")
def cancel_run(store: _Store, run: _Run) -> None:
    """End a run, wherever it is; effects that were started end first."""
    from bascule.bridge.runs import cancel_run as cancel

    opened = open_store(store)
    try:
        _row(opened, run)
        asked = asyncio.run(cancel(opened, run))
    finally:
        opened.close()
    if not asked:
        print(f"bascule: {run} is finished already", file=sys.stderr)
        raise typer.Exit(Exit.FAILED)


@app.command("resolve")
def resolve_call(
    store: _Store,
    run: _Run,
    seq: Annotated[int, typer.Argument(help="Number of the call whose outcome is unknown.")],
    happened: Annotated[
        str | None, typer.Option("--happened", metavar="JSON", help="It happened: its result.")
    ] = None,
    did_not_happen: Annotated[
        bool, typer.Option("--did-not-happen", help="It did not: it runs again.")
    ] = False,
    tell_script: Annotated[bool, typer.Option("--tell-script", help="Tell the script nobody knows.")] = False,
) -> None:
    """Say what became of a call whose host died while it ran; the run then goes on when it is resumed."""
    from bascule.bridge.runs import resolve_call as resolve
    from bascule.bridge.store import Answer
    from bascule.bridge.terminal import whoami

    if (happened is not None) + did_not_happen + tell_script != 1:
        print("bascule: say one of --happened JSON, --did-not-happen, --tell-script", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    by = whoami()
    if happened is not None:
        try:
            json.loads(happened)
        except ValueError as error:
            print(f"bascule: --happened takes the result as JSON: {error}", file=sys.stderr)
            raise typer.Exit(Exit.USAGE) from error
        answer = Answer(kind="happened", value=happened.encode(), by=by)
    else:
        answer = Answer(kind="did_not_happen" if did_not_happen else "tell_script", by=by)
    opened = open_store(store)
    try:
        first = resolve(opened, run, seq, answer)
    finally:
        opened.close()
    if not first:
        print(f"bascule: call {seq} of {run} was answered before", file=sys.stderr)
        raise typer.Exit(Exit.FAILED)


def _row(store: SqliteStore, run: str) -> Any:
    from bascule.bridge.errors import RunNotFound

    row = store.run(run)
    if row is None:
        raise RunNotFound(run)
    return row
