"""The console's own tables: tokens, browser sessions, keys of submissions, and the outbox of notifications.

They are kept in a SQLite file beside the store, so that any store will do. Nothing here is needed to decide
about an approval: when this file is lost, people log in with a new token and notifications are sent anew.
Secrets are kept as SHA-256; they are random and long, so a slow hash would add nothing.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bascule.bridge.errors import StoreError

SCHEMA_VERSION: Final = 1

_TABLES: Final = """
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, name TEXT NOT NULL, groups TEXT NOT NULL,
    scope TEXT NOT NULL, created_at REAL NOT NULL, expires_at REAL, revoked_at REAL
);
CREATE TABLE sessions (
    hash TEXT PRIMARY KEY, token_id TEXT NOT NULL, created_at REAL NOT NULL, expires_at REAL NOT NULL
);
CREATE TABLE submissions (
    name TEXT NOT NULL, key TEXT NOT NULL, run_id TEXT NOT NULL, body_sha256 TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (name, key)
) WITHOUT ROWID;
CREATE TABLE outbox (
    id TEXT PRIMARY KEY, target TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, body BLOB NOT NULL,
    created_at REAL NOT NULL, attempts INTEGER NOT NULL, next_at REAL NOT NULL, sent_at REAL,
    failed TEXT NOT NULL, UNIQUE (target, kind, subject)
);
CREATE INDEX outbox_due ON outbox (next_at) WHERE sent_at IS NULL;
"""


def database_file(store: Path) -> Path:
    """Return the file of the console that belongs to a store."""
    return store.with_name(store.name + ".console")


class Database:
    """The file. Calls block shortly; any thread may make them.

    Args:
        path: of the file, created readable for its owner only.

    Raises:
        StoreError: it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=10.0
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise StoreError("store_unavailable", f"{path} cannot be used: {error}") from error

    @classmethod
    def beside(cls, store: Path) -> Database:
        """Open the file of the console that belongs to a store."""
        return cls(database_file(store))

    def read(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._used() as connection:
            return connection.execute(statement, values).fetchall()

    def write(self, statement: str, *values: object) -> int:
        """Make one change, and return how many rows it touched."""
        with self._used() as connection:
            return connection.execute(statement, values).rowcount

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _used(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise StoreError("store_unavailable", f"{self.path} cannot be used: {error}") from error

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA_VERSION:
                raise StoreError(
                    "store_newer", f"{self.path} was written by a newer version of bascule; upgrade bascule"
                )
            if version == 0:
                for statement in _TABLES.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
