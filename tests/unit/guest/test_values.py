"""Values become plain data or a clear refusal, and never run anything of the script."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import json
import math
import types
import uuid
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, NamedTuple

import pytest

from bascule.guest.value_text import bounded_repr, stable_repr, stable_str
from bascule.guest.values import MAX_DEPTH, render_result, to_plain


class Point(NamedTuple):
    x: int
    y: float


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Row:
    kind: ClassVar[str] = "row"
    name: str
    tags: list[str] = field(default_factory=list[str])
    start: InitVar[int] = 0


@dataclass(slots=True)
class Slim:
    when: datetime.date


class Liar(dict[str, int]):
    def items(self) -> Any:
        raise AssertionError("the script's items() must not run")

    def __iter__(self) -> Any:
        raise AssertionError("the script's __iter__ must not run")


class Number(int):
    pass


class Share(float):
    pass


class Text(str):
    def __str__(self) -> str:
        raise AssertionError("the script's __str__ must not run")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (1.5, 1.5),
        ("é", "é"),
        ((1, (2, 3)), [1, [2, 3]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({1: "a", None: "b", (1, 2): "c"}, {"1": "a", "None": "b", "[1, 2]": "c"}),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.values(), [1]),
        ({"a": 1}.items(), [["a", 1]]),
        (collections.deque([1, 2]), [1, 2]),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (types.SimpleNamespace(a=1), {"a": 1}),
        (Point(1, 2.0), {"x": 1, "y": 2.0}),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        ({Colour.RED: 1}, {"red": 1}),
        (Row("a", ["t"]), {"name": "a", "tags": ["t"]}),
        (Slim(datetime.date(2026, 1, 2)), {"when": "2026-01-02"}),
        (datetime.datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),
        (datetime.time(3, 4), "03:04:00"),
        (datetime.timedelta(minutes=1), 60.0),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Number(3), 3),
        (Share(0.5), 0.5),
        (Slim.__new__(Slim), {"when": None}),
        (Row.__new__(Row), {"name": None, "tags": None}),
        (Liar(a=1), {"a": 1}),
        (Text("t"), "t"),
    ],
)
def test_a_value_becomes_plain_data(value: object, plain: object) -> None:
    assert to_plain(value) == plain
    assert render_result(value) == (plain, [])
    assert json.loads(json.dumps(to_plain(value))) == plain


def _endless() -> Any:
    items: list[Any] = []
    items.append({"a": items})
    return items


def _deep() -> Any:
    value: Any = 1
    for _ in range(MAX_DEPTH + 1):
        value = [value]
    return value


def _coroutine() -> Any:
    async def never() -> None: ...

    coroutine: Any = never()
    coroutine.close()
    return coroutine


class Opaque:
    def __repr__(self) -> str:
        return "Opaque()"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


_WITHOUT_PLAIN_FORM: list[tuple[object, str]] = [
    ({"a": [math.nan]}, r"\.a\[0\]: nan has no JSON form"),
    (math.inf, "inf has no JSON form"),
    (_endless(), r"\[0\]\.a: contains itself"),
    (_deep(), "nests deeper than"),
    (b"x", "bytes have no JSON form"),
    ((n for n in [1]), r"write list\("),
    (map(str, ()), r"write list\("),
    (Opaque(), "a value of type Opaque has no JSON form"),
    ("\ud800", "lone surrogates"),
    (10**5000, "too many digits"),
    ([0] * 200_000, "holds more than"),
    (types.MappingProxyType({}), r"pass dict\(value\)"),
    (_coroutine(), "write `await`"),
    (lambda: 0, "a value of type function has no JSON form"),
]


@pytest.mark.parametrize(("value", "message"), _WITHOUT_PLAIN_FORM, ids=lambda value: type(value).__name__)
def test_what_has_no_plain_form_is_refused_as_an_argument_and_replaced_in_a_result(
    value: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        to_plain(value)
    plain, notes = render_result(value)
    assert notes
    assert notes[0].code == "result_not_json"
    json.dumps(plain, allow_nan=False).encode()


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (b"caf\xc3\xa9", "café"),
        (b"\xff", "/w=="),
        ([Opaque()], ["Opaque()"]),
        (Broken(), "<Broken>"),
        ("a\ud800", "a\\ud800"),
    ],
)
def test_a_result_without_a_json_form_is_replaced_by_text(value: object, plain: object) -> None:
    assert render_result(value)[0] == plain


def test_a_result_has_a_bounded_number_of_notes() -> None:
    assert len(render_result([math.nan] * 100)[1]) <= 5


class Pretender:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return dict


def _at_the_end_of_the_stack(value: object) -> Any:
    try:
        return _at_the_end_of_the_stack(value)
    except RecursionError:
        return render_result(value)


def test_a_result_is_rendered_even_where_the_stack_ends() -> None:
    plain, notes = _at_the_end_of_the_stack(_deep())
    assert isinstance(plain, str | list)
    assert notes


def test_a_class_cannot_pretend_to_be_another() -> None:
    with pytest.raises(ValueError, match="Pretender"):
        to_plain(Pretender())


class WithTrap:
    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("nothing of the script may run")

    def __repr__(self) -> str:
        return "trap"


def test_reading_a_value_runs_nothing_of_its_class() -> None:
    assert render_result(WithTrap())[0] == "trap"


def test_text_holds_no_memory_addresses() -> None:
    assert stable_repr(object()) == "<object object>"
    assert stable_repr([object(), (object(),)]) == "[<object object>, (<object object>,)]"
    assert stable_str(print) == "<built-in function print>"
    assert stable_str({"f": object(), "t": {object()}}) == "{'f': <object object>, 't': {<object object>}}"
    assert stable_repr(frozenset({object()})) == "frozenset({<object object>})"


def test_text_of_the_script_is_left_alone() -> None:
    assert stable_str("lives at 0xdeadbeef") == "lives at 0xdeadbeef"
    assert stable_repr(["lives at 0xdeadbeef"]) == "['lives at 0xdeadbeef']"
    assert stable_str(ValueError("bad pointer at 0x1")) == "bad pointer at 0x1"


def test_a_long_repr_is_cut() -> None:
    assert len(bounded_repr("x" * 10_000)) < 600
