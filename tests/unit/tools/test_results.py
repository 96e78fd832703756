"""What becomes of a tool's result, and which results are bugs."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import gc
import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    computed_field,
    field_serializer,
)

from bascule.tools import AnyTool, ResultInvalid, tool
from bascule.tools.canonical import MAX_DEPTH
from bascule.tools.results import _is_plain, _NoPlainFormError, _plain, to_plain  # pyright: ignore[reportPrivateUsage]
from bascule.tools.returns import LARGE_BYTES


class Color(enum.Enum):
    RED = "red"
    ZERO = Decimal("0.0")


class Word(str, enum.Enum):  # noqa: UP042  (the old form is what suites use)
    YES = "yes"


class Size(enum.IntEnum):
    LARGE = 2


class Text(str):
    """A str with an opinion."""

    __slots__ = ()

    def __str__(self) -> str:
        return "no"


class Names(list[str]):
    """A list by another name."""


class Number(int):
    """An int by another name."""


class Ratio(float):
    """A float by another name."""


class Point(NamedTuple):
    x: int
    y: Decimal = Decimal("0.10")


@dataclasses.dataclass
class Leg:
    origin: str
    on: dt.date


class Base(BaseModel):
    a: int


class Derived(Base):
    b: Decimal


class Holder(BaseModel):
    base: Base
    secret: str = Field("s", exclude=True)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    known: int


class Serialized(BaseModel):
    when: dt.date
    tags: set[str]
    inner: Base

    @field_serializer("when")
    def write(self, value: dt.date) -> str:
        """Write the year only."""
        return str(value.year)


class Computed(BaseModel):
    a: Decimal

    @computed_field
    def double(self) -> Decimal:
        """Give twice a."""
        return 2 * self.a


class Dates(RootModel[list[dt.date]]):
    """A list by another name."""


class Marked(BaseModel):
    a: Annotated[Decimal, PlainSerializer(float)]


def giving(annotation: Any = None) -> AnyTool:
    """Make a tool that declares this result, or none."""

    def give():  # type: ignore[no-untyped-def]
        """Give it."""

    return tool(returns=annotation)(give) if annotation is not None else tool(give)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (2**70, 2**70),
        (1.5, 1.5),
        ("é\n", "é\n"),
        (Decimal("10.50"), "10.50"),
        (Color.RED, "red"),
        (Color.ZERO, "0.0"),
        (Word.YES, "yes"),
        (Size.LARGE, 2),
        (Text("yes"), "yes"),
        (Ratio(0.5), 0.5),
        (dt.date(2025, 6, 30), "2025-06-30"),
        (dt.datetime(2025, 6, 30, 1, 2, 3, 4, dt.UTC), "2025-06-30T01:02:03.000004+00:00"),
        (dt.time(1, 2), "01:02:00"),
        (dt.timedelta(minutes=1.5), 90.0),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/a/b"), "/a/b"),
        ((1, "a"), [1, "a"]),
        (Names(["a"]), ["a"]),
        (Number(3), 3),
        ([1, (2, [3])], [1, [2, [3]]]),
        ({3, 1, 20}, [1, 20, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({(1, 2): 1}, {"[1, 2]": 1}),
        (
            {1: "a", None: "b", True and 2.5: "c", Size.LARGE: "d"},
            {"1": "a", "None": "b", "2.5": "c", "2": "d"},
        ),
        ({dt.date(2025, 1, 1): Decimal(1)}, {"2025-01-01": "1"}),
        ({Word.YES: 1}, {"yes": 1}),
        (collections.OrderedDict(b=1, a=Decimal(2)), {"b": 1, "a": "2"}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (Point(1), {"x": 1, "y": "0.10"}),
        (Leg("A", dt.date(2025, 1, 1)), {"origin": "A", "on": "2025-01-01"}),
        ([Base(a=1)], [{"a": 1}]),
        (Holder(base=Derived(a=1, b=Decimal("2.0")), secret="s"), {"base": {"a": 1, "b": "2.0"}}),
        (Open(known=1, more=Decimal(3)), {"known": 1, "more": "3"}),  # type: ignore[call-arg]
        (
            Serialized(when=dt.date(2025, 1, 1), tags={"b", "a"}, inner=Derived(a=1, b=Decimal(2))),
            {"when": "2025", "tags": ["a", "b"], "inner": {"a": 1, "b": "2"}},
        ),
        (Computed(a=Decimal("1.5")), {"a": "1.5", "double": "3.0"}),
        (Marked(a=Decimal("1.5")), {"a": 1.5}),
        (Dates([dt.date(2025, 1, 1)]), ["2025-01-01"]),
        ([1.5, Ratio(0.5), UUID(int=0)], [1.5, 0.5, str(UUID(int=0))]),
    ],
)
def test_a_value_has_exactly_one_json_form(value: object, plain: Any) -> None:
    decoded = json.loads(giving().dump_result(value))
    assert decoded == plain
    assert json.dumps(decoded) == json.dumps(plain)


def cyclic() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


async def coroutine() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("make", "path", "words"),
    [
        (lambda: math.nan, "", "not a JSON number"),
        (lambda: [1.0, Ratio("inf")], "[1]", "not a JSON number"),
        (lambda: {"a": [{"b c": math.inf}]}, 'a[0]["b c"]', "not a JSON number"),
        (lambda: {"a": Decimal("NaN")}, "a", "not a number"),
        (lambda: Leg("A", b"raw"), "on", "return base64"),  # type: ignore[arg-type]  # pyright: ignore
        (lambda: {1: bytearray(b"raw")}, '["1"]', "return base64"),
        (lambda: {1: 1, "1": 2}, "", "two keys become the same text"),
        (lambda: {object(): 1}, "", "object is not data"),
        (lambda: {((1,),): 1}, "", "nested deeper"),
        (lambda: {"k": {"a": 1}.values()}, "k", r"return list\(\.\.\.\)"),
        (lambda: iter([1]), "", "list_iterator is not data"),
        (lambda: object(), "", "return a dict, a model or text"),
        (lambda: Base, "", "is not data"),
        (lambda: Leg, "", "is not data"),
        (lambda: "\ud800", "", "surrogate"),
        (lambda: 10**5000, "", "cannot carry"),
    ],
)  # fmt: skip
def test_what_has_no_json_form_is_a_bug_at_a_place(make: Callable[[], object], path: str, words: str) -> None:
    with pytest.raises(ResultInvalid, match=words) as caught:
        giving().dump_result(make())
    assert caught.value.code == "result_not_json"
    assert caught.value.path == path
    assert "a bug in the tool, not in the script" in caught.value.for_script()
    assert path in caught.value.for_script()


def test_a_cycle_is_stopped_at_the_depth_limit() -> None:
    with pytest.raises(ResultInvalid, match="cyclic") as caught:
        giving().dump_result(cyclic())
    assert caught.value.path == "[0]" * 64


def test_a_coroutine_that_was_not_awaited_is_named_so() -> None:
    waiting = coroutine()
    with pytest.raises(ResultInvalid, match="never awaited"):
        giving().dump_result(waiting)
    waiting.close()


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[dict[str, Any]], [Base(a=1)]),
        (Base, {"a": 1}),
        (Base, Derived(a=1, b=Decimal(1))),
        (float, 3),
        (float, Decimal("1.5")),
        (str, Decimal("1.5")),
        (Decimal, 1.5),
        (dt.date, "2025-06-30"),
        (dt.timedelta, dt.timedelta(1)),
        (Point, Point(1)),
        (list[Any], (1, 2)),
        (set[int], [1, 2]),
        (dict[int, str], {1: "a"}),
        (Computed, {"a": "1"}),
        (Dates, Dates([dt.date(2025, 1, 1)])),
        (Any, object),
        (None, None),
        (Annotated[int, AfterValidator(lambda n: n)], 1),
    ],
)  # fmt: skip
def test_an_honest_result_is_not_refused(annotation: Any, value: object) -> None:
    made = giving(annotation)
    if value is object:
        value = {"any": "thing"}
    made.dump_result(value)


def explode(value: Any) -> Any:
    raise KeyError("boom")


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (int, "many", ""),
        (list[Base], [{"a": 1}, {"a": "x"}], "[1].a"),
        (dict[str, list[int]], {"k": [1, "x"]}, "k[1]"),
        (type(None), 3, ""),
        (Annotated[int, AfterValidator(explode)], 3, ""),
    ],
)
def test_a_result_of_another_type_is_a_bug_at_a_place(annotation: Any, value: object, path: str) -> None:
    with pytest.raises(ResultInvalid) as caught:
        giving(annotation).dump_result(value)
    assert caught.value.code == "result_type_mismatch"
    assert caught.value.path == path
    assert "x" not in caught.value.for_script().replace(path, "").replace("text", "")


def test_plain_containers_are_not_copied_or_changed() -> None:
    rows: list[dict[str, Any]] = [{"a": 1, "when": dt.date(2025, 1, 1)}, {"a": 2.5, "when": None}]
    assert giving().dump_result(rows) == b'[{"a":1,"when":"2025-01-01"},{"a":2.5,"when":null}]'
    assert rows[0]["when"] == dt.date(2025, 1, 1)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)
ODD = st.recursive(
    PLAIN | st.decimals(allow_nan=False) | st.dates() | st.tuples(st.integers(), st.text(max_size=2)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.integers() | st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(PLAIN | ODD)
def test_the_quick_look_at_a_whole_value_says_what_the_look_at_each_part_says(value: object) -> None:
    try:
        slow: object = _plain(value, 1)
    except _NoPlainFormError:
        assert not _is_plain(value)
        return
    if _is_plain(value):
        assert slow == value


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1])
def test_depth_is_bounded_alike_for_plain_values(depth: int) -> None:
    value: object = "leaf"
    for _ in range(depth):
        value = [value]
    if depth <= MAX_DEPTH:
        assert to_plain("t", value) == value
    else:
        with pytest.raises(ResultInvalid):
            to_plain("t", value)


def test_the_collector_is_as_it_was_after_a_large_result() -> None:
    rows = [{"n": number} for number in range(20_000)]

    @tool(effects="read")
    def many() -> list[dict[str, int]]:
        """Give many."""
        return rows

    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            assert len(many.dump_result(rows)) > LARGE_BYTES
            assert gc.isenabled() is enabled
        finally:
            gc.enable()
