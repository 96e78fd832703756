"""One SQLite file that several processes use: one writer, and a reader that never waits for it."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from bascule.bridge.sqlite_schema import connect, unavailable
from bascule.bridge.sqlite_writer import SqliteWriter
from bascule.bridge.store import POLL_S
from bascule.bridge.waiters import Waiters

T = TypeVar("T")


class SqliteFile:
    """Reads and writes one file.

    Args:
        path: the file; created, readable for its owner only, when it is missing.

    Raises:
        StoreError: the file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.writer = SqliteWriter(self.path)
        self._reader = connect(self.path)
        self._reader.execute("PRAGMA query_only=ON")
        self._reading = threading.Lock()
        self._waiters = Waiters()
        self._closed = False

    def tell(self) -> None:
        """Wake whoever waits for a change."""
        self._waiters.wake()

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Make a durable transaction on this thread."""
        return self.writer.run_now(work, True)

    def read(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query.

        Raises:
            StoreError: the store cannot be read.
        """
        try:
            with self._reading:
                return self._reader.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise unavailable(self.path, error) from error

    async def changed(self, timeout_s: float) -> None:
        """See `Store.changed`; other processes are noticed within `POLL_S`."""
        until = time.monotonic() + timeout_s
        seen = self._data_version()
        while (left := until - time.monotonic()) > 0:
            if await self._waiters.wait(min(POLL_S, left)) or self._data_version() != seen:
                return

    def close(self) -> None:
        """See `Store.close`."""
        if self._closed:
            return
        self._closed = True
        with self._reading:
            self._reader.close()
        self.writer.close()

    def _data_version(self) -> int:
        return int(self.read("PRAGMA data_version")[0][0])
