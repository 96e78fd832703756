"""The counters of budgets and grants in `SqliteStore`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from bascule.bridge.approvals_table import Reservation, ReservationRefused


def reserve_all(connection: sqlite3.Connection, reservations: Sequence[Reservation]) -> None:
    """Raise counters, within a transaction.

    Raises:
        ReservationRefused: one would pass its maximum; the transaction must be rolled back.
    """
    now = time.time()
    for each in reservations:
        row = connection.execute(
            "SELECT amount FROM counters WHERE key = ? AND expires_at > ?", (each.key, now)
        ).fetchone()
        used: float = 0.0 if row is None else row[0]
        if each.amount > 0 and used + each.amount > each.maximum:
            raise ReservationRefused(each.key, used)
        connection.execute(
            "INSERT OR REPLACE INTO counters VALUES (?, ?, ?)",
            (each.key, used + each.amount, each.expires_at),
        )
