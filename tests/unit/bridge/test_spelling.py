"""Numbers on cards: as the tool receives them, and otherwise the very bytes a decision is bound to."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from bascule.bridge.spelling import MAX_PLACES, find_whole_floats, spell
from bascule.tools import tool


class Item(BaseModel):
    price: float
    count: int


@tool(effects="once")
def order(total: float, items: list[Item], rates: dict[str, float], n: int, note: str = "30") -> None:
    """Order."""


def spelled(**arguments: object) -> str:
    valid = order.validate(arguments)
    return spell(valid.canonical, find_whole_floats(valid.values)).decode()


def test_whole_floats_are_spelled_so_wherever_they_stand_and_nothing_else_is() -> None:
    shown = spelled(total=30, items=[{"price": 2, "count": 2}], rates={"a": 1, "b": 1.5}, n=30)
    assert shown == (
        '{"items":[{"count":2,"price":2.0}],"n":30,"note":"30","rates":{"a":1.0,"b":1.5},"total":30.0}'
    )


@pytest.mark.parametrize("total", [0.0, -0.0, 1e16, 2.0**60, 1e300, 0.1, 5e-324])
def test_the_spelling_says_the_same_number(total: float) -> None:
    shown = spelled(total=total, items=[], rates={}, n=2**70)
    assert json.loads(shown)["total"] == total
    assert isinstance(json.loads(shown)["total"], float)
    assert f'"n":{2**70}' in shown


def test_names_that_look_like_ways_are_no_ways() -> None:
    shown = spelled(total=0.5, items=[], rates={"a": 0.5, "a.b": 1, "\u202e": 1}, n=1)
    assert '"a.b":1.0' in shown
    assert '"\u202e":1.0' in shown


def test_what_is_spelled_is_bounded() -> None:
    shown = spelled(total=1, items=[], rates={f"k{n:04}": 1 for n in range(1000)}, n=1)
    assert shown.count("1.0") == MAX_PLACES
    assert len(json.loads(shown)["rates"]) == 1000
