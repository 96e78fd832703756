"""Artifacts of `SqliteStore`, in a table that older versions of bascule do not know and do not mind."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from bascule.bridge.artifacts import Artifact, check_quotas

ARTIFACT_TABLE: Final = """
CREATE TABLE IF NOT EXISTS artifacts (
    handle TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    run_id TEXT NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
)
"""
"""Made by every writer that opens the file; it came after version 1 of the schema and changes none of it."""


class SqliteAccess(Protocol):
    """How a table reads and writes its file."""

    def read(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        ...

    def write(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Make a durable transaction."""
        ...


class SqliteArtifacts:
    """See `bascule.bridge.artifacts.ArtifactTable`."""

    def __init__(self, store: SqliteAccess) -> None:
        self._store = store

    def put(self, artifact: Artifact) -> None:
        """See `ArtifactTable.put`."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM artifacts WHERE expires_at <= ?", (time.time(),))
            known = connection.execute("SELECT 1 FROM artifacts WHERE handle = ?", (artifact.handle,))
            if known.fetchone() is not None:
                return
            check_quotas(
                artifact,
                connection.execute("SELECT run_id, size FROM artifacts WHERE owner = ?", (artifact.owner,)),
            )
            connection.execute(
                "INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    artifact.handle,
                    artifact.owner,
                    artifact.run_id,
                    artifact.created_at,
                    artifact.expires_at,
                    len(artifact.data),
                    artifact.data,
                ),
            )

        self._store.write(work)

    def get(self, handle: str, *, owner: str) -> Artifact | None:
        """See `ArtifactTable.get`."""
        rows = self._store.read(
            "SELECT handle, owner, run_id, created_at, expires_at, data FROM artifacts"
            " WHERE handle = ? AND owner = ? AND expires_at > ?",
            *(handle, owner, time.time()),
        )
        if not rows:
            return None
        names = ("handle", "owner", "run_id", "created_at", "expires_at", "data")
        return Artifact(**dict(zip(names, rows[0], strict=True)))
