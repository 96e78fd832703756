"""What is read from docstrings of both forms."""

from __future__ import annotations

import pytest

from bascule.tools.docstrings import (
    MAX_SUMMARY_CHARS,
    read_description,
    read_parameters,
    read_returns,
    read_summary,
)

GOOGLE = """Move money. Between accounts.

    Slowly.

    Args:
        source (str): where from;
            an account
        target: where to
        not_a_parameter: nothing
            at all
        amount:
    Raises:
        source: not this one

    Returns:
        The id of the transfer.
    """


def test_a_google_docstring_is_read_section_by_section() -> None:
    description = read_description(GOOGLE)
    assert description.startswith("Move money. Between accounts.\n\nSlowly.")
    assert read_summary(description) == "Move money."
    names = ["source", "target", "amount"]
    assert read_parameters(description, names) == {
        "source": "where from; an account",
        "target": "where to",
    }
    assert read_returns(description) == "The id of the transfer."


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("List. Args: account: an id; month: a month. Returns: lines.", ["account", "month"],
         {"account": "an id", "month": "a month"}),
        ("Find. Args: origin, destination: codes; day: ISO date.", ["origin", "destination", "day"],
         {"origin": "codes", "destination": "codes", "day": "ISO date"}),
        ("Find. Args: checkin/checkout: ISO dates; limit 1..300.", ["checkin", "checkout", "limit"],
         {"checkin": "ISO dates", "checkout": "ISO dates", "limit": "1..300"}),
        ("Find. Args: filter: {a; b}; one of x; y.\nRaises: never.", ["filter"],
         {"filter": "{a; b}; one of x; y"}),
        ("Find. Args: department: sales (None = all);\n  active: leave out.", ["department", "active"],
         {"department": "sales (None = all)", "active": "leave out"}),
        ("Find. Args: filters; cursor: 0 first; more.", ["cursor"], {"cursor": "0 first; more"}),
        ("Find. Args: cursor; page.", ["cursor", "page"], {}),
        ("Find. Args: a: b.", [], {}),
        ("Find anything.", ["a"], {}),
    ],
)  # fmt: skip
def test_the_short_form_is_read_up_to_the_next_section(
    text: str, names: list[str], expected: dict[str, str]
) -> None:
    assert read_parameters(text, names) == expected


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("", ""),
        ("One line without a stop", "One line without a stop"),
        ("Send v1.2 of it. Then rest.", "Send v1.2 of it."),
        ("Broken\nover lines. More.", "Broken over lines."),
        ("Undo a match Returns: true.", "Undo a match"),
        ("x" * 300, "x" * (MAX_SUMMARY_CHARS - 1) + "…"),
    ],
)
def test_the_summary_is_the_first_sentence_on_one_bounded_line(text: str, summary: str) -> None:
    assert read_summary(text) == summary


def test_no_docstring_is_an_empty_description() -> None:
    assert read_description(None) == ""
    assert read_returns("") == ""
    assert read_returns("Do. Returns: a list. Raises: nothing.") == "a list."
