"""The options of commands that look into a store, and how it is opened."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bascule.cli.exits import Exit

if TYPE_CHECKING:
    from bascule.bridge.sqlite_store import SqliteStore

StoreOption = Annotated[
    Path, typer.Option("--store", envvar="BASCULE_STORE", help="File of the store.", dir_okay=False)
]
RunArgument = Annotated[str, typer.Argument(help="Id of the run.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="As JSON.")]


def open_store(path: Path) -> SqliteStore:
    """Open a store that is there.

    Raises:
        typer.Exit: it is not.
    """
    from bascule.bridge.sqlite_store import SqliteStore

    if not path.exists():
        print(f"bascule: there is no store {path}", file=sys.stderr)
        raise typer.Exit(Exit.CONFIGURATION)
    return SqliteStore(path)
