"""The canonical spelling of JSON, with the examples of RFC 8785."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from bascule.tools.canonical import canonical_json, check_plain, join_path


def test_the_example_of_rfc_8785_section_3_2() -> None:
    value: Any = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\u002f",
        "literals": [None, True, False],
    }
    assert canonical_json(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_sorted_by_utf_16_code_units() -> None:
    value: Any = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    order = [value[key] for key in sorted(value, key=lambda key: key.encode("utf-16-be"))]
    assert canonical_json(value).decode().translate({ord(c): None for c in "\x80"}).count(":") == 7
    assert order == [2, 4, 6, 7, 1, 5, 3]
    assert [int(part[0]) for part in canonical_json(value).decode().split(":")[1:]] == order


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**53 + 1, "9007199254740993"),
        (-(2**70), "-1180591620717411303424"),
        (-0.0, "0"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (5e-324, "5e-324"),
    ],
)
def test_numbers_have_one_spelling_and_integers_are_exact(value: float, text: str) -> None:
    assert canonical_json(value).decode() == text


def test_the_first_fault_of_a_value_is_found_with_its_path() -> None:
    for value, message in (
        ({"a": [1, {"b c": math.inf}]}, 'x.a[1]["b c"]: inf is not'),
        ({"a": {"\ud800": 1}}, "x.a: a key holds half"),
        ([b""], r"x[0]: a bytes is not plain data"),
        ((1,), "x: a tuple is not plain data"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            check_plain(value, path="x")


def test_paths_quote_what_is_no_identifier() -> None:
    assert join_path("", "a") == "a"
    assert join_path("a", "b") == "a.b"
    assert join_path("a", 3) == "a[3]"
    assert join_path("a", "b c") == 'a["b c"]'
    assert len(join_path("", "\n" * 1000)) < 100
