"""What a person is shown of untrusted text: always printable, on one line, and never ambiguous."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bascule.bridge.display import show, show_block, show_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, 100 %", "plain text, 100 %"),
        ("", ""),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x1b[2J\x1b]0;title\x07", "\\u001b[2J\\u001b]0;title\\u0007"),
        ("pay \u202eDSU 001", "pay \\u202eDSU 001"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("rep\u043ert", "rep\\u043ert"),
        ("p\u0430ypal.com", "p\\u0430ypal.com"),
        ("\uff41dmin", "\\uff41dmin"),
        ("dotless \u0131d", "dotless \\u0131d"),
        ("Müller, Señor Ångström", "Müller, Señor Ångström"),
        ("Привет, мир", "Привет, мир"),
        ("日本語", "日本語"),
        ("на https://почта.рф/путь", "на https://\\u043f\\u043e\\u0447\\u0442\\u0430.\\u0440\\u0444/путь"),
        ("http://müller@例え.jp:80", "http://m\\u00fcller@\\u4f8b\\u3048.jp:80"),
        ("हिन्दी", "हिन्दी"),
        ("e\u0301", "e\\u0301"),
        ("हिंदी", "हिंदी"),
        ("\u0430\u0441\u0435", "\\u0430\\u0441\\u0435"),
        ("\ua4ee\ua4d1\ua4d1", "\\ua4ee\\ua4d1\\ua4d1"),
        ("\uff11\uff10\uff10", "\\uff11\\uff10\\uff10"),
        ("\U0001d429\U0001d41a\U0001d432", "\\U0001d429\\U0001d41a\\U0001d432"),
        ("1\u041e0", "1\\u041e0"),
        ("1\u09ea", "1\\u09ea"),
        ("2025年6月", "2025年6月"),
        ("musical\U0001d159blank", "musical\\U0001d159blank"),
        ("private \ue000 unassigned \u0378", "private \\ue000 unassigned \\u0378"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("no-break\u00a0space", "no-break\\u00a0space"),
        ("two  spaces", "two\u2423\u2423spaces"),
        (" lead", "\u2423lead"),
        ("trail ", "trail\u2423"),
        ("x" + " " * 40 + "y", "x\u2423x40\u2423y"),
        ("a forged \u2423 mark", "a forged \\u2423 mark"),
        ("a forged \\u202e escape", "a forged \\\\u202e escape"),
    ],
)
def test_text_is_shown_as_what_it_is(text: str, shown: str) -> None:
    assert show(text) == shown


def test_the_middle_of_a_long_text_is_cut_with_length_and_hash() -> None:
    shown = show("a" * 3000 + "b" * 3000, max_chars=100)
    assert shown.startswith("a" * 50 + " [... 5900 of 6000 characters left out, sha256 ")
    assert shown.endswith("b" * 50)


@given(st.text())
def test_whatever_is_shown_is_printable_and_on_one_line(text: str) -> None:
    shown = show(text)
    assert all(unicodedata.category(char)[0] != "C" for char in shown)
    assert not any(char in shown for char in "\n\r\t\u2028\u2029\u00a0")


@given(st.text(st.characters(exclude_characters=" ")), st.text(st.characters(exclude_characters=" ")))
def test_different_texts_are_shown_differently(first: str, second: str) -> None:
    assert (first == second) == (show(first) == show(second))


@given(st.dictionaries(st.text(st.characters(exclude_characters=" ", codec="utf-8")), st.integers()))
def test_shown_json_is_the_same_json(value: dict[str, int]) -> None:
    canonical = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert json.loads(show_json(canonical)) == value


def test_json_escapes_what_json_leaves_raw() -> None:
    assert show_json('{"to":"\u202emoc.elpmaxe","x":"\U000e0041"}'.encode()) == (
        '{"to":"\\u202emoc.elpmaxe","x":"\\udb40\\udc41"}'
    )


def test_a_host_in_json_ends_where_its_text_ends() -> None:
    data = json.dumps({"a": "https://ш.рф", "b": "ш"}, ensure_ascii=False, separators=(",", ":")).encode()
    assert show_json(data) == '{"a":"https://\\u0448.\\u0440\\u0444","b":"ш"}'
    assert json.loads(show_json(data)) == json.loads(data)


def test_no_text_can_pose_as_the_end_of_a_text_in_json() -> None:
    assert show_json('{"to":"x\uff02,\u201camount\u05f4:1"}'.encode()) == (
        '{"to":"x\\uff02,\\u201camount\\u05f4:1"}'
    )
    assert show("\u201cquoted\u201d") == "\u201cquoted\u201d"


def test_a_block_keeps_its_layout_and_nothing_else() -> None:
    assert show_block("a  b\n\tc\x1b[1m\\n") == "a  b\n\tc\\u001b[1m\\n"
