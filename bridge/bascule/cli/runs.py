"""``bascule runs``: what a store holds, and what can be done with a run that is not over."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

import typer

from bascule.cli import resume
from bascule.cli.exits import Exit
from bascule.cli.store_option import (
    JsonFlag,
    PlaceOption,
    RunArgument,
    ServerOption,
    open_place,
    open_store,
)

if TYPE_CHECKING:
    from bascule.bridge.journal import JournalEntry
    from bascule.bridge.sqlite_store import SqliteStore
    from bascule.bridge.store import Answer, Store
    from bascule.cli.remote import RemoteStore

app: Final = typer.Typer(
    help="List, show, resume, replay, cancel, resolve and prune runs.",
    no_args_is_help=True,
    add_completion=False,
)
resume.register(app)

Status = Literal["running", "suspended", "finished"]


@app.command("list")
def list_runs(
    store: PlaceOption = None,
    server: ServerOption = None,
    status: Annotated[Status | None, typer.Option("--status", help="Only these.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many, the newest first.")] = 50,
    json_: JsonFlag = False,
) -> None:
    """List runs, the newest first: id, status, age, user, first line of the script, what it waits for."""
    from bascule.bridge.display import show
    from bascule.bridge.run_view import title_of
    from bascule.cli.remote import RemoteStore
    from bascule.cli.times import describe_age

    opened = open_place(store, server)
    try:
        rows = opened.runs(status=status, limit=limit)
        if isinstance(opened, RemoteStore):
            titles = [opened.titles[row.run_id] for row in rows]
        else:
            begun = [opened.started(row.run_id) for row in rows]
            titles = [None if each is None else title_of(each.script) for each in begun]
    finally:
        opened.close()
    for row, found in zip(rows, titles, strict=True):
        title = "(script dropped by retention)" if found is None else found
        if json_:
            fields = ("run_id", "status", "outcome", "created_at", "user", "reason", "wake_at", "session")
            told = {name: getattr(row, name) for name in fields}
            print(json.dumps({**told, "script_sha256": row.script_sha256, "title": title}))
            continue
        age = describe_age(time.time() - row.created_at)
        user = show(row.user or "-", max_chars=20)
        reason = f"  ({show(row.reason, max_chars=120)})" if row.status == "suspended" else ""
        print(
            f"{row.run_id}  {row.outcome or row.status:<9}  {age:>6}  {user:<10}"
            f"  {show(title, max_chars=60)}{reason}"
        )


@app.command("show")
def show_run(
    run: RunArgument,
    store: PlaceOption = None,
    server: ServerOption = None,
    journal: Annotated[
        bool, typer.Option("--journal", help="The raw events of its journal instead.")
    ] = False,
    json_: JsonFlag = False,
) -> None:
    """Show one run: where it stands, its script, calls and output, what it waits for, what comes next."""
    import msgspec

    from bascule.bridge.errors import RunNotFound
    from bascule.bridge.run_view import read_view
    from bascule.cli.next_steps import NextSteps
    from bascule.cli.run_page import describe_run
    from bascule.cli.summary import FILE_WIDTH

    opened = open_place(store, server)
    try:
        if journal:
            found = opened.journal(run)
            if found is None:
                raise RunNotFound(run)
            _print_journal(found.entries, json_=json_)
            return
        view = read_view(cast("Store", opened), run)  # a console answers what is asked there
    finally:
        opened.close()
    if json_:
        sys.stdout.buffer.write(msgspec.json.encode(view.to_json()) + b"\n")
        sys.stdout.flush()
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else FILE_WIDTH
    print(describe_run(view, NextSteps(store=store, server=server), width=width), end="")


def _print_journal(entries: tuple[JournalEntry, ...], *, json_: bool) -> None:
    from bascule.bridge.display import show_json

    for entry in entries:
        if json_:
            payload = None if entry.payload is None else entry.payload.decode("utf-8", "replace")
            line: dict[str, Any] = {"index": entry.index, "kind": entry.kind, "at": entry.at}
            print(json.dumps({**line, "facts": dict(entry.facts), "payload": payload}))
            continue
        facts = {name: value for name, value in entry.facts.items() if not name.endswith("sha256")}
        print(f"{entry.index:>5}  {entry.kind:<18} {show_json(json.dumps(facts).encode(), max_chars=200)}")


@app.command("cancel")
def cancel_run(run: RunArgument, store: PlaceOption = None, server: ServerOption = None) -> None:
    """End a run, wherever it is; effects that were started end first."""
    from bascule.bridge.errors import RunNotFound
    from bascule.bridge.runs import cancel_run as cancel
    from bascule.cli.remote import RemoteStore

    opened = open_place(store, server)
    try:
        if opened.run(run) is None:
            raise RunNotFound(run)
        waiting = _list_waiting(opened, run)
        if isinstance(opened, RemoteStore):
            asked = opened.ask("POST", f"/v1/runs/{run}/cancel")["done"]
        else:
            asked = asyncio.run(cancel(opened, run))
        after = opened.run(run)
        left = _list_waiting(opened, run)
    finally:
        opened.close()
    if not asked:
        print(f"bascule: {run} is finished already", file=sys.stderr)
        raise typer.Exit(Exit.FAILED)
    ended = after is not None and after.status == "finished"
    print(f"{run} cancelled" if ended else f"{run} is told to end")
    for approval in waiting:
        if approval not in left:
            print(f"approval {approval} cancelled")


@app.command("prune")
def prune_runs(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Of runs finished so long ago: 30d, 12h, 90m.")
    ],
    store: Annotated[
        Path, typer.Option("--store", envvar="BASCULE_STORE", help="File of the store.", dir_okay=False)
    ],
) -> None:
    """Drop scripts, arguments, results and output of old runs; events, digests, decisions and audit stay."""
    from bascule.bridge.rules import read_duration

    try:
        age = read_duration(older_than)
    except ValueError as error:
        print(f"bascule: --older-than: {error}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from error
    opened = open_store(store)
    try:
        count = opened.prune(before=time.time() - age.total_seconds())
    finally:
        opened.close()
    print(f"the values of {count} run{'s' if count != 1 else ''} were dropped")


def _list_waiting(opened: SqliteStore | RemoteStore, run: str) -> list[str]:
    """Return ids of a run's pending approvals."""
    from bascule.cli.remote import RemoteStore

    if isinstance(opened, RemoteStore):  # who may see a run may not be who may list approvals
        return list(map(str, opened.ask("GET", f"/v1/runs/{run}")["waiting"]))
    return [each.id for each in opened.approvals.find(run_id=run, states=("pending",))]


@app.command("resolve")
def resolve_call(
    run: RunArgument,
    seq: Annotated[int, typer.Argument(metavar="SEQ", help="Number of the call whose outcome is unknown.")],
    store: PlaceOption = None,
    server: ServerOption = None,
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
    from bascule.cli.decider import secrets_of
    from bascule.cli.remote import RemoteStore

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
    opened = open_place(store, server)
    try:
        if isinstance(opened, RemoteStore):
            first = _resolve_there(opened, run, seq, answer)
        else:
            first = resolve(opened, run, seq, answer, redactor=secrets_of(opened.started(run)))
    finally:
        opened.close()
    if not first:
        print(f"bascule: call {seq} of {run} was answered before", file=sys.stderr)
        raise typer.Exit(Exit.FAILED)


def _resolve_there(remote: RemoteStore, run: str, seq: int, answer: Answer) -> bool:
    """Answer about the start of a call that the console shows as unknown now."""
    from bascule.bridge.errors import ResumeError

    for each in remote.ask("GET", "/v1/unknown")["unknown"]:
        if (each["run_id"], each["seq"]) == (run, seq):
            value = None if answer.value is None else json.loads(answer.value)
            body = {"answer": answer.kind, "attempt": each["attempt"], "value": value}
            return bool(remote.ask("POST", f"/v1/runs/{run}/calls/{seq}/outcome", body)["done"])
    raise ResumeError("nothing_unknown", f"nothing is unknown about call {seq} of {run}")
