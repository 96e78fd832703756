"""Queries on a PostgreSQL database by a role that can do nothing but read the tables it was given.

The engine itself is the wall: before the first query the role's rights are looked up, and a role that could
read another table, write anywhere, or has one of the server's powers is refused, with the statements that
make a right one. Every query runs alone in a read-only transaction with a time limit, is parsed by the server
as one statement, and only ever sees parameters as values. Needs the extra ``postgres``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from bascule.tools.errors import ToolLoadError
from bascule.tools.standard.rows import Rows, Scalar, Table, collect_rows, read_json_row

if TYPE_CHECKING:
    import psycopg

MAX_ROW_BYTES: Final = 1 << 20
CONNECT_S: Final = 5
CHECKED_S: Final = 60.0
"""Seconds for which the rights of a role are taken as they were found."""

_POWERS: Final = """
SELECT rolname FROM pg_roles
WHERE (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls
       OR rolname IN (
           'pg_read_all_data', 'pg_write_all_data', 'pg_read_server_files', 'pg_write_server_files',
           'pg_execute_server_program', 'pg_signal_backend', 'pg_monitor', 'pg_read_all_settings',
           'pg_maintain', 'pg_create_subscription', 'pg_checkpoint', 'pg_database_owner'))
  AND pg_has_role(current_user, oid, 'MEMBER')
ORDER BY 1
"""
_RELATIONS: Final = """
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
       has_column_privilege(c.oid, a.attnum, 'SELECT'),
       has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
         OR has_any_column_privilege(c.oid, 'INSERT, UPDATE')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname NOT LIKE 'pg\\_toast%' AND has_schema_privilege(n.oid, 'USAGE')
ORDER BY 1, 2, a.attnum
"""
_DEFINER_FUNCTIONS: Final = """
SELECT n.nspname || '.' || p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND has_schema_privilege(n.oid, 'USAGE')
  AND has_function_privilege(p.oid, 'EXECUTE') AND (p.prosecdef OR p.proname LIKE 'dblink%' OR p.prolang IN
      (SELECT oid FROM pg_language WHERE NOT lanpltrusted AND lanname NOT IN ('c', 'internal')))
ORDER BY 1 LIMIT 20
"""


def grants_for(role: str, tables: Collection[str]) -> str:
    """Return the statements an administrator runs to make a role that can read these tables and nothing else.

    Args:
        role: its name; it gets no password here.
        tables: ``schema.table``.
    """
    quoted = _quote(role)
    lines = [
        f"CREATE ROLE {quoted} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;",
        f"ALTER ROLE {quoted} SET default_transaction_read_only = on;",
    ]
    schemas = sorted({table.partition(".")[0] for table in tables})
    lines += [f"GRANT USAGE ON SCHEMA {_quote(schema)} TO {quoted};" for schema in schemas]
    lines += [f"GRANT SELECT ON {'.'.join(map(_quote, table.split('.')))} TO {quoted};" for table in tables]
    return "\n".join(lines) + "\n"


class PostgresReader:
    """Reads some tables of one database.

    Args:
        tables: ``schema.table`` or ``table`` (then in ``public``); the role must have rights on no others.
    """

    def __init__(self, *, tables: Collection[str], max_rows: int, timeout_s: float) -> None:
        self._tables = frozenset(table if "." in table else f"public.{table}" for table in tables)
        self._max_rows = max_rows
        self._timeout_s = timeout_s
        self._checked: dict[str, float] = {}
        self._lock = threading.Lock()

    def tables(self, address: str) -> list[Table]:
        """Return what may be read.

        Raises:
            PermissionError, ConnectionError: see `query`.
        """
        with self._connect(address) as connection:
            found: dict[str, dict[str, str]] = {}
            for schema, name, column, kind, readable, _ in connection.execute(_RELATIONS):
                if readable and f"{schema}.{name}" in self._tables:
                    found.setdefault(f"{schema}.{name}", {})[column] = kind
        return [Table(name=name, columns=columns) for name, columns in found.items()]

    def query(self, address: str, statement: str, parameters: Sequence[Scalar]) -> Rows:
        """Return the rows of a query.

        Args:
            address: the server's, with what logs in; a secret.

        Raises:
            PermissionError: the role may do too much, or too little for this query.
            TimeoutError: it takes too long.
            ValueError: it is no query; the message is the server's.
            ConnectionError: the server cannot be reached.
        """
        import psycopg

        if "\x00" in statement:
            raise ValueError("the statement holds a zero character")
        with self._connect(address) as connection:
            try:
                columns = _parse_alone(connection, statement)
                # The server has parsed it by itself: it is complete, so it stays within these brackets.
                wrapped = (
                    "SELECT CASE WHEN octet_length(t) <= " + str(MAX_ROW_BYTES) + " THEN t END FROM "
                    "(SELECT row_to_json(q)::text AS t FROM (\n" + statement + "\n) AS q"
                    " LIMIT " + str(self._max_rows + 1) + ") AS s"
                )
                with psycopg.RawCursor(connection) as cursor:
                    return self._rows(columns, cursor.stream(wrapped.encode(), list(parameters)))
            except psycopg.errors.QueryCanceled as error:
                raise TimeoutError(
                    f"the query took more than {self._timeout_s:g} s; narrow it down"
                ) from error
            except psycopg.errors.InsufficientPrivilege as error:
                raise PermissionError(_said(error)) from error
            except psycopg.Error as error:
                if connection.broken:
                    raise ConnectionError("the database went away") from error
                raise ValueError(_said(error)) from error

    def _rows(self, columns: Sequence[str], lines: Iterator[Sequence[Any]]) -> Rows:
        def values() -> Iterator[Sequence[Any]]:
            for (text,) in lines:
                if text is None:
                    raise ValueError(f"a row is larger than {MAX_ROW_BYTES} bytes; select fewer columns")
                yield [value for _, value in read_json_row(text)]

        try:
            return collect_rows(columns, values(), max_rows=self._max_rows)
        finally:
            close = getattr(lines, "close", None)
            if close is not None:
                close()

    @contextmanager
    def _connect(self, address: str) -> Generator[psycopg.Connection[Any]]:
        try:
            import psycopg
        except ImportError as error:
            raise ToolLoadError(
                "extra_missing", "PostgreSQL needs: pip install 'bascule[postgres]'"
            ) from error
        milliseconds = int(self._timeout_s * 1000)
        try:
            connection = psycopg.connect(
                address,
                connect_timeout=CONNECT_S,
                application_name="bascule",
                options=f"-c default_transaction_read_only=on -c statement_timeout={milliseconds}"
                f" -c idle_in_transaction_session_timeout={milliseconds} -c lock_timeout={milliseconds}",
                keepalives_idle=10,
                tcp_user_timeout=milliseconds + 10_000,
                autocommit=False,
            )
        except psycopg.Error as error:
            raise ConnectionError("the database cannot be reached") from error
        try:
            connection.read_only = True
            self._check_role(connection)
            yield connection
        finally:
            connection.close()

    def _check_role(self, connection: psycopg.Connection[Any]) -> None:
        """Prove that the role can read the listed tables at most.

        Raises:
            PermissionError: it can do more; for the operator, what to grant instead.
        """
        user = connection.info.user
        with self._lock:
            if time.monotonic() - self._checked.get(user, -CHECKED_S) < CHECKED_S:
                return
        powers = [name for (name,) in connection.execute(_POWERS)]
        relations = list(connection.execute(_RELATIONS))
        more = sorted({f"{row[0]}.{row[1]}" for row in relations if row[4]} - self._tables)
        writes = sorted({f"{row[0]}.{row[1]}" for row in relations if row[5]})
        functions = [name for (name,) in connection.execute(_DEFINER_FUNCTIONS)]
        problems = [
            f"{what}: {', '.join(names[:10])}"
            for what, names in (
                ("has the powers of", powers),
                ("can read", more),
                ("can write", writes),
                ("can call functions that go beyond its rights", functions),
            )
            if names
        ]
        if problems:
            raise PermissionError(
                f"the role {user} may do too much ({'; '.join(problems)}); have another made: "
                + grants_for("bascule_reader", sorted(self._tables)).replace("\n", " ").strip()
            )
        with self._lock:
            self._checked[user] = time.monotonic()


def _parse_alone(connection: psycopg.Connection[Any], statement: str) -> list[str]:
    """Have the server parse a statement by itself, as exactly one, and return its columns.

    Raises:
        psycopg.Error, ValueError: it is none, or returns nothing.
    """
    import psycopg

    connection.execute("SELECT 1")  # begins the transaction, read-only as it was set
    encoding = connection.info.encoding
    pg = connection.pgconn
    parsed = pg.prepare(b"bascule", statement.encode(encoding))
    if parsed.status == psycopg.pq.ExecStatus.FATAL_ERROR:
        raise psycopg.errors.error_from_result(parsed, encoding=encoding)
    described = pg.describe_prepared(b"bascule")
    if not described.nfields:
        raise ValueError("write a query: SELECT ... or WITH ... SELECT ...")
    return [(described.fname(number) or b"").decode(encoding) for number in range(described.nfields)]


def _said(error: psycopg.Error) -> str:
    diagnostic = error.diag
    parts = [diagnostic.message_primary or str(error).partition("\n")[0], diagnostic.message_hint]
    return "; ".join(part for part in parts if part)[:500]


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
