"""``bascule approvals watch``: a live inbox in the terminal, of a store or of a console elsewhere.

Only looks: what it prints is what `bascule approvals show` and the deciding commands are then given. On a
terminal the list is drawn anew in place; into a pipe every change is one line. A store is looked at again and
again; a console tells of changes over a stream, which is opened again after the last one when it is lost.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
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
    every: Annotated[
        float, typer.Option("--every", min=0.2, max=60, help="Seconds between looks at a store.")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
) -> None:
    """Show what waits, soonest to expire first, until Ctrl-C."""
    opened = open_place(store, server)
    try:
        if sys.stdout.isatty() and not once:
            _draw(opened, _moments(opened, every))
        elif once:
            _tell(_look(opened), set())
        else:
            known: set[str] = set()
            for _ in _moments(opened, every):
                known = _tell(_look_again(opened), known)
    except KeyboardInterrupt:
        return
    finally:
        opened.close()


def _look(opened: SqliteStore | RemoteStore) -> list[ApprovalRecord]:
    found = opened.approvals.find(states=("pending",), limit=1000)
    return sorted(found, key=lambda each: (each.expires_at or float("inf"), each.created_at, each.seq))


def _look_again(opened: SqliteStore | RemoteStore) -> list[ApprovalRecord] | None:
    """Look once more; None when a console is away just now, which its stream waits for."""
    from bascule.cli.remote import RemoteError

    try:
        return _look(opened)
    except RemoteError as error:
        if error.code != "unreachable":
            raise
        return None


def _moments(opened: SqliteStore | RemoteStore, every_s: float) -> Iterator[object]:
    """Give something whenever it is time to look."""
    from bascule.cli.remote import RemoteStore

    if isinstance(opened, RemoteStore):
        yield from opened.follow("/v1/approvals/events")
    while True:
        yield None
        time.sleep(every_s)


def _draw(opened: SqliteStore | RemoteStore, moments: Iterable[object]) -> None:
    from rich.live import Live

    with Live(_table(_look(opened)), screen=True, auto_refresh=False) as live:
        for _ in moments:
            records = _look_again(opened)
            if records is not None:
                live.update(_table(records), refresh=True)


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


def _tell(records: list[ApprovalRecord] | None, known: set[str]) -> set[str]:
    """Print what is new and what is gone since ``known``, and return what is known now."""
    if records is None:
        return known
    for record in records:
        if record.id not in known:
            print(_line(record), flush=True)
    now = {record.id for record in records}
    for gone in sorted(known - now):
        print(f"{gone}  no longer waits", flush=True)
    return now


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
