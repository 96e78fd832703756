"""The pages about tokens: tables, chart and sentences say what the measured figures say."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from bascule.models.exchange import FRAMING_TOKENS
from bascule.models.token_chart import draw_chart
from bascule.models.token_summary import Row, TokenSummary
from bascule.models.token_table import put_tables

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "models"
SUMMARY = msgspec.json.decode((PAGES / "tokens.json").read_bytes(), type=TokenSummary)
TRAVEL, WRITTEN = SUMMARY.sets


def text_of(path: Path) -> str:
    """Return a page with its line breaks as spaces, so that sentences can be found."""
    return re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))


def row(rows: tuple[Row, ...], label: str) -> Row:
    """Return the row of a label."""
    return next(each for each in rows if each.label == label)


def times(found: float) -> str:
    """Return a ratio as the pages write it."""
    return f"{found:.2f} times fewer"


def test_the_tables_are_those_of_the_figures() -> None:
    page = (PAGES / "when-scripts-pay-off.md").read_text(encoding="utf-8")
    assert put_tables(page, SUMMARY) == page
    assert (PAGES / "tokens.svg").read_text(encoding="utf-8") == draw_chart(SUMMARY)
    assert SUMMARY.framing_tokens == FRAMING_TOKENS


def test_both_public_sets_are_measured_whole() -> None:
    assert (TRAVEL.name, TRAVEL.tasks, TRAVEL.calls) == ("ComplexFuncBench", 1000, 5070)
    assert TRAVEL.largest_result_bytes > 125_000
    assert (WRITTEN.name, WRITTEN.tasks) == ("Scripts that models wrote", 138)
    assert TRAVEL.exact
    assert WRITTEN.exact


CLAIMS = [
    f"in {row(TRAVEL.by_calls, '2 calls').loses:.0%} of the tasks (median ratio".replace("%", " %"),
    f"(median ratio {row(TRAVEL.by_calls, '2 calls').parallel.median:.2f}",
    f"{row(TRAVEL.by_calls, '3 calls').parallel.median:.2f} times fewer tokens than perfectly",
    f"{times(row(TRAVEL.by_calls, '3 calls').one_by_one.median)} than one call a round",
    f"a loss in {row(TRAVEL.by_calls, '3 calls').loses:.0%} of the tasks".replace("%", " %"),
    f"At four calls it is {row(TRAVEL.by_calls, '4 calls').loses:.0%}, from five on none".replace("%", " %"),
    f"win in {row(TRAVEL.by_size, '250 to 1,000 tokens').loses:.0%} of the tasks of".replace("%", " %"),
    f"{times(row(TRAVEL.by_size, '30,000 and more tokens').parallel.median)} (ComplexFuncBench",
    f"{times(row(WRITTEN.by_size, '30,000 and more tokens').parallel.median)} (scripts that print",
    f"{times(row(TRAVEL.by_calls, '10 and more calls').parallel.median)} (ComplexFuncBench) and",
    f"{times(row(WRITTEN.by_calls, '10 and more calls').parallel.median)} (scripts that models wrote)",
    f"{row(TRAVEL.by_calls, '10 and more calls').one_by_one.median:.2f} and "
    + f"{times(row(WRITTEN.by_calls, '10 and more calls').one_by_one.median)} than one call a round",
    f"{TRAVEL.totals['parallel'].fresh / TRAVEL.totals['script'].fresh:.2f} times fewer tokens as scripts",
    f"{times(WRITTEN.totals['parallel'].fresh / WRITTEN.totals['script'].fresh)} (scripts",
]


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_sentence_with_a_figure_has_it_from_the_figures(claim: str) -> None:
    assert claim in text_of(PAGES / "when-scripts-pay-off.md")


def test_from_five_calls_on_no_script_loses_and_none_of_the_smallest_wins_by_much() -> None:
    assert all(each.loses == 0 for each in TRAVEL.by_calls[3:])
    assert TRAVEL.by_size[0].label == "250 to 1,000 tokens"


def test_the_readme_says_the_break_even_and_where_scripts_lose() -> None:
    readme = text_of(ROOT / "README.md")
    two, three, ten = (row(TRAVEL.by_calls, label) for label in ("2 calls", "3 calls", "10 and more calls"))
    assert (
        f"| 2 calls | {two.one_by_one.median:.2f} | {two.parallel.median:.2f} | {two.loses:.0%} |" in readme
    )
    assert f"| 3 calls | {three.one_by_one.median:.2f} | {three.parallel.median:.2f} |" in readme
    assert (
        f"| 10 and more | {ten.one_by_one.median:.2f} | {ten.parallel.median:.2f} | {ten.loses:.0%} |"
        in readme
    )
