"""Validation of arguments: what converts, what is refused and in which words, what is canonical."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import math
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    field_validator,
)

from bascule.tools import AnyTool, ArgumentsInvalid, Problem, ToolDefinitionError, tool
from bascule.tools.problems import describe_problems


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclasses.dataclass
class Leg:
    origin: str
    on: dt.date | None = None


class Filter(BaseModel):
    min_amount: float = 0.0
    categories: list[Literal["travel", "meals"]] = Field(default_factory=list[Literal["travel", "meals"]])
    leg: Leg | None = None


class Alias(BaseModel):
    sender: str = Field(alias="from")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    known: int = 0


class Ignoring(BaseModel):
    model_config = ConfigDict(extra="ignore")
    known: int = 0


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def check(cls, value: int) -> int:
        """Refuse odd numbers."""
        if value % 2:
            raise ValueError("odd numbers are not for us")
        return value


def taking(annotation: Any, default: Any = ...) -> AnyTool:
    """Make a tool with one parameter `it`."""

    def take(it: Any) -> None:
        """Take it."""

    take.__annotations__ = {"it": annotation}
    if default is not ...:
        take.__defaults__ = (default,)
    return tool(take)


def refused(made: AnyTool, args: object) -> ArgumentsInvalid:
    with pytest.raises(ArgumentsInvalid) as caught:
        made.validate(args)
    return caught.value


def only(made: AnyTool, args: object) -> Problem:
    problems = refused(made, args).problems
    assert len(problems) == 1, problems
    return problems[0]


@pytest.mark.parametrize(
    ("annotation", "given", "value", "canonical"),
    [
        (str, "é", "é", '"é"'),
        (int, 3, 3, "3"),
        (int, 3.0, 3, "3"),
        (int, 2**63, 2**63, "9223372036854775808"),
        (float, 3, 3.0, "3"),
        (float, 1e21, 1e21, "1e+21"),
        (bool, True, True, "true"),
        (None, None, None, "null"),
        (Decimal, "10.50", Decimal("10.50"), '"10.50"'),
        (Decimal, 3, Decimal(3), '"3"'),
        (Decimal, 0.1, Decimal("0.1"), '"0.1"'),
        (dt.date, "2025-06-30", dt.date(2025, 6, 30), '"2025-06-30"'),
        (dt.date, "2025-06-30T00:00:00", dt.date(2025, 6, 30), '"2025-06-30"'),
        (dt.date, "2025-06-30 00:00:00", dt.date(2025, 6, 30), '"2025-06-30"'),
        (dt.datetime, "2025-06-30T10:00", dt.datetime(2025, 6, 30, 10), '"2025-06-30T10:00:00"'),
        (dt.datetime, "2025-06-30", dt.datetime(2025, 6, 30), '"2025-06-30T00:00:00"'),
        (dt.time, "10:00", dt.time(10), '"10:00:00"'),
        (dt.timedelta, "PT90S", dt.timedelta(seconds=90), '"PT1M30S"'),
        (dt.timedelta, 1.5, dt.timedelta(seconds=1.5), '"PT1.5S"'),
        (dt.timedelta, -60, dt.timedelta(seconds=-60), '"-PT1M"'),
        (bytes, "é", "é".encode(), '"é"'),
        (Color, "red", Color.RED, '"red"'),
        (tuple[int, str], [1, "a"], (1, "a"), '[1,"a"]'),
        (set[int], [2, 2], {2}, "[2]"),
        (Point, {"x": 1}, Point(1), "[1,0]"),
        (list[int] | int, 4.0, 4, "4"),
        (list[list[int]], [[1], [2.0, 3]], [[1], [2, 3]], "[[1],[2,3]]"),
        (list[dt.date], ["2025-01-02T00:00"], [dt.date(2025, 1, 2)], '["2025-01-02"]'),
        (dict[int, str], {"1": "a"}, {1: "a"}, '{"1":"a"}'),
        (Leg, {"origin": "A"}, Leg("A"), '{"on":null,"origin":"A"}'),
        (Filter, {}, Filter(), '{"categories":[],"leg":null,"min_amount":0}'),
        (Alias, {"from": "me"}, Alias(**{"from": "me"}), '{"from":"me"}'),
        (Open, {"known": 1, "more": 2}, Open(known=1, more=2), '{"known":1,"more":2}'),  # type: ignore[call-arg]
        (Ignoring, {"known": 1, "more": 2}, Ignoring(known=1), '{"known":1}'),
        (Any, {"b": [1, None], "a": "x"}, {"b": [1, None], "a": "x"}, '{"a":"x","b":[1,null]}'),
        (Annotated[int, BeforeValidator(int)], "3", 3, "3"),
    ],
)
def test_json_becomes_the_declared_type_and_one_canonical_text(
    annotation: Any, given: Any, value: Any, canonical: str
) -> None:
    made = taking(annotation)
    arguments = made.validate({"it": given})
    assert arguments.values == {"it": value}
    assert type(arguments.values["it"]) is type(value)
    assert arguments.canonical == f'{{"it":{canonical}}}'.encode()
    again = made.validate(arguments.plain)
    assert again.canonical == arguments.canonical
    assert again.digest == arguments.digest
    assert len(arguments.digest) == 64


@pytest.mark.parametrize(
    ("annotation", "given", "message", "got"),
    [
        (int, "3", "must be int, not text: write 3, without quotes", '"3"'),
        (int, "many", "must be int, not text", '"many"'),
        (int, "9" * 31, "must be int, not text", None),
        (int, True, "must be int, not a bool", "true"),
        (int, 3.5, "must be a whole number", "3.5"),
        (float, "3.5", "must be float, not text: write 3.5, without quotes", '"3.5"'),
        (bool, "true", "must be bool, not text: write True", '"true"'),
        (bool, "yes", "must be bool, not text", '"yes"'),
        (bool, 1, "must be bool: write True", "1"),
        (bool, 2, "must be a valid boolean", "2"),
        (str, 3, 'must be text: write "3"', "3"),
        (str, None, "must be a valid string", "null"),
        (str, True, "must be a valid string", "true"),
        (Decimal, "abc", "must be a valid decimal", '"abc"'),
        (Decimal, "NaN", "must be a finite number", '"NaN"'),
        (dt.date, "30.6.2025", None, '"30.6.2025"'),
        (dt.date, "2025-06-30T10:00:00", None, None),
        (dt.datetime, 1700000000, "must be a valid datetime", "1700000000"),
        (dt.timedelta, "soon", None, '"soon"'),
        (Annotated[int, Field(ge=1)], 0, "must be greater than or equal to 1", "0"),
        (Annotated[str, Field(min_length=3)], "ab", "must have at least 3 characters", '"ab"'),
        (Even, {"number": 3}, "odd numbers are not for us", "3"),
        (dict[int, str], {"x": "a"}, None, None),
        (int | dt.date, "soon", None, '"soon"'),
        (str, "x" * 100, None, None),
    ],
)
def test_what_could_hide_a_mistake_is_refused_with_what_to_write(
    annotation: Any, given: Any, message: str | None, got: str | None
) -> None:
    if annotation is str and given == "x" * 100:
        annotation = int
    problem = only(taking(annotation), {"it": given})
    assert problem.path.startswith("it")
    if message is not None:
        assert problem.message == message
    if got is not None:
        assert problem.got == got
    assert problem.got is None or len(problem.got) <= 80


def test_values_that_are_not_allowed_are_answered_with_those_that_are() -> None:
    for annotation in (Color, Literal["red", "blue"], Color | None):
        problem = only(taking(annotation), {"it": "green"})
        assert problem.allowed == ("red", "blue")
        assert problem.message == 'must be one of "red", "blue"'
    assert only(taking(Literal["red"]), {"it": 1}).allowed == ("red",)


def search(filter: Filter, legs: list[Leg], note: str = "", limit: int = 20) -> None:
    """Search."""


def test_all_problems_come_at_once_with_their_paths() -> None:
    error = refused(
        tool(search),
        {
            "filter": {"min_amount": "5", "categories": ["meals", "fun"], "leg": {"on": 3}, "min_amout": 1},
            "legs": [{"origin": "A"}, {"origin": 2, "orgin": "B"}],
            "limits": 3,
        },
    )
    found = {problem.path: problem.message for problem in error.problems}
    assert found["limits"] == "unknown, did you mean limit? (parameters: filter, legs, note, limit)"
    assert found["filter.min_amount"] == "must be float, not text: write 5.0, without quotes"
    assert found["filter.categories[1]"] == 'must be one of "travel", "meals"'
    assert found["filter.leg.origin"] == "missing, must be str"
    assert found["filter.leg.on"] == "must be a valid date"
    assert (
        found["filter.min_amout"] == "unknown, did you mean min_amount? (fields: min_amount, categories, leg)"
    )
    assert found["legs[1].origin"] == 'must be text: write "2"'
    assert found["legs[1].orgin"] == "unknown, did you mean origin? (fields: origin, on)"
    assert len(found) == len(error.problems) == 8
    assert error.code == "arguments_invalid"
    assert error.for_script() == str(error)
    assert str(error).startswith("search(): wrong arguments\n- ")
    assert str(error).endswith(
        'Write: search(filter: Filter, legs: list[Leg], note: str = "", limit: int = 20)'
    )


def test_missing_arguments_are_named_with_their_types() -> None:
    error = refused(tool(search), {})
    assert [str(problem) for problem in error.problems] == [
        "filter: missing, must be Filter",
        "legs: missing, must be list[Leg]",
    ]


def test_a_tool_without_parameters_says_so() -> None:
    def now() -> str:
        """Tell the time."""
        return "now"

    assert only(tool(now), {"zone": "UTC"}).message == "unknown (parameters: none)"
    assert tool(now).validate({}).canonical == b"{}"


def test_a_thousand_problems_are_neither_worked_out_nor_printed() -> None:
    error = refused(taking(list[int]), {"it": ["x"] * 1000})
    assert len(error.problems) == 100
    assert "and 80 more" in str(error)
    assert len(str(error)) < 4000
    error = refused(taking(int), {f"a{number}\n": 1 for number in range(1000)})
    assert len(error.problems) == 101
    assert error.problems[1].path == '["a0\\n"]'


def test_long_defaults_are_not_repeated_in_messages() -> None:
    assert "= ..." in str(refused(taking(str, "x" * 50), {"it": 1}))


@pytest.mark.parametrize(
    ("args", "path", "message"),
    [
        (3, "arguments", "must be an object, not a int"),
        ({"it": math.inf}, "it", "inf is not a JSON number; pass a finite number or None"),
        ({"it": "\ud800"}, "it", "the text holds half of a surrogate pair"),
        ({"it": [2**1024]}, "it[0]", "the integer is too large; pass it as text"),
        ({"it": {"a b": dt.date(2025, 1, 1)}}, 'it["a b"]', "a date is not plain data"),
        ({3: 4}, "arguments", "the key 3 is not a string"),
    ],
)
def test_what_is_not_json_is_refused_before_anything_is_read(args: object, path: str, message: str) -> None:
    problem = only(taking(Any), args)
    assert (problem.path, problem.message) == (path, message)


def test_depth_is_bounded() -> None:
    deep: Any = 1
    for _ in range(70):
        deep = [deep]
    assert only(taking(Any), {"it": deep}).message == "nested deeper than 64"


def test_branches_of_a_union_are_one_problem() -> None:
    problem = only(taking(int | bool), {"it": "3"})
    assert problem.message == "must be int, not text: write 3, without quotes; or must be bool, not text"


def test_a_recursive_type_is_described_at_any_depth() -> None:
    wrong: dict[str, Any] = {"children": [{"children": [{"chilren": []}]}]}
    problem = only(taking(Tree), {"it": wrong})
    assert problem.path == "it.children[0].children[0].chilren"
    assert problem.message == "unknown, did you mean children? (fields: children)"


class Tree(BaseModel):
    children: list[Tree] = Field(default_factory=list["Tree"])


def fail(value: Any) -> Any:
    raise KeyError("/etc/secret")


def test_a_validator_that_crashes_is_reported_without_its_text() -> None:
    problem = only(taking(Annotated[int, BeforeValidator(fail)]), {"it": 3})
    assert problem.message == "the tool cannot read this value (KeyError)"


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[str, AfterValidator(lambda text: f"{text}!")],
        Annotated[int, PlainSerializer(lambda number: str(number))],
        Annotated[int, PlainSerializer(lambda number: 1 / 0)],
        Annotated[Any, PlainSerializer(lambda value: "\ud800")],
    ],
)
def test_a_type_that_writes_something_else_than_it_reads_runs_nothing(annotation: Any) -> None:
    made = taking(annotation)
    given: Any = "x" if made.parameters["properties"]["it"] == {"type": "string"} else 3
    with pytest.raises(ToolDefinitionError) as caught:
        made.validate({"it": given})
    assert caught.value.code == "tool_arguments_unstable"


def test_values_of_defaults_are_fresh_for_every_call() -> None:
    made = taking(list[int], [])
    first = made.validate({}).values["it"]
    first.append(1)
    assert made.validate({}).values["it"] == []


def test_definitions_that_refer_only_to_themselves_end_somewhere() -> None:
    errors: list[Any] = [{"type": "int_type", "loc": (), "msg": "Input should be an integer", "input": 1}]
    loop = {"Loop": {"$ref": "#/$defs/Loop"}}
    (problem,) = describe_problems("it", "x", errors, {"$ref": "#/$defs/Loop"}, loop)
    assert problem.message == "must be int, not text"
    errors[0] |= {"type": "missing", "loc": ("y",)}
    (problem,) = describe_problems("it", {}, errors, {"$ref": "#/$defs/Loop"}, loop)
    assert (problem.path, problem.message) == ("it.y", "missing, is required")


def test_a_repair_that_does_not_help_reports_what_is_left() -> None:
    problem = only(taking(Annotated[int, Field(ge=10)]), {"it": 3.0})
    assert problem.message == "must be greater than or equal to 10"


@pytest.mark.parametrize("number", [2.0**60, 1e20, 123456789012345680000.0, -(2.0**63), -0.0, 1e22])
def test_a_float_runs_as_itself_however_many_digits_its_canonical_form_has(number: float) -> None:
    @tool
    def pay(amount: float) -> None:
        """Pay."""

    valid = pay.validate({"amount": number})
    assert valid.values["amount"] == number
    assert type(valid.values["amount"]) is float
    assert pay.validate(valid.plain).canonical == valid.canonical
