"""``bascule approvals``: what waits for people in a store, and their decisions.

The decider is the login name of whoever runs the command, with the groups of the operating system and those
of rule files: the given ones, else those the run was begun with. With ``--server`` it is whoever the token
is of. Everything is shown through the same cards as everywhere.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from bascule.cli import watch
from bascule.cli.exits import Exit
from bascule.cli.store_option import PlaceOption, ServerOption, open_place

if TYPE_CHECKING:
    from bascule.bridge.approval import ApprovalRequest
    from bascule.bridge.approvals_table import ApprovalRecord
    from bascule.bridge.sqlite_store import SqliteStore
    from bascule.cli.next_steps import NextSteps
    from bascule.cli.remote import RemoteStore

app: Final = typer.Typer(help="List, show and decide what waits for approval.", no_args_is_help=True)
watch.register(app)

Grant = Literal["once", "args_in_run", "tool_in_run", "script"]

_Id = Annotated[
    str, typer.Argument(metavar="APPROVAL", help="Id of the approval, or enough of its beginning.")
]
_Digest = Annotated[
    str,
    typer.Option("--digest", help="Beginning (16 characters or more) of the digest that was shown."),
]
_Reason = Annotated[str, typer.Option("--reason", help="For the script when rejected, for the record.")]
_Policy = Annotated[
    list[Path] | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="YAML rule file with groups. Repeatable. Default: those of the run.",
        dir_okay=False,
    ),
]


@app.command("list")
def list_approvals(
    store: PlaceOption = None,
    server: ServerOption = None,
    all_: Annotated[bool, typer.Option("--all", help="Also those that are decided.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List approvals, the oldest first; those of one batch follow each other."""
    from bascule.bridge.display import show, show_json
    from bascule.bridge.requests import describe_record

    opened = open_place(store, server)
    states = () if all_ else ("pending",)
    records = sorted(opened.approvals.find(states=states), key=lambda each: (each.batch or each.id, each.seq))
    for record in records:
        request = describe_record(record)
        if json_:
            print(json.dumps({"id": record.id, "state": record.state, **_plain(request)}))
            continue
        age_s = max(0.0, time.time() - record.created_at)
        print(
            f"{record.id}  {record.state:<11} {age_s:>7.0f} s  {record.run_id} call {record.seq}"
            f"  {show(request.tool, max_chars=60)}  {show_json(request.spelled, max_chars=100)}"
        )
    opened.close()


@app.command("show")
def show_approval(
    approval: _Id,
    store: PlaceOption = None,
    server: ServerOption = None,
    json_: Annotated[bool, typer.Option("--json", help="This approval as one JSON object.")] = False,
) -> None:
    """Show one card, with the whole batch it belongs to, and the digest a decision needs."""
    from bascule.bridge.approval_card import ApprovalState
    from bascule.bridge.cards import describe_batch, describe_request
    from bascule.bridge.requests import describe_record
    from bascule.cli.next_steps import NextSteps

    opened = open_place(store, server)
    record = _find(opened, approval)
    if json_:
        print(json.dumps({"id": record.id, "state": record.state, **_plain(describe_record(record))}))
        opened.close()
        return
    others = [
        describe_record(each)
        for each in opened.approvals.find(run_id=record.run_id, states=("pending",))
        if record.batch and each.batch == record.batch
    ]
    if len(others) > 1:
        print(describe_batch(others), end="")
    else:
        print(describe_request(describe_record(record)), end="")
    print(f"  {'state':<10} {record.state}")
    print(f"  {'may':<10} {', '.join(describe_record(record).may)}")
    opened.close()
    if record.state == ApprovalState.PENDING:
        _print_decisions(
            others if len(others) > 1 else [describe_record(record)], NextSteps(store=store, server=server)
        )


def _print_decisions(requests: Sequence[ApprovalRequest], steps: NextSteps) -> None:
    """Print the commands that decide; what they need beside the digest is left to be filled in."""
    more = {"reject": ("--reason", "WHY"), "edit": ("--set", "PATH=JSON"), "respond": ("--result", "JSON")}
    print("\ndecide")
    for request in requests:
        for verdict in request.may:
            print(f"  {steps.decide(verdict, request.id, request.digest, *more.get(verdict, ()))}")


@app.command("approve")
def approve(
    approval: _Id,
    digest: _Digest,
    store: PlaceOption = None,
    server: ServerOption = None,
    reason: _Reason = "",
    grant: Annotated[Grant, typer.Option("--grant", help="How far it reaches beyond this call.")] = "once",
    count: Annotated[int, typer.Option("--count", min=1, help="Further calls a grant is good for.")] = 25,
    policy: _Policy = None,
) -> None:
    """Let the call through, exactly as shown."""
    _decide(
        (store, server),
        approval,
        digest,
        policy,
        verdict="approve",
        reason=reason,
        grant=grant,
        grant_count=count,
    )


@app.command("reject")
def reject(
    approval: _Id,
    digest: _Digest,
    store: PlaceOption = None,
    server: ServerOption = None,
    reason: _Reason = "",
    policy: _Policy = None,
) -> None:
    """Refuse the call; the script is told the reason and not to repeat it."""
    _decide((store, server), approval, digest, policy, verdict="reject", reason=reason)


@app.command("edit")
def edit(
    approval: _Id,
    digest: _Digest,
    change: Annotated[list[str], typer.Option("--set", metavar="PATH=JSON", help="Repeatable.")],
    store: PlaceOption = None,
    server: ServerOption = None,
    reason: _Reason = "",
    policy: _Policy = None,
) -> None:
    """Let the call through with other arguments."""
    from bascule.bridge.requests import describe_record
    from bascule.bridge.terminal import edit_arguments

    opened = open_place(store, server)
    arguments = describe_record(_find(opened, approval)).arguments
    opened.close()
    try:
        for each in change:
            arguments = json.dumps(edit_arguments(arguments, each)).encode()
    except ValueError as error:
        print(f"bascule: {error}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from error
    _decide(
        (store, server),
        approval,
        digest,
        policy,
        verdict="edit",
        reason=reason,
        arguments=json.loads(arguments),
    )


@app.command("respond")
def respond(
    approval: _Id,
    digest: _Digest,
    result: Annotated[str, typer.Option("--result", metavar="JSON", help="What the tool would return.")],
    store: PlaceOption = None,
    server: ServerOption = None,
    reason: _Reason = "",
    policy: _Policy = None,
) -> None:
    """Answer in the tool's place; the tool is not started."""
    try:
        response: Any = json.loads(result)
    except ValueError as error:
        print(f"bascule: --result is no JSON: {error}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from error
    _decide((store, server), approval, digest, policy, verdict="respond", reason=reason, response=response)


@app.command("terminate")
def terminate(
    approval: _Id,
    digest: _Digest,
    store: PlaceOption = None,
    server: ServerOption = None,
    reason: _Reason = "",
    policy: _Policy = None,
) -> None:
    """Refuse the call and end its run."""
    _decide((store, server), approval, digest, policy, verdict="terminate", reason=reason)


def _decide(
    place: tuple[Path | None, str | None],
    approval: str,
    digest: str,
    policy: list[Path] | None,
    **answer: Any,
) -> None:
    from bascule.bridge.approval import Decision
    from bascule.bridge.approval_card import read_card
    from bascule.bridge.decide import decide, describe_missing
    from bascule.bridge.display import show
    from bascule.bridge.errors import DecisionRefused
    from bascule.cli.decider import secrets_of, sign
    from bascule.cli.next_steps import NextSteps
    from bascule.cli.remote import RemoteStore

    if len(digest) < 16:
        print("bascule: give at least 16 characters of the digest that was shown", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    store, server = place
    opened = open_place(store, server)
    try:
        record = _find(opened, approval)
        if not record.digest.startswith(digest):
            raise DecisionRefused(
                "digest_mismatch", "this is not what the approval is about now; show it again, then decide"
            )
        if isinstance(opened, RemoteStore):
            after = opened.decide(record, answer)  # who decides, the token says
            run, begun = None, None  # it goes on by itself
        else:
            run, begun = opened.run(record.run_id), opened.started(record.run_id)
            decision = sign(Decision(**answer), policy, begun)
            after = decide(
                opened.approvals,
                record.id,
                decision,
                digest=record.digest,
                channel="command line",
                redactor=secrets_of(begun),
            )
    finally:
        opened.close()
    print(f"{after.id} {after.state}")
    if missing := describe_missing(read_card(after)):
        print(f"bascule: counted; also needed: {show('; '.join(missing), max_chars=500)}", file=sys.stderr)
    if run is not None and run.status == "suspended" and after.state != record.state:
        command = None if begun is None else begun.command
        print(f"next: {NextSteps(store=store).resume(record.run_id, command)}", file=sys.stderr)


def _find(store: SqliteStore | RemoteStore, approval: str) -> ApprovalRecord:
    found = store.approvals.get(approval)
    if found is not None:
        return found
    matching = [
        each for each in store.approvals.find() if len(approval) >= 8 and each.id.startswith(approval)
    ]
    if len(matching) != 1:
        store.close()
        problem = "several approvals begin" if matching else "no approval begins"
        print(f"bascule: {problem} with {approval!r}", file=sys.stderr)
        raise typer.Exit(Exit.FAILED)
    return matching[0]


def _plain(request: ApprovalRequest) -> dict[str, Any]:
    return {
        "run_id": request.run_id,
        "seq": request.seq,
        "tool": request.tool,
        "effects": request.effects,
        "arguments": json.loads(request.arguments),
        "digest": request.digest,
        "rules": list(request.why),
        "requester": request.requester,
        "expires_at": request.expires_at,
        "may": list(request.may),
        "editable": list(request.editable),
        "grantable": list(request.grantable),
        "approvers": list(request.approvers),
        "decided": list(request.decided),
        "evidence": list(request.evidence),
        "duplicate": request.duplicate,
        "batch": request.batch,
        "line": request.line,
    }
