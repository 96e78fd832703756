"""``bascule audit``: verify and export the audit table of a store, and sign checkpoints of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from bascule.cli.exits import Exit
from bascule.cli.store_option import open_store

app: Final = typer.Typer(help="Verify, export and sign the audit table.", no_args_is_help=True)

_Store = Annotated[
    Path, typer.Option("--store", envvar="BASCULE_STORE", help="File of the store.", dir_okay=False)
]
_Checkpoints = Annotated[
    Path | None,
    typer.Option("--checkpoints", help="File of signed checkpoints; keep it elsewhere.", dir_okay=False),
]


@app.command("verify")
def verify_audit(store: _Store, checkpoints: _Checkpoints = None) -> None:
    """Find changes, gaps and, with checkpoints, a cut-off end."""
    from bascule.bridge.audit_check import read_checkpoints, verify

    opened = open_store(store)
    try:
        signed = [] if checkpoints is None else read_checkpoints(checkpoints)
        problems = verify(opened.audit_entries(), signed, opened.key)
    except (OSError, ValueError) as error:
        why = f"{checkpoints}: {error.strerror}" if isinstance(error, OSError) else error
        print(f"bascule: the checkpoints cannot be read: {why}", file=sys.stderr)
        raise typer.Exit(Exit.NO_INPUT) from error
    finally:
        opened.close()
    for problem in problems:
        print(f"bascule: {problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(Exit.FAILED)
    print(f"the audit table holds{'' if signed else ' (without checkpoints a cut-off end cannot be seen)'}")


@app.command("export")
def export_audit(
    store: _Store, after: Annotated[int, typer.Option("--after", help="Only later entries.")] = -1
) -> None:
    """Print the audit table as JSON lines."""
    from bascule.bridge.audit_check import export_entry

    opened = open_store(store)
    try:
        for entry in opened.audit_entries(after=after):
            sys.stdout.write(export_entry(entry).decode())
    finally:
        opened.close()


@app.command("checkpoint")
def sign_checkpoint(
    store: _Store,
    checkpoints: Annotated[Path, typer.Option("--checkpoints", help="File to add to.", dir_okay=False)],
) -> None:
    """Sign the last entry and add the signature to a file."""
    from bascule.bridge.audit_check import append_checkpoint, sign

    opened = open_store(store)
    try:
        last = opened.last_audit()
        if last is None:
            print("bascule: the audit table is empty", file=sys.stderr)
            raise typer.Exit(Exit.FAILED)
        append_checkpoint(sign(last, opened.key), checkpoints)
    finally:
        opened.close()
    print(f"entry {last.index} signed")
