"""``bascule approvals watch``: a live inbox in the terminal, of a store or of a console elsewhere.

Only looks: what it prints is what `bascule approvals show` and the deciding commands are then given. On a
terminal the list is drawn anew in place; into a pipe every change is one line.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bascule.cli.store_option import PlaceOption, ServerOption, open_place

if TYPE_CHECKING:
    from rich.table import Table

    from bascule.bridge.approvals_table import ApprovalRecord
    from bascule.bridge.sqlite_store import SqliteStore
    from bascule.cli.remote import RemoteStore

MAX_ROWS: Final = 40


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("watch")(watch)


def watch(
    store: PlaceOption = None,
    server: ServerOption = None,
    every: Annotated[float, typer.Option("--every", min=0.2, max=60, help="Seconds between looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
) -> None:
    """Show what waits, soonest to expire first, until Ctrl-C."""
    opened = open_place(store, server)
    try:
        if sys.stdout.isatty() and not once:
            _draw(opened, every)
        else:
            _tell(opened, every, once=once)
    except KeyboardInterrupt:
        return
    finally:
        opened.close()


def _look(opened: SqliteStore | RemoteStore) -> list[ApprovalRecord]:
    found = opened.approvals.find(states=("pending",), limit=1000)
    return sorted(found, key=lambda each: (each.expires_at or float("inf"), each.created_at, each.seq))


def _draw(opened: SqliteStore | RemoteStore, every_s: float) -> None:
    from rich.live import Live

    with Live(_table(_look(opened)), screen=True, auto_refresh=False) as live:
        while True:
            live.update(_table(_look(opened)), refresh=True)
            time.sleep(every_s)


def _table(records: list[ApprovalRecord]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from bascule.bridge.approval_card import read_card
    from bascule.bridge.display import show, show_json

    more = f", {len(records) - MAX_ROWS} more below" if len(records) > MAX_ROWS else ""
    title = f"{len(records)} waiting{more}   (Ctrl-C ends; decide with bascule approvals show ID)"
    table = Table(title=title, title_justify="left", expand=True)
    for column in ("approval", "expires", "for", "tool", "arguments"):
        table.add_column(column, no_wrap=column != "arguments", overflow="fold")
    for record in records[:MAX_ROWS]:
        card = read_card(record)
        table.add_row(
            record.id,
            _left(record),
            Text(show(card.requester or "-", max_chars=30)),
            Text(show(card.tool, max_chars=40)),
            Text(show_json(card.arguments.encode(), max_chars=160)),
        )
    return table


def _tell(opened: SqliteStore | RemoteStore, every_s: float, *, once: bool) -> None:
    known: set[str] = set()
    while True:
        records = {record.id: record for record in _look(opened)}
        for record in records.values():
            if record.id not in known:
                print(_line(record), flush=True)
        for gone in sorted(known - records.keys()):
            print(f"{gone}  no longer waits", flush=True)
        known = set(records)
        if once:
            return
        time.sleep(every_s)


def _line(record: ApprovalRecord) -> str:
    from bascule.bridge.approval_card import read_card
    from bascule.bridge.display import show, show_json

    card = read_card(record)
    return (
        f"{record.id}  waits  {_left(record):<14}  {show(card.requester or '-', max_chars=30)}"
        f"  {show(card.tool, max_chars=60)}  {show_json(card.arguments.encode(), max_chars=160)}"
    )


def _left(record: ApprovalRecord) -> str:
    if record.expires_at is None:
        return "never expires"
    seconds = max(0, round(record.expires_at - time.time()))
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s"
