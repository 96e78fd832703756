"""Properties of tools: any type, any arguments, any result."""

from __future__ import annotations

import ast
import collections
import datetime as dt
import enum
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

import pytest
import rfc8785
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from bascule.tools import AnyTool, ArgumentsInvalid, ToolDefinitionError, canonical_json, render_stubs, tool
from bascule.tools.canonical import check_plain

BRIEF = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: float = 0.0


class Inner(BaseModel):
    amount: Decimal = Decimal("0.5")
    day: dt.date | None = None
    tags: list[str] = Field(default_factory=list[str])


class Outer(BaseModel):
    inner: Inner
    by_name: dict[str, Inner] = Field(default_factory=dict[str, Inner])


class Opaque: ...


GOOD: list[Any] = [
    str, int, float, bool, None, Any, Decimal, dt.date, dt.datetime, dt.time, dt.timedelta, Color, Point,
    Inner, Outer, Literal["a", 1], Annotated[int, Field(ge=0)], dict, list, bytes,
]  # fmt: skip
BAD: list[Any] = [object, Opaque, Callable[[], int], type[int], SecretStr, complex, collections.deque[Opaque]]

good_types = st.recursive(
    st.sampled_from(GOOD),
    lambda inner: st.one_of(
        inner.map(lambda each: list[each]),  # type: ignore[valid-type]
        inner.map(lambda each: dict[str, each]),  # type: ignore[valid-type]
        st.tuples(inner, inner).map(lambda pair: tuple.__class_getitem__(pair)),
        inner.map(lambda each: each | None if each is not None else int | None),
    ),
    max_leaves=4,
)
any_types = st.one_of(good_types, st.sampled_from(BAD), st.sampled_from(BAD).map(lambda each: list[each]))  # type: ignore[valid-type]

texts = st.text(max_size=8)
plain_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**80), 2**80),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
        st.sampled_from(["2025-06-30", "2025-06-30T00:00:00", "PT1H", "10:00", "1.50", "red", "a"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(texts, inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["inner", "amount", "day", "tags", "by_name", "x", "y"]), inner, max_size=4
        ),
    ),
    max_leaves=12,
)


def taking(annotation: Any) -> AnyTool:
    def take(it: Any) -> None:
        """Take it."""

    take.__annotations__ = {"it": annotation}
    return tool(take)


def assert_parameter_is_named(error: ToolDefinitionError) -> None:
    assert error.location is not None
    assert "parameter it" in str(error)


def assert_problems_are_bounded(error: ArgumentsInvalid) -> None:
    assert error.problems
    assert all(problem.path.startswith("it") for problem in error.problems)
    assert len(error.for_script()) < 20_000


@BRIEF
@given(any_types)
def test_a_type_gives_a_schema_and_a_stub_or_a_definition_error(annotation: Any) -> None:
    try:
        made = taking(annotation)
    except ToolDefinitionError as error:
        assert_parameter_is_named(error)
        return
    json.dumps(made.parameters)
    ast.parse(render_stubs([made], detail="full"))


@BRIEF
@given(good_types, plain_values)
def test_arguments_are_refused_with_problems_or_have_a_fixed_canonical_form(
    annotation: Any, value: Any
) -> None:
    made = taking(annotation)
    try:
        arguments = made.validate({"it": value})
    except ArgumentsInvalid as error:
        assert_problems_are_bounded(error)
        return
    again = made.validate(arguments.plain)
    assert again.canonical == arguments.canonical
    assert made.validate(json.loads(arguments.canonical)).canonical == arguments.canonical


def same(read: Any, written: Any) -> bool:
    """Compare values; a float without fraction may be read as an integer that is the same double."""
    if isinstance(written, list):
        return len(read) == len(written) and all(map(same, read, written))  # pyright: ignore
    if isinstance(written, dict):
        return read.keys() == written.keys() and all(same(read[key], written[key]) for key in written)  # pyright: ignore
    return float(read) == written if isinstance(written, float) else bool(read == written)


@BRIEF
@given(plain_values)
def test_canonical_json_is_rfc_8785_wherever_that_has_a_form(value: Any) -> None:
    text = canonical_json(value)
    try:
        assert text == rfc8785.dumps(value)
    except rfc8785.IntegerDomainError:
        assert same(json.loads(text), value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_canonical_floats_mean_the_same_number(number: float) -> None:
    assert float(canonical_json(number)) == number


@BRIEF
@given(st.recursive(
    st.one_of(plain_values, st.floats(), st.binary(max_size=3), st.text(st.characters(), max_size=3)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.integers() | texts, inner, max_size=3),
    max_leaves=8,
))  # fmt: skip
def test_what_counts_as_plain_is_what_canonical_json_can_write(value: Any) -> None:
    try:
        check_plain(value, path="")
    except ValueError:
        return
    assert same(json.loads(canonical_json(value)), value)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.sampled_from(Color),
)
hashables = st.one_of(scalars, st.tuples(st.integers(), texts))
returned = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(texts, inner, max_size=4),
        st.dictionaries(st.dates() | st.sampled_from(Color), inner, max_size=3),
        st.sets(hashables, max_size=4),
        st.builds(Point, st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
        st.builds(Inner, amount=st.decimals(allow_nan=False, allow_infinity=False, places=2)),
    ),
    max_leaves=12,
)


def expected(value: Any) -> Any:
    """State the JSON form of a result as simply as can be."""
    match value:
        case enum.Enum():
            return expected(value.value)
        case None | bool() | int() | float() | str():
            return value
        case BaseModel():
            return {name: expected(getattr(value, name)) for name in type(value).model_fields}
        case Decimal():
            return str(value)
        case dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return value.total_seconds()
        case dict():
            return {str(expected(key)): expected(item) for key, item in value.items()}  # pyright: ignore
        case Point():
            return {"x": value.x, "y": value.y}
        case set():
            return sorted(map(expected, value), key=lambda item: json.dumps(item, sort_keys=True))  # pyright: ignore
        case _:
            return list(map(expected, value))


@tool
def give():  # type: ignore[no-untyped-def]
    """Give anything."""


@BRIEF
@given(returned)
def test_a_result_reads_as_its_json_form(value: Any) -> None:
    assert json.dumps(json.loads(give.dump_result(value))) == json.dumps(expected(value))


@BRIEF
@given(good_types.filter(lambda each: each is not bytes), plain_values)
def test_what_a_tool_takes_it_can_give_back(annotation: Any, value: Any) -> None:
    made = taking(annotation)
    try:
        arguments = made.validate({"it": value})
    except ArgumentsInvalid:
        return
    if "bytes" in str(annotation):
        return
    back = tool(returns=annotation, name="give")(give.function)
    back.dump_result(arguments.values["it"])


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_description_leaves_the_stub_valid_python(text: str) -> None:
    def take(it: int) -> None: ...

    take.__doc__ = text
    made = tool(take)
    for level in ("full", "signatures", "names"):
        tree = ast.parse(render_stubs([made], detail=level))
        assert len(tree.body) == 1


def test_the_strategies_reach_both_outcomes() -> None:
    with pytest.raises(ToolDefinitionError):
        taking(BAD[0])
    assert math.isfinite(taking(float).validate({"it": 1}).values["it"])


class _Tagged(BaseModel):
    tags: set[str]
    inner: dict[str, frozenset[int]] = Field(default_factory=dict[str, frozenset[int]])


@BRIEF
@given(st.lists(st.integers()), st.lists(st.text("abcdefgh", max_size=3)), st.randoms(use_true_random=False))
def test_equal_sets_are_the_same_bytes(numbers: list[int], tags: list[str], chance: Any) -> None:
    @tool
    def keep(numbers: set[int], tagged: list[_Tagged | None], order: list[int]) -> None:
        """Keep."""

    def validate() -> Any:
        tagged = {"tags": list(tags), "inner": {"x": list(numbers)}}
        return keep.validate({"numbers": list(numbers), "tagged": [tagged, None], "order": [3, 1, 2]})

    first = validate()
    chance.shuffle(numbers)
    chance.shuffle(tags)
    second = validate()
    assert first.canonical == second.canonical
    assert first.values == second.values
    assert first.plain["order"] == [3, 1, 2]
    assert first.values["numbers"] == set(numbers)
