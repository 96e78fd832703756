"""Helpers that make big tables and texts small."""

from __future__ import annotations

import pytest

from bascule.tools import ArgumentsInvalid, load_tools
from bascule.tools.standard import tables, texts
from tests.unit.tools.standard.calling import call

ROWS = [{"id": number, "city": "Bonn" if number % 2 else "Köln|Deutz", "note": None} for number in range(100)]


def test_a_profile_says_what_a_table_holds() -> None:
    made = call(tables.TOOLS, "tables.profile", rows=[*ROWS, {"id": "x", "extra": [1]}])
    assert made["rows"] == 101
    columns = {column["name"]: column for column in made["columns"]}
    assert columns["id"]["types"] == ["text", "whole number"]
    assert (columns["city"]["least"], columns["city"]["greatest"], columns["city"]["distinct"]) == (
        "Bonn",
        "Köln|Deutz",
        2,
    )
    assert (columns["note"]["filled"], columns["note"]["empty"]) == (0, 101)
    assert columns["extra"]["types"] == ["list"]
    assert call(tables.TOOLS, "tables.profile", rows=[]) == {"rows": 0, "columns": []}


def test_a_table_is_written_as_markdown_with_its_count() -> None:
    text = call(tables.TOOLS, "tables.to_text", rows=ROWS, columns=["id", "city"], limit=2)
    assert text == ("| id | city |\n| --- | --- |\n| 0 | Köln\\|Deutz |\n| 1 | Bonn |\n(98 more of 100 rows)")
    assert call(tables.TOOLS, "tables.to_text", rows=[]) == ""
    assert "…" in call(tables.TOOLS, "tables.to_text", rows=[{"a": "x" * 1000 + "\n| b"}])


def test_csv_is_read_strictly() -> None:
    assert call(tables.TOOLS, "tables.parse_csv", text='\ufeffa;b\n1;"x;\ny"\n\n', delimiter=";") == [
        {"a": "1", "b": "x;\ny"}
    ]
    for wrong in ("a,a\n1,2", "a,b\n1", 'a\n"x', "a\n1,2"):
        with pytest.raises(ValueError, match=r"row 2|name up to|not CSV"):
            call(tables.TOOLS, "tables.parse_csv", text=wrong)
    assert call(tables.TOOLS, "tables.parse_csv", text="") == []
    with pytest.raises(ArgumentsInvalid):
        call(tables.TOOLS, "tables.parse_csv", text="a", delimiter="\n")


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="200 are allowed"):
        call(tables.TOOLS, "tables.profile", rows=[{f"c{number}": 1} for number in range(201)])


def test_lines_that_matter_are_found_with_their_neighbours() -> None:
    text = "\n".join(f"line {number}" for number in range(1, 101))
    found = call(texts.TOOLS, "texts.find", text=text, words=["LINE 50", "line 52", "line 99"])
    assert found["passages"] == [
        {"line": 49, "text": "line 49\nline 50\nline 51\nline 52\nline 53"},
        {"line": 98, "text": "line 98\nline 99\nline 100"},
    ]
    assert found["matching_lines"] == 3
    assert len(call(texts.TOOLS, "texts.find", text=text, words=["line"], around=0, limit=1)["passages"]) == 1
    with pytest.raises(ArgumentsInvalid):
        call(texts.TOOLS, "texts.find", text=text, words=[""])


def test_a_text_is_split_without_losing_anything() -> None:
    text = "word " * 1000 + "\n\n" + "x" * 5000
    pieces = call(texts.TOOLS, "texts.split", text=text, max_chars=300)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 300 + 2
    assert all(piece.endswith(" ") for piece in pieces[:10])


def test_both_are_found_by_a_specification() -> None:
    loaded = load_tools("bascule.tools.standard.tables", "bascule.tools.standard.texts")
    assert [each.name for each in loaded] == [
        "tables.profile", "tables.to_text", "tables.parse_csv", "texts.find", "texts.split",
    ]  # fmt: skip
