"""Starts of rate-limited tools in `SqliteStore`, in a table that older versions of bascule do not mind."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from bascule.bridge.rates import Rate, RateFull

if TYPE_CHECKING:
    from bascule.bridge.sqlite_store import SqliteStore

RATE_TABLE: Final = """
CREATE TABLE IF NOT EXISTS starts (
    tool TEXT NOT NULL,
    number INTEGER NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (tool, number)
) WITHOUT ROWID
"""
"""Made by every writer that opens the file; it came after version 1 of the schema and changes none of it."""


class SqliteRates:
    """See `bascule.bridge.rates.RateTable`."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def take(self, rates: Sequence[Rate]) -> None:
        """See `RateTable.take`; a transaction of its own."""
        self._store.write(lambda connection: take_places(connection, rates))


def take_places(connection: sqlite3.Connection, rates: Sequence[Rate]) -> None:
    """Take a place under each rate, within a transaction.

    Numbers rise, so that the start which must be over is found by one look, however many a rate allows.

    Raises:
        RateFull: one has none now; the transaction must be rolled back.
    """
    now = time.time()
    for rate in rates:
        (last,) = connection.execute("SELECT max(number) FROM starts WHERE tool = ?", (rate.key,)).fetchone()
        number = 1 if last is None else last + 1
        oldest = connection.execute(
            "SELECT at FROM starts WHERE tool = ? AND number = ?", (rate.key, number - rate.amount)
        ).fetchone()
        left_s = rate.left_s(None if oldest is None else oldest[0], now)
        if left_s > 0:
            raise RateFull(rate, left_s)
        connection.execute("INSERT INTO starts VALUES (?, ?, ?)", (rate.key, number, now))
        connection.execute(
            "DELETE FROM starts WHERE tool = ? AND number <= ?", (rate.key, number - rate.amount)
        )
