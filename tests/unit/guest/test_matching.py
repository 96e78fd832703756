"""Patterns read what the guards give."""

from __future__ import annotations

import pytest

from tests.unit.guest.harness import run

PRELUDE = """
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable
import datetime
class Color(Enum):
    RED = 1
    BLUE = 2
@dataclass
class Point:
    x: int
    y: int = 0
class Pair(NamedTuple):
    a: int
    b: int
class Mix:
    format = None
class Text(Mix, str):
    pass
class Sub(str):
    pass
LIMIT = 5
class Const:
    TEN = 10
"""


def outcome_of(subject: str, cases: str) -> object:
    body = "\n".join(f"    case {case}" for case in cases.split(";;"))
    outcome = run(f"{PRELUDE}r = 'none'\nmatch {subject}:\n{body}\nr")
    assert outcome.finish.status == "ok", outcome.finish.errors
    return outcome.finish.value


@pytest.mark.parametrize(
    ("subject", "cases", "value"),
    [
        ("3", "1 | 2: r = 'low';;int(n) if n > 2: r = n", 3),
        ("'a'", "str(): r = 's'", "s"),
        ("Sub('q')", "Sub(t): r = t.upper()", "Q"),
        ("Point(1, 2)", "Point(x=0): r = 0;;Point(1, y=b): r = b", 2),
        ("Point(1, 2)", "Point(a, b): r = [a, b]", [1, 2]),
        ("Pair(1, 2)", "Pair(a=1, b=z): r = z", 2),
        ("Color.RED", "Color.BLUE: r = 'b';;Color.RED: r = 'r'", "r"),
        ("10", "Const.TEN: r = 'ten'", "ten"),
        ("{'k': 10, 'z': 1}", "{'k': Const.TEN, **rest}: r = rest", {"z": 1}),
        ("{1: 'x'}", "{Color.RED.value: v}: r = v", "x"),
        ("[1, [2, 3]]", "[a, [b, *c]]: r = [a, b, c]", [1, 2, [3]]),
        ("datetime.date(2024, 5, 6)", "datetime.date(year=y): r = y", 2024),
        ("None", "None: r = 'n'", "n"),
        ("-1.5", "-1.5: r = 'm'", "m"),
        ("1 + 2j", "1 + 2j: r = 'c'", "c"),
        ("Point(1)", "object(): r = 'o'", "o"),
        ("5", "Point(x=1): r = 'p';;_: r = 'other'", "other"),
        ("Point(1)", "Point(missing=m): r = m;;_: r = 'no'", "no"),
        ("(1, 2)", "tuple(t): r = list(t)", [1, 2]),
        ("[Point(3)]", "[Point(x=3) as p]: r = p.y", 0),
    ],
)
def test_patterns_match_as_in_plain_python(subject: str, cases: str, value: object) -> None:
    assert outcome_of(subject, cases) == value


@pytest.mark.parametrize(
    ("subject", "case"),
    [
        ("'{0.__init__}'", "str(format=f): r = 'ESCAPED'"),
        ("Sub('{0.__init__}')", "Sub(format=f): r = 'ESCAPED'"),
        ("Text('{0.__init__}')", "Mix(format=f): r = f(1)"),
        ("Text('{0.__init__}')", "object(format=f): r = f(1)"),
        ("'{0.__init__}'", "HasFormat(format=f): r = f(1)"),
    ],
)
def test_patterns_read_nothing_that_the_guards_refuse(subject: str, case: str) -> None:
    protocol = "@runtime_checkable\nclass HasFormat(Protocol):\n    format: object\n"
    outcome = run(f"{PRELUDE}{protocol}r = None\nmatch {subject}:\n    case {case}\nr")
    assert outcome.finish.value is None
    assert outcome.finish.status == "failed" or outcome.finish.value_source == "last_expression"


def test_an_attribute_that_the_object_does_not_give_matches_no_pattern() -> None:
    outcome = run(
        "try:\n    [].x\nexcept AttributeError as error:\n    match error:\n"
        "        case AttributeError(obj=leaked):\n            print('ESCAPED', leaked)\n"
        "        case AttributeError(args=args):\n            print(args)\n"
    )
    assert outcome.output == "(\"'list' object has no attribute 'x'\",)\n"


@pytest.mark.parametrize(
    "case", ["Point(1, 2, 3): pass", "Const(1): pass", "len(): pass", "Color.RED(): pass", "str(a, b): pass"]
)
def test_impossible_class_patterns_raise_type_error(case: str) -> None:
    outcome = run(f"{PRELUDE}match 'a':\n    case {case}")
    assert [error.exception for error in outcome.finish.errors] == ["TypeError"]
