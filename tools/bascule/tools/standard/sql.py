"""SQL for scripts: one database, some of its tables, reading only.

`sqlite` and `postgres` hold the walls; here are the tools. Statements and parameters are hostile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Final

from pydantic import Field

from bascule.tools.context import ToolContext
from bascule.tools.standard.postgres import PostgresReader
from bascule.tools.standard.rows import MAX_PARAMETERS, MAX_STATEMENT_CHARS, Rows, Scalar, Table
from bascule.tools.standard.sqlite import SqliteReader
from bascule.tools.tool import AnyTool, tool

MAX_ROWS: Final = 1000
TIMEOUT_S: Final = 10.0

Statement = Annotated[str, Field(min_length=1, max_length=MAX_STATEMENT_CHARS)]
Parameters = Annotated[list[Scalar], Field(max_length=MAX_PARAMETERS)]


def sqlite_tools(
    path: str | os.PathLike[str],
    *,
    tables: Collection[str] | None = None,
    max_rows: int = MAX_ROWS,
    timeout_s: float = TIMEOUT_S,
    name: str = "sql",
) -> list[AnyTool]:
    """Return ``sql.tables`` and ``sql.query`` for one SQLite file.

    Args:
        path: the file; it is only ever opened for reading.
        tables: tables and views that may be read; None for all of the file.
        max_rows, timeout_s: of one query.

    Raises:
        OSError: there is no such file.
    """
    reader = SqliteReader(path, tables=tables, max_rows=max_rows, timeout_s=timeout_s)
    return _tools(
        name,
        "SQLite, with ? for each parameter",
        lambda context: reader.tables(),
        lambda statement, parameters, context: reader.query(statement, parameters),
        timeout_s,
        (),
    )


def postgres_tools(
    *,
    tables: Collection[str],
    secret: str = "DATABASE_URL",
    max_rows: int = MAX_ROWS,
    timeout_s: float = TIMEOUT_S,
    name: str = "sql",
) -> list[AnyTool]:
    """Return ``sql.tables`` and ``sql.query`` for one PostgreSQL database.

    Args:
        tables: ``schema.table`` that may be read. The role that logs in must be able to read no others and to
            write nothing; ``bascule.tools.standard.postgres.grants_for`` says how to make one.
        secret: name of the secret that holds the address, ``postgresql://user:password@host/database``.
        max_rows, timeout_s: of one query.
    """
    reader = PostgresReader(tables=tables, max_rows=max_rows, timeout_s=timeout_s)
    return _tools(
        name,
        "PostgreSQL, with $1, $2 ... for the parameters",
        lambda context: reader.tables(context.secrets[secret]),
        lambda statement, parameters, context: reader.query(context.secrets[secret], statement, parameters),
        timeout_s,
        (secret,),
    )


def _tools(
    name: str,
    dialect: str,
    list_tables: Callable[[ToolContext], list[Table]],
    run: Callable[[str, Sequence[Scalar], ToolContext], Rows],
    timeout_s: float,
    secrets: Collection[str],
) -> list[AnyTool]:
    labels = {"private"}

    @tool(name=f"{name}.tables", effects="read", labels=labels, secrets=secrets, parallel_safe=True)
    def tables(context: ToolContext) -> list[Table]:
        """List the tables that may be read, with their columns and types."""
        return list_tables(context)

    def query(statement: Statement, context: ToolContext, parameters: Parameters | None = None) -> Rows:
        return run(statement, parameters or [], context)

    query.__doc__ = f"""Read rows with one SELECT statement ({dialect}).

    Args:
        statement: the query; never put values into its text.
        parameters: the values.
    """
    made = tool(
        name=f"{name}.query",
        effects="read",
        labels=labels,
        secrets=secrets,
        parallel_safe=True,
        timeout_s=timeout_s + 10,
    )(query)
    return [tables, made]
