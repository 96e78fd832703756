"""The options of commands that look into a store, and how it is opened."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from bascule.cli.exits import Exit

if TYPE_CHECKING:
    from bascule.bridge.sqlite_store import SqliteStore
    from bascule.cli.remote import RemoteStore


def _give_way(context: typer.Context, value: Optional[str]) -> Optional[str]:  # noqa: UP045  # read by typer
    """Return the server; None when only the environment names it and the command line names a store."""
    sources = [context.get_parameter_source(name) for name in ("store", "server")]
    store, server = ("" if source is None else source.name for source in sources)
    if value is None or store != "COMMANDLINE":
        return value
    if server == "COMMANDLINE":
        raise typer.BadParameter("say --store FILE or --server URL, not both")
    return None


StoreOption = Annotated[
    Path, typer.Option("--store", envvar="BASCULE_STORE", help="File of the store.", dir_okay=False)
]
PlaceOption = Annotated[
    Optional[Path],  # noqa: UP045  # read by typer at run time
    typer.Option("--store", envvar="BASCULE_STORE", help="File of the store.", dir_okay=False),
]
ServerOption = Annotated[
    Optional[str],  # noqa: UP045  # as above
    typer.Option(
        "--server",
        envvar="BASCULE_SERVER",
        metavar="URL",
        callback=_give_way,
        help="Address of a console in place of a store; its token in BASCULE_TOKEN.",
    ),
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run.")]
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


def make_store(path: Path) -> SqliteStore:
    """Open a store, made when missing.

    Raises:
        typer.Exit: its folder is not there.
    """
    from bascule.bridge.sqlite_store import SqliteStore

    if not path.parent.is_dir():
        print(f"bascule: --store: there is no folder {path.parent}", file=sys.stderr)
        raise typer.Exit(Exit.CONFIGURATION)
    return SqliteStore(path)


def open_place(store: Path | None, server: str | None) -> SqliteStore | RemoteStore:
    """Open a store that is there, or a console elsewhere.

    Raises:
        typer.Exit: neither is given, or what is given cannot be used.
    """
    if server is not None:
        from bascule.cli.remote import RemoteStore

        return RemoteStore(server)
    if store is None:
        print("bascule: say --store FILE or --server URL", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    return open_store(store)
