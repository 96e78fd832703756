"""The tables of the SQLite store, and what a file must be before it is used.

Facts of events and audit entries can only be added; triggers refuse everything else. Only payloads may go,
for retention, and they go to NULL.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from bascule.bridge.errors import StoreError
from bascule.bridge.sqlite_artifacts import ARTIFACT_TABLE
from bascule.bridge.sqlite_rates import RATE_TABLE

SCHEMA_VERSION: Final = 1
"""Version of the tables; a file with a newer one is refused."""

APPLICATION_ID: Final = 0x62617363
"""``basc``, in the header of the file."""

TABLES: Final = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    user TEXT,
    image TEXT NOT NULL,
    script_sha256 TEXT NOT NULL,
    outcome TEXT,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    lease_until REAL NOT NULL,
    wake_at REAL,
    reason TEXT NOT NULL,
    waits TEXT NOT NULL,
    session TEXT,
    ordinal INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    events INTEGER NOT NULL,
    hash TEXT NOT NULL
);
CREATE INDEX runs_by_status ON runs (status) WHERE status != 'finished';
CREATE INDEX runs_by_session ON runs (session, ordinal) WHERE session IS NOT NULL;
CREATE TABLE events (
    run INTEGER NOT NULL REFERENCES runs (id),
    idx INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    facts BLOB NOT NULL,
    payload BLOB,
    hash TEXT NOT NULL,
    PRIMARY KEY (run, idx)
) WITHOUT ROWID;
CREATE TABLE blobs (
    run INTEGER NOT NULL REFERENCES runs (id),
    sha256 TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (run, sha256)
);
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    state TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    batch TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    expires_at REAL,
    body BLOB NOT NULL
);
CREATE INDEX approvals_by_run ON approvals (run_id, seq);
CREATE INDEX approvals_by_state ON approvals (state, created_at);
CREATE TABLE counters (key TEXT PRIMARY KEY, amount REAL NOT NULL, expires_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE answers (
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    kind TEXT NOT NULL,
    value BLOB,
    by TEXT NOT NULL,
    PRIMARY KEY (run_id, seq, attempt)
) WITHOUT ROWID;
CREATE TABLE audit (
    idx INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    action TEXT NOT NULL,
    run_id TEXT,
    facts BLOB NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE TRIGGER events_keep BEFORE UPDATE OF run, idx, kind, at, facts, hash ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_payload BEFORE UPDATE OF payload ON events WHEN NEW.payload IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_stay BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER audit_keep BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
CREATE TRIGGER audit_stay BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
"""


def open_file(path: Path) -> sqlite3.Connection:
    """Open the store's file for writing, created with rights for its owner only, and make its tables.

    Raises:
        StoreError: it cannot be used; the message says why.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        if os.stat(path).st_mode & 0o077:
            os.chmod(path, 0o600)
    except OSError as error:
        raise unavailable(path, error) from error
    connection: sqlite3.Connection | None = None
    try:
        connection = connect(path)
        _prepare(connection, path)
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.OperationalError):
            raise unavailable(path, error) from error
        raise StoreError("store_invalid", f"{path} is not a store of ours: {error}") from error
    except StoreError:
        assert connection is not None
        connection.close()
        raise
    return connection


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection in autocommit mode that any thread may use, one at a time."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def unavailable(path: Path, error: Exception) -> StoreError:
    """Return the error for a store that cannot be read or written now."""
    return StoreError(
        "store_unavailable",
        f"the store {path} cannot be used: {error}; nothing was started. Make room or rights, then resume",
    )


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":
        raise StoreError(
            "store_invalid", f"{path} is on a file system without shared memory; choose a local disk"
        )
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if version > SCHEMA_VERSION and application == APPLICATION_ID:
            raise StoreError(
                "store_newer",
                f"{path} was written by a newer version of bascule (schema {version}, this one knows"
                f" {SCHEMA_VERSION}); upgrade bascule",
            )
        if version == 0:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                raise StoreError("store_invalid", f"{path} is a database, but not a store of ours")
            for statement in _statements(TABLES):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        elif application != APPLICATION_ID:
            raise StoreError("store_invalid", f"{path} is a database, but not a store of ours")
        connection.execute(ARTIFACT_TABLE)
        connection.execute(RATE_TABLE)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _statements(script: str) -> list[str]:
    """Cut at the semicolons that end statements (triggers hold some of their own)."""
    found: list[str] = []
    rest = ""
    for line in script.splitlines(keepends=True):
        rest += line
        if sqlite3.complete_statement(rest):
            found.append(rest)
            rest = ""
    return found
