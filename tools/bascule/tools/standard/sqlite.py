"""Queries on one SQLite file that can do nothing but read the tables it was given.

The statement is hostile. It is compiled by SQLite under an authorizer that knows the list of tables and
functions: what is not on it cannot be compiled, in whatever words it is asked for. The file is opened
read-only, nothing can be attached, and size, depth and time of a query are limited by the engine itself.

A view reads other tables, and SQLite tells the authorizer in whose name; but a ``WITH`` of the same name
looks just like it. So where views are on the list, a statement is first compiled in an empty database with
nothing but the listed names: what it says itself is proven there, and only then may views read their tables.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bascule.tools.standard.rows import MAX_STATEMENT_CHARS, Rows, Scalar, Table, collect_rows

MAX_VALUE_BYTES: Final = 1 << 20
_STEPS_BETWEEN_LOOKS: Final = 2000

_LIMITS: Final = (
    (sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, MAX_STATEMENT_CHARS * 4),
    (sqlite3.SQLITE_LIMIT_COLUMN, 500),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 50),
    (sqlite3.SQLITE_LIMIT_VDBE_OP, 250_000),
    (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 50),
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 500),
    (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 200),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
)

_NAMES: Final = """
    abs avg ceil ceiling changes char coalesce concat concat_ws count cume_dist current_date current_time
    current_timestamp date datetime dense_rank exp first_value floor format glob group_concat hex ifnull
    iif instr json json_array json_array_length json_each json_extract json_group_array json_group_object
    json_object json_patch json_quote json_tree json_type json_valid -> ->> julianday lag last_value lead
    length like likelihood likely ln log log10 log2 lower ltrim match max median min mod nth_value ntile
    nullif octet_length percent_rank pi pow power printf quote random rank replace round row_number rtrim
    sign soundex sqrt strftime string_agg substr substring subtype sum time timediff total trim trunc
    typeof unhex unicode unixepoch unlikely upper
"""
_SAFE_FUNCTIONS: Final = frozenset(_NAMES.split())
_OWN: Final = ("sqlite_", "pragma_")
_TABLE_FUNCTIONS: Final = frozenset({"json_each", "json_tree"})


class SqliteReader:
    """Reads some tables of one file.

    Args:
        tables: names of tables and views; None for all that the file has when a query is made.

    Raises:
        OSError: there is no such file.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, tables: Collection[str] | None, max_rows: int, timeout_s: float
    ) -> None:
        self._path = Path(path).resolve(strict=True)
        self._tables = None if tables is None else frozenset(name.lower() for name in tables)
        self._max_rows = max_rows
        self._timeout_s = timeout_s

    def tables(self) -> list[Table]:
        """Return what may be read."""
        with self._connect() as connection:
            return [
                Table(
                    name=name,
                    columns={
                        str(column): str(kind)
                        for column, kind in connection.execute(
                            "SELECT name, type FROM pragma_table_xinfo(?)", (name,)
                        )
                    },
                )
                for name in sorted(self._allowed(connection))
            ]

    def query(self, statement: str, parameters: Sequence[Scalar]) -> Rows:
        """Return the rows of a query.

        Raises:
            PermissionError: it wants more than to read the tables.
            TimeoutError: it takes too long.
            ValueError: it is no query; the message is SQLite's.
        """
        if "\x00" in statement:
            raise ValueError("the statement holds a zero character")
        with self._connect() as connection:
            found = self._allowed(connection)
            allowed = frozenset(name.lower() for name in found)
            views = frozenset(name.lower() for name, kind in found.items() if kind == "view")
            refused: list[str] = []
            try:
                if views:
                    _prove_alone(connection, found, statement, tuple(parameters), refused)
            except sqlite3.Warning as error:  # two statements
                raise ValueError(f"{error}") from error
            except sqlite3.Error as error:
                raise self._explain(error, refused, allowed) from error
            connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')")  # declares them
            judge = _Judge(allowed=allowed, known=_known_names(connection), refused=refused, views=views)
            connection.set_authorizer(judge)
            until = time.monotonic() + self._timeout_s
            connection.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS_BETWEEN_LOOKS)
            try:
                cursor = connection.execute(statement, tuple(parameters))
                if cursor.description is None:
                    raise ValueError("write a query: SELECT ... or WITH ... SELECT ...")
                columns = [str(column[0]) for column in cursor.description]
                return collect_rows(columns, cursor, max_rows=self._max_rows)
            except sqlite3.Warning as error:  # two statements
                raise ValueError(f"{error}") from error
            except sqlite3.Error as error:
                raise self._explain(error, refused, allowed) from error
            except (OverflowError, UnicodeError) as error:
                raise ValueError(f"a parameter or value cannot be used: {error}") from error

    def _explain(self, error: sqlite3.Error, refused: list[str], allowed: frozenset[str]) -> Exception:
        if refused:
            tables = ", ".join(sorted(allowed)[:50])
            return PermissionError(f"the query may not {refused[0]}; it may read these tables: {tables}")
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            return TimeoutError(f"the query took more than {self._timeout_s:g} s; narrow it down")
        return ValueError(f"{error}")

    def _allowed(self, connection: sqlite3.Connection) -> dict[str, str]:
        """Return tables and views that may be read, each with which of the two it is."""
        found = connection.execute(
            "SELECT name, type FROM sqlite_schema"
            " WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*'"
        )
        return {
            str(name): str(kind)
            for name, kind in found
            if self._tables is None or str(name).lower() in self._tables
        }

    @contextmanager
    def _connect(self) -> Generator[sqlite3.Connection]:
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode=ro",
            uri=True,
            timeout=2.0,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            configure = getattr(connection, "setconfig", None)
            if configure is not None:  # from Python 3.12 on
                configure(getattr(sqlite3, "SQLITE_DBCONFIG_DEFENSIVE"), True)  # noqa: B009
            for category, value in _LIMITS:
                connection.setlimit(category, value)
            connection.execute("PRAGMA query_only=ON")
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA temp_store=MEMORY")
            connection.text_factory = _read_text
            yield connection
        finally:
            connection.close()


def _prove_alone(
    connection: sqlite3.Connection,
    found: Mapping[str, str],
    statement: str,
    parameters: tuple[Scalar, ...],
    refused: list[str],
) -> None:
    """Compile a statement where there is nothing but the listed names.

    Raises:
        sqlite3.Error: it names something else.
    """
    empty = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for name in found:
            columns = connection.execute("SELECT name FROM pragma_table_xinfo(?)", (name,))
            listed = ", ".join(_quote(str(column)) for (column,) in columns)
            empty.execute(f"CREATE TABLE {_quote(name)} ({listed})")
        for category, value in _LIMITS:
            empty.setlimit(category, value)
        empty.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')")
        allowed = frozenset(name.lower() for name in found)
        empty.set_authorizer(_Judge(allowed=allowed, known=_known_names(empty), refused=refused))
        empty.execute(f"EXPLAIN {statement}", parameters)
    finally:
        empty.close()


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """Decides about each thing that a statement would do, while it is compiled.

    Attributes:
        allowed: names of what may be read, in small letters.
        views: those of them that may read other tables; only for a statement that was proven alone.
        known: every table, view and module there is.
        refused: what was refused, in words.
    """

    allowed: frozenset[str]
    known: frozenset[str]
    refused: list[str]
    views: frozenset[str] = frozenset()

    def __call__(
        self, action: int, first: str | None, second: str | None, _: str | None, source: str | None
    ) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            if self._may_read(str(first).lower(), second, str(source or "").lower()):
                return sqlite3.SQLITE_OK
            self.refused.append(f"read {first}")
        elif action == sqlite3.SQLITE_FUNCTION:
            if str(second).lower() in _SAFE_FUNCTIONS:
                return sqlite3.SQLITE_OK
            self.refused.append(f"call {second}")
        else:
            self.refused.append("do anything but read")
        return sqlite3.SQLITE_DENY

    def _may_read(self, name: str, column: str | None, source: str) -> bool:
        if name in self.allowed or name in _TABLE_FUNCTIONS or source in self.views:
            return True
        # Without a column: that rows are counted. Of a view's table, or of what WITH defines.
        return column == "" and (bool(self.views) or (name not in self.known and not name.startswith(_OWN)))


def _known_names(connection: sqlite3.Connection) -> frozenset[str]:
    found = connection.execute(
        "SELECT name FROM sqlite_schema UNION SELECT name FROM pragma_module_list UNION VALUES ('dbstat')"
    )
    return frozenset(str(name).lower() for (name,) in found)
