"""Figures, tables and chart: what they say of given exchanges, and what damaged files are told."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from bascule.cli.exits import Exit
from bascule.cli.main import app
from bascule.models.exchange import CallTokens, Exchange
from bascule.models.exchange_file import ExchangesInvalid, read_exchanges, write_exchanges
from bascule.models.token_chart import draw_chart
from bascule.models.token_summary import TokenSummary, ratio, summarise
from bascule.models.token_table import BEGIN, END, put_tables, render_tables


def make_exchange(calls: int, result: int, *, origin: str = "made", returned: int = 10) -> Exchange:
    """Return an exchange of equal calls, each in a round of its own."""
    return Exchange(
        id=f"{origin}-{calls}-{result}",
        origin=origin,
        question=20,
        direct_definitions=300,
        script_definitions=900,
        calls=tuple(
            CallTokens(arguments=20, result=result, result_bytes=result * 3, round=number)
            for number in range(1, calls + 1)
        ),
        script=20 * calls + 10,
        returned=returned,
    )


SMALL_AND_LARGE = [make_exchange(1, 10), make_exchange(5, 1000), make_exchange(12, 5000)]


def test_a_script_loses_on_one_small_call_and_wins_on_many_large_ones() -> None:
    one, five, twelve = (ratio(each, "parallel") for each in SMALL_AND_LARGE)
    assert one < 1 < five < twelve
    found = summarise(SMALL_AND_LARGE).sets[0]
    assert [row.label for row in found.by_calls] == ["1 call", "5 calls", "10 and more calls"]
    assert [row.loses for row in found.by_calls] == [1.0, 0.0, 0.0]
    assert found.whole.loses == pytest.approx(1 / 3, abs=0.001)
    assert found.largest_result_bytes == 15_000


def test_the_spread_is_by_nearest_rank() -> None:
    summary = summarise([make_exchange(3, size) for size in range(100, 1100, 100)])
    spread = summary.sets[0].whole.parallel
    ratios = sorted(ratio(make_exchange(3, size), "parallel") for size in range(100, 1100, 100))
    assert (spread.worst, spread.p10) == (round(ratios[0], 2), round(ratios[0], 2))
    assert spread.median == round(ratios[4], 2)
    assert spread.p90 == round(ratios[8], 2)
    assert spread.best == round(ratios[9], 2)


def test_origins_are_kept_apart_and_exchanges_without_calls_say_nothing() -> None:
    summary = summarise(
        [make_exchange(2, 10, origin="b"), make_exchange(0, 0, origin="b"), make_exchange(3, 9, origin="a")]
    )
    assert [(found.name, found.tasks) for found in summary.sets] == [("a", 1), ("b", 1)]
    assert summarise([make_exchange(0, 0)]).sets == ()


def test_tables_are_written_between_the_markers_and_nowhere_else() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    summary = summarise(SMALL_AND_LARGE)
    written = put_tables(page, summary)
    assert written.startswith(f"before\n{BEGIN}\n")
    assert written.endswith(f"{END}\nafter\n")
    assert "old" not in written
    assert render_tables(summary) in written
    assert put_tables(written, summary) == written
    with pytest.raises(ValueError, match="needs the lines"):
        put_tables("no markers", summary)


def test_estimates_are_called_estimates_in_the_table() -> None:
    guessed = [msgspec.structs.replace(found, exact=False) for found in summarise(SMALL_AND_LARGE).sets]
    assert "**estimates**" in render_tables(TokenSummary(sets=tuple(guessed)))
    assert "estimate" not in render_tables(summarise(SMALL_AND_LARGE))


def test_the_chart_is_one_valid_svg_that_says_in_words_what_it_draws() -> None:
    text = draw_chart(summarise([*SMALL_AND_LARGE, make_exchange(2, 50, origin='<b> & "others"')]))
    root = ElementTree.fromstring(text)  # our own text
    space = "{http://www.w3.org/2000/svg}"
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"] == "title description"
    described = root.find(f"{space}desc")
    assert described is not None
    assert described.text is not None
    assert "10 and more calls" in described.text
    assert '<b> & "others"' in described.text
    assert "prefers-color-scheme: dark" in text
    box = [float(number) for number in root.attrib["viewBox"].split()]
    for mark in (*root.iter(f"{space}line"), *root.iter(f"{space}circle"), *root.iter(f"{space}rect")):
        for key in ("x", "x1", "x2", "cx"):
            assert 0 <= float(mark.attrib.get(key, "0")) <= box[2]
        for key in ("y", "y1", "y2", "cy"):
            assert 0 <= float(mark.attrib.get(key, "0")) <= box[3]


def test_there_is_no_chart_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_chart(summarise([]))


def test_exchanges_survive_their_file(tmp_path: Path) -> None:
    write_exchanges(SMALL_AND_LARGE, tmp_path / "exchanges.jsonl")
    assert read_exchanges(tmp_path / "exchanges.jsonl") == SMALL_AND_LARGE


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 0: it is empty"),
        ('{"bascule_exchanges":2}\n', "line 1: its version is 2"),
        ('{"bascule_exchanges":1}\nnot json\n', "line 2"),
        ('{"bascule_exchanges":1}\n{"id":"a"}\n', "line 2"),
        ('{"something":1}\n', "line 1"),
    ],
)
def test_a_damaged_file_is_told_where(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "exchanges.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ExchangesInvalid, match=told) as caught:
        read_exchanges(path)
    assert caught.value.code == "exchanges_invalid"


def test_tokens_below_zero_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "exchanges.jsonl"
    write_exchanges(SMALL_AND_LARGE, path)
    path.write_text(
        path.read_text(encoding="utf-8").replace("[20,10,30,1]", "[20,-10,30,1]"), encoding="utf-8"
    )
    with pytest.raises(ExchangesInvalid, match="below 0"):
        read_exchanges(path)


def test_the_command_draws_tables_chart_and_figures(tmp_path: Path) -> None:
    write_exchanges(SMALL_AND_LARGE, tmp_path / "exchanges.jsonl")
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    told = CliRunner().invoke(
        app,
        [
            *("bench", "tokens", str(tmp_path / "exchanges.jsonl"), "--svg", str(tmp_path / "chart.svg")),
            *("--json", str(tmp_path / "figures.json"), "--into", str(page)),
        ],
    )
    assert told.exit_code == 0, told.output
    summary = msgspec.json.decode((tmp_path / "figures.json").read_bytes(), type=TokenSummary)
    assert summary == summarise(SMALL_AND_LARGE)
    assert told.stdout == render_tables(summary)
    assert (tmp_path / "chart.svg").read_text(encoding="utf-8") == draw_chart(summary)
    assert page.read_text(encoding="utf-8") == put_tables(f"{BEGIN}\n{END}\n", summary)


@pytest.mark.parametrize("content", [None, "", "rubbish", '{"bascule_exchanges":1}\n'])
def test_the_command_says_what_it_cannot_read(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "given"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    told = CliRunner().invoke(app, ["bench", "tokens", str(path)])
    assert told.exit_code == Exit.NO_INPUT
    assert told.stdout == ""
    assert told.stderr.startswith("bascule: ")
