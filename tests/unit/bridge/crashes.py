"""What a store holds while a tool runs: the state that a host which dies there leaves behind."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from bascule.bridge.sqlite_store import SqliteStore


def keep_as_it_is(store: SqliteStore, file: Path) -> None:
    """Copy a store's file as it stands, its runs without a living owner."""
    source, copy = sqlite3.connect(store.path), sqlite3.connect(file)
    source.backup(copy)
    copy.execute("UPDATE runs SET owner = '', lease_until = 0")
    copy.commit()
    copy.close()
    source.close()
