"""The page of figures shows the newest ones that are kept."""

from __future__ import annotations

from tests.bench.tables import BEGIN, END, PAGE, make_tables, newest


def test_the_tables_are_those_of_the_newest_figures() -> None:
    page = PAGE.read_text("utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0] == make_tables(newest())
