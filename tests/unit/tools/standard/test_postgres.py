"""SQL on a real PostgreSQL server: a role that can only read, and statements that want more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from bascule.tools import AnyTool, ToolContext
from bascule.tools.standard.postgres import grants_for
from bascule.tools.standard.sql import postgres_tools
from tests.unit.tools.standard.calling import call
from tests.unit.tools.standard.server import running_server

TABLES = ["public.orders", "sales.totals"]


@pytest.fixture(scope="module")
def admin() -> Iterator[str]:
    with running_server() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(
                """
                CREATE SCHEMA sales;
                CREATE TABLE orders (
                  id int PRIMARY KEY, customer text, amount numeric(20, 4), at timestamptz, tags text[],
                  note jsonb, raw bytea);
                CREATE TABLE secret (password text);
                CREATE VIEW sales.totals AS
                  SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
                INSERT INTO secret VALUES ('hunter2');
                INSERT INTO orders VALUES
                  (1, 'ann', 12345678901234.5600, '2025-01-02T03:04:05Z',
                   '{a,b}', '{"z": 1, "a": 2}',
                   '\\x00ff'),
                  (2, 'bob', 'NaN', NULL, NULL, NULL, NULL);
                """
            )
            connection.execute(grants_for("reader", TABLES).encode())
            connection.execute(grants_for('odd "role', TABLES).encode())
            connection.execute(
                "CREATE ROLE greedy LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO greedy;"
            )
            connection.execute(
                "CREATE ROLE writer LOGIN; GRANT SELECT, UPDATE ON orders TO writer; "
                "CREATE ROLE snoop LOGIN; GRANT SELECT ON orders TO snoop; "
                "GRANT pg_read_server_files TO snoop; "
                "CREATE ROLE column_reader LOGIN; GRANT SELECT (password) ON secret TO column_reader;"
            )
        yield address


def tools_for(admin: str, role: str = "reader", **options: Any) -> tuple[list[AnyTool], ToolContext]:
    address = admin.replace("admin@", f"{role}@")
    settings: dict[str, Any] = {"timeout_s": 2.0, **options}
    made = postgres_tools(tables=["orders", "sales.totals"], **settings)
    return made, ToolContext(secrets={"DATABASE_URL": address})


def query(admin: str, statement: str, *parameters: object, **options: Any) -> list[dict[str, Any]]:
    tools, context = tools_for(admin, **options)
    rows: list[dict[str, Any]] = call(
        tools, "sql.query", context=context, statement=statement, parameters=list(parameters)
    )["rows"]
    return rows


def test_rows_come_as_plain_data_with_all_their_digits(admin: str) -> None:
    assert query(admin, "SELECT * FROM orders ORDER BY id") == [
        {
            "id": 1,
            "customer": "ann",
            "amount": "12345678901234.5600",
            "at": "2025-01-02T03:04:05+00:00",
            "tags": ["a", "b"],
            "note": {"z": 1, "a": 2},
            "raw": "\\x00ff",
        },
        {"id": 2, "customer": "bob", "amount": "NaN", "at": None, "tags": None, "note": None, "raw": None},
    ]
    assert query(admin, "SELECT 1 AS a, 2 AS a, 'x' AS \"b c\"") == [{"a": 1, "a_2": 2, "b c": "x"}]


def test_parameters_are_only_ever_values(admin: str) -> None:
    assert query(admin, "SELECT id FROM orders WHERE customer = $1", "ann' OR '1'='1") == []
    assert query(admin, "SELECT id FROM orders WHERE customer = $1 AND id = $2", "ann", 1) == [{"id": 1}]
    assert query(admin, "SELECT '%s' || '$1' AS a") == [{"a": "%s$1"}]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM sales.totals -- and a comment",
        "WITH secret AS (SELECT id FROM orders) SELECT * FROM secret /* x */",
        "VALUES (1), (2)",
        "TABLE orders",
        "SELECT id FROM orders ORDER BY id DESC LIMIT 2",
        "(SELECT 1) UNION (SELECT 2)",
        "SELECT $$) AS q) s; DROP TABLE orders$$ AS t FROM orders",
    ],
)
def test_ordinary_queries_of_every_form_work(admin: str, statement: str) -> None:
    assert len(query(admin, statement)) == 2


def test_tables_are_listed(admin: str) -> None:
    tools, context = tools_for(admin)
    found = call(tools, "sql.tables", context=context)
    assert [table["name"] for table in found] == TABLES
    assert found[1]["columns"] == {"customer": "text", "total": "numeric"}


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM secret",
        "SELECT query_to_xml('SELECT * FROM secret', true, true, '')",
        "SELECT table_to_xml('secret', true, true, '')",
        "SELECT (SELECT password FROM public.secret) FROM orders",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT lo_import('/etc/passwd')",
        "COPY orders TO '/tmp/x'",
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "INSERT INTO orders (id) VALUES (9)",
        "WITH x AS (INSERT INTO orders (id) VALUES (9) RETURNING id) SELECT * FROM x",
        "DELETE FROM orders RETURNING id",
        "UPDATE orders SET amount = 0 RETURNING id",
        "DROP TABLE orders",
        "CREATE TABLE t (a int)",
        "CREATE TEMP TABLE t AS SELECT 1",
        "SELECT 1 INTO t",
        "SET ROLE admin",
        "SET transaction_read_only = off",
        "RESET ALL",
        "DO $$ BEGIN END $$",
        "CALL x()",
        "EXPLAIN ANALYZE SELECT 1",
        "SHOW all",
        "LISTEN x",
        "LOCK TABLE orders",
        "BEGIN",
        "COMMIT",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE orders",
        "SELECT 1) AS q) s; DROP TABLE orders; --",
        "SELECT 1) AS q) AS s UNION ALL SELECT repeat('x', 3) FROM (SELECT row_to_json(q)::text AS t "
        "FROM (SELECT 1",
        "SELECT 1 /* never closed",
        "SELECT $$ never closed",
        "SELECT 'never closed",
        "SELECT id FROM orders FOR UPDATE",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "SELECT setval('x', 1)",
        "SELECT repeat('x', 2000000)",
        "SELECT repeat('x', 1000000) FROM generate_series(1, 100)",
        ";",
        "-- x",
        "SELEKT",
        "SELECT 1\x00",
        "SELECT $1",
        "SELECT 1/0",
    ],
)
def test_everything_else_is_refused_and_nothing_changes(admin: str, statement: str) -> None:
    with pytest.raises((PermissionError, ValueError)) as caught:
        query(admin, statement)
    assert "hunter2" not in str(caught.value)
    with psycopg.connect(admin) as connection:
        assert connection.execute("SELECT count(*), sum(id) FROM orders").fetchone() == (2, 3)


def test_what_a_query_makes_on_the_side_is_gone_with_it(admin: str) -> None:
    query(admin, "SELECT pg_advisory_lock(7), lo_creat(-1) AS made")  # version 16 refuses the second
    with pytest.raises(PermissionError):
        query(admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'admin'")
    with psycopg.connect(admin) as connection:
        assert connection.execute("SELECT count(*) FROM pg_largeobject_metadata").fetchone() == (0,)
        assert connection.execute("SELECT pg_try_advisory_lock(7)").fetchone() == (True,)


def test_endless_queries_end_in_time(admin: str) -> None:
    for statement in (
        "SELECT pg_sleep(60)",
        "SELECT count(*) FROM generate_series(1, 100000000000)",
        "SELECT set_config('statement_timeout', '0', false), pg_sleep(60)",
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT 1 FROM c) SELECT count(*) FROM c",
    ):
        begun = time.monotonic()
        with pytest.raises(TimeoutError, match=r"took more than 0\.5 s"):
            query(admin, statement, timeout_s=0.5)
        assert time.monotonic() - begun < 15


def test_rows_are_bounded_without_fetching_the_rest(admin: str) -> None:
    tools, context = tools_for(admin, max_rows=10)
    answer = call(
        tools,
        "sql.query",
        context=context,
        statement="WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c",
    )
    assert (len(answer["rows"]), answer["truncated"]) == (10, True)


@pytest.mark.parametrize(
    ("role", "why"),
    [
        ("admin", "has the powers of: admin"),
        ("greedy", "can read: public.secret"),
        ("writer", "can write: public.orders"),
        ("snoop", "has the powers of: pg_read_server_files"),
        ("column_reader", "can read: public.secret"),
    ],
)
def test_a_role_that_may_do_more_is_refused_with_what_to_grant(admin: str, role: str, why: str) -> None:
    with pytest.raises(PermissionError) as caught:
        query(admin, "SELECT 1", role=role)
    assert why in str(caught.value)
    assert 'GRANT SELECT ON "public"."orders" TO "bascule_reader";' in str(caught.value)


def test_a_function_with_the_rights_of_others_is_refused(admin: str) -> None:
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION peek() RETURNS SETOF secret LANGUAGE sql SECURITY DEFINER"
            " AS 'SELECT * FROM secret'"
        )
        try:
            with pytest.raises(PermissionError, match=r"functions that go beyond its rights: public\.peek"):
                query(admin, "SELECT * FROM peek()")
        finally:
            connection.execute("DROP FUNCTION peek()")


def test_a_server_that_is_not_there_says_nothing_of_its_address() -> None:
    tools, _ = tools_for("postgresql://admin@/x?host=/nowhere")
    context = ToolContext(secrets={"DATABASE_URL": "postgresql://u:pass-word@/x?host=/nowhere"})
    with pytest.raises(ConnectionError) as caught:
        call(tools, "sql.query", context=context, statement="SELECT 1")
    assert "pass-word" not in str(caught.value)
