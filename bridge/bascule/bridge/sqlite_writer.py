"""The one writer of a SQLite store: a connection, a thread, and transactions that check the lease's epoch.

A transaction without flush to disk is made on the caller's own thread when nobody else is writing, which
costs some 20 microseconds; everything else goes through the writer's thread, in order. ``synchronous`` is
raised to FULL for exactly those commits that must survive a power failure: they flush what was written
before them, too. To flush a file that grew takes about twice as long as one that did not, because its length
must be flushed as well; so the log is lengthened ahead, with zeros, which SQLite never takes for entries.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from bascule.bridge.errors import StoreError
from bascule.bridge.sqlite_schema import open_file, unavailable

BUSY_S: Final = 30.0
"""Longest wait for another process that is writing."""

CHECKPOINT_EVERY: Final = 200
"""Transactions after which the write-ahead log is folded into the file, on the writer's thread."""

ROOM_BYTES: Final = 4 << 20
"""Length that the log is given ahead: what `CHECKPOINT_EVERY` transactions usually need."""

ROOM_AFTER: Final = 8
"""Flushed commits after which that is worth it: a command that decides once makes fewer."""

_BUSY_STEP_S: Final = 0.005

T = TypeVar("T")


class SqliteWriter:
    """Makes transactions, one at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = open_file(path)
        # Waiting for other processes is done here, never inside SQLite: an event loop may be calling.
        self._connection.execute("PRAGMA busy_timeout=0")
        self._connection.execute("PRAGMA wal_autocheckpoint=0")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bascule-store")
        self._since_checkpoint = 0
        self._closed = False
        self.flushes = 0

    def try_now(self, work: Callable[[sqlite3.Connection], T]) -> tuple[bool, T | None]:
        """Make a transaction without flush to disk at once, or return False when it would have to wait."""
        if not self._lock.acquire(blocking=False):
            return False, None
        try:
            return True, self._transact(work, durable=False)
        except sqlite3.OperationalError as error:
            if is_busy(error):
                return False, None
            raise unavailable(self._path, error) from error
        except sqlite3.Error as error:
            raise unavailable(self._path, error) from error
        finally:
            self._lock.release()

    async def run(self, work: Callable[[sqlite3.Connection], T], *, durable: bool) -> T:
        """Make a transaction on the writer's thread.

        Raises:
            StoreError: the store cannot be written.
        """
        if self._closed:
            raise StoreError("store_unavailable", f"the store {self._path} was closed")
        job = asyncio.get_running_loop().run_in_executor(self._thread, self.run_now, work, durable)
        # A transaction that was begun is made even for a task that is cancelled meanwhile.
        job.add_done_callback(_look_at)
        return await asyncio.shield(job)

    def run_now(self, work: Callable[[sqlite3.Connection], T], durable: bool) -> T:
        """Make a transaction on this thread, waiting as long as it takes.

        Raises:
            StoreError: the store cannot be written.
        """
        until = time.monotonic() + BUSY_S
        while True:
            try:
                with self._lock:
                    return self._transact(work, durable=durable)
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > until:
                    raise unavailable(self._path, error) from error
                time.sleep(_BUSY_STEP_S)
            except sqlite3.Error as error:
                raise unavailable(self._path, error) from error

    def fold(self) -> None:
        """Fold the log into the file and empty it, if no reader is in the way."""
        with self._lock:
            self._checkpoint("TRUNCATE")

    def close(self) -> None:
        """Fold the log into the file and close."""
        if self._closed:
            return
        self._closed = True
        self._thread.shutdown(wait=True)
        with self._lock:
            self._checkpoint("TRUNCATE")
            self._connection.close()

    def _transact(self, work: Callable[[sqlite3.Connection], T], *, durable: bool) -> T:
        connection = self._connection
        if durable:
            connection.execute("PRAGMA synchronous=FULL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                outcome = work(connection)
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            try:
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        finally:
            if durable:
                connection.execute("PRAGMA synchronous=NORMAL")
        self.flushes += durable
        if durable and self.flushes == ROOM_AFTER and not self._closed:
            self._thread.submit(self._make_room)
        self._since_checkpoint += 1
        if self._since_checkpoint >= CHECKPOINT_EVERY:
            self._since_checkpoint = 0
            self._schedule_checkpoint()
        return outcome

    def _schedule_checkpoint(self) -> None:
        if not self._closed:
            self._thread.submit(self._fold)

    def _fold(self) -> None:
        with self._lock:
            self._checkpoint("PASSIVE")

    def _make_room(self) -> None:
        """Lengthen the log. Nobody else can write to it meanwhile: the lock for that is held here."""
        with self._lock, suppress(sqlite3.Error, OSError):  # busy, full or gone: then it grows as it must
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                with open(f"{self._path.resolve()}-wal", "r+b") as log:
                    log.write(bytes(max(0, ROOM_BYTES - log.seek(0, os.SEEK_END))))
                    log.flush()
                    os.fsync(log.fileno())
            finally:
                self._connection.execute("ROLLBACK")

    def _checkpoint(self, how: str) -> None:
        try:
            self._connection.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
        except sqlite3.Error:
            # A reader is in the way or the disk is full: the log stays, nothing is lost.
            return


def _look_at(job: asyncio.Future[T]) -> None:
    """Take note of an outcome that nobody may be left to take."""
    if not job.cancelled():
        job.exception()


def is_busy(error: sqlite3.OperationalError) -> bool:
    """Return whether another process is writing just now."""
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
