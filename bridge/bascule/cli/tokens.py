"""``bascule tokens``: who may come to the console and its API. Works beside a running server."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Optional

import typer

from bascule.cli.exits import Exit

if TYPE_CHECKING:
    from bascule.console.database import Database

app: Final = typer.Typer(help="Create, list and revoke tokens of the console.", no_args_is_help=True)

Scope = Literal["run", "view", "approve", "admin"]

_Store = Annotated[
    Path, typer.Option("--store", envvar="BASCULE_STORE", help="File of the store.", dir_okay=False)
]


@app.command("create")
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Of whoever will hold it, as policy names people.")
    ],
    store: _Store,
    scope: Annotated[
        Scope,
        typer.Option(
            "--scope",
            help="run submits scripts and nothing else; view looks; approve decides; admin all but run.",
        ),
    ],
    group: Annotated[
        Optional[list[str]],  # noqa: UP045  # read by typer at run time
        typer.Option("--group", metavar="NAME", help="A group of theirs. Repeatable."),
    ] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=3660, help="How long it is valid.")] = 90,
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Create a token and print it; it is shown only now."""
    from bascule.console.tokens import Tokens

    database = _open(store)
    try:
        secret, token = Tokens(database).create(
            name, scope, groups=frozenset(group or ()), lasts_s=days * 86_400.0
        )
    except ValueError as error:
        print(f"bascule: {error}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from error
    finally:
        database.close()
    if json_:
        print(json.dumps({"id": token.id, "token": secret, "expires_at": token.expires_at}))
    else:
        print(secret)
        print(f"bascule: {token.id}, {scope} of {name}, {days} days; shown only now", file=sys.stderr)


@app.command("list")
def list_tokens(
    store: _Store, json_: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False
) -> None:
    """List tokens, without their secrets."""
    from bascule.bridge.display import show
    from bascule.console.tokens import Tokens

    database = _open_used(store)
    now = time.time()
    for token in Tokens(database).all():
        state = "valid" if token.is_valid(now) else "revoked" if token.revoked_at is not None else "expired"
        if json_:
            row = {
                "id": token.id, "name": token.name, "groups": sorted(token.groups), "scope": token.scope,
                "state": state, "created_at": token.created_at, "expires_at": token.expires_at,
            }  # fmt: skip
            print(json.dumps(row))
            continue
        until = (
            "never" if token.expires_at is None else time.strftime("%Y-%m-%d", time.gmtime(token.expires_at))
        )
        groups = ", ".join(sorted(token.groups)) or "-"
        print(f"{token.id}  {token.scope:<8} {state:<8} until {until:<11} {show(token.name)}  {show(groups)}")
    database.close()


@app.command("revoke")
def revoke(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="Id of the token.")], store: _Store
) -> None:
    """Revoke a token, and end the browser sessions made with it."""
    from bascule.console.tokens import Tokens

    database = _open_used(store)
    done = Tokens(database).revoke(token)
    database.close()
    if not done:
        print(f"bascule: there is no valid token {token}", file=sys.stderr)
        raise typer.Exit(Exit.FAILED)
    print(f"{token} revoked")


def _open_used(store: Path) -> Database:
    """Open what is there; a mistyped name is no store without tokens."""
    from bascule.console.database import database_file

    if not database_file(store).exists():
        print(f"bascule: there is no store {store} with tokens", file=sys.stderr)
        raise typer.Exit(Exit.CONFIGURATION)
    return _open(store)


def _open(store: Path) -> Database:
    from bascule.console.database import Database

    if not store.parent.is_dir():
        print(f"bascule: there is no folder {store.parent}", file=sys.stderr)
        raise typer.Exit(Exit.CONFIGURATION)
    return Database.beside(store)
