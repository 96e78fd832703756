"""Tools accept what models write, and say precisely what was wrong with a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bascule.guest.signature import describe_parameters, describe_type
from bascule.wire import ToolStub
from tests.unit.guest.harness import run

EXPENSES = ToolStub(
    name="get_expenses",
    parameters={
        "type": "object",
        "properties": {
            "employee_id": {"type": "string"},
            "quarter": {"enum": ["Q1", "Q2"]},
            "limit": {"type": "integer", "default": 10},
        },
        "required": ["employee_id", "quarter"],
        "additionalProperties": False,
    },
)
BODY = ToolStub(
    name="store",
    parameters={
        "properties": {"body": {"type": "object"}},
        "required": ["body"],
        "additionalProperties": False,
    },
)


def keep(**arguments: Any) -> dict[str, Any]:
    """Return the arguments."""
    return arguments


def echo(q: str) -> str:
    """Return the text."""
    return q


TOOLS: dict[str, Callable[..., Any]] = {"get_expenses": keep, "store": keep}
STUBS = [EXPENSES, BODY]


def call(text: str) -> Any:
    """Run a script and return its outcome."""
    return run(text, TOOLS, stubs=STUBS)


@pytest.mark.parametrize(
    "arguments",
    [
        "employee_id='E1', quarter='Q1'",
        "'E1', 'Q1'",
        "'E1', quarter='Q1'",
        "{'employee_id': 'E1', 'quarter': 'Q1'}",
        "**{'employee_id': 'E1', 'quarter': 'Q1'}",
        "*['E1', 'Q1']",
        "quarter='Q1', employee_id='E1'",
    ],
)
def test_arguments_may_be_keywords_positionals_or_one_dict(arguments: str) -> None:
    outcome = call(f"get_expenses({arguments})")
    assert outcome.value == {"employee_id": "E1", "quarter": "Q1"}


def test_a_dict_that_is_not_the_arguments_is_the_first_argument() -> None:
    assert call("store({'a': 1})").value == {"body": {"a": 1}}
    assert call("store({'body': {'a': 1}})").value == {"body": {"a": 1}}
    assert call("x = {}\nstore(x)").value == {"body": {}}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("**a, empoyee_id='E1'", ["'empoyee_id'", "did you mean 'employee_id'"]),
        ("**a", ["'employee_id' is missing", "'quarter' is missing"]),
        ("*[1, 2, 3, 4]", ["3 arguments at most", "4 were given"]),
        ("*['E1', 'Q1'], employee_id='E2'", ["'employee_id' is given twice"]),
        ("*[{'employee_id': 'E1'}]", ["'quarter' is missing"]),
    ],
)
def test_a_call_that_does_not_fit_names_every_problem_and_the_parameters(
    arguments: str, words: list[str]
) -> None:
    outcome = call(f"a = {{}}\nget_expenses({arguments})")
    assert outcome.calls == []
    for word in words:
        assert word in outcome.error.message
    assert 'employee_id: str, quarter: "Q1" | "Q2", limit: int = 10' in outcome.error.message


def test_a_call_that_does_not_fit_is_caught_as_type_and_value_error() -> None:
    script = """
a = {}
for kind in (TypeError, ValueError, ToolArgumentError, ToolError):
    try:
        get_expenses(**a)
    except kind as error:
        print(error.kind)
"""
    assert call(script).output == "invalid_arguments\n" * 4


@pytest.mark.parametrize(
    "value",
    ["float('nan')", "{1: object()}", "[print]", "b'x'", "10 ** 5000", "'\\ud800'", "(i for i in 'a')"],
)
def test_an_argument_without_a_plain_form_is_refused(value: str) -> None:
    outcome = call(f"x = {value}\nstore(body={{'x': x}})")
    assert outcome.status == "failed"
    assert outcome.error.exception == "ToolArgumentError"
    assert "store()" in outcome.error.message
    assert outcome.calls == []


def test_arguments_are_frozen_when_the_call_is_made() -> None:
    outcome = call("rows = [1]\npending = store(body={'rows': rows})\nrows.append(2)\nprint(await pending)\n")
    assert outcome.calls == [("store", {"body": {"rows": [1]}})]


def test_values_become_plain_data_on_the_way() -> None:
    outcome = call(
        "from datetime import date\nfrom decimal import Decimal\n"
        "store(body={'d': date(2025, 1, 2), 't': (1, 2), 'n': Decimal('1.10'), 3: None})"
    )
    assert outcome.calls[0][1] == {"body": {"d": "2025-01-02", "t": [1, 2], "n": "1.10", "3": None}}


def test_arguments_too_large_for_a_frame_are_refused_before_anything_is_sent() -> None:
    outcome = run("store(body={'x': 'y' * 100_000})", TOOLS, stubs=STUBS, frame_bytes=65_536)
    assert outcome.error.exception == "ToolArgumentError"
    assert "100" in outcome.error.message
    assert outcome.calls == []


@pytest.mark.parametrize(
    "use",
    [
        "x[0]",
        "x['a']",
        "len(x)",
        "list(x)",
        "str(x)",
        "f'{x}'",
        "f'{x!r}'",
        "print(x)",
        "x + 1",
        "1 + x",
        "x == 1",
        "x < 1",
        "-x",
        "bool(x)",
        "1 if x else 2",
        "'a' in x",
        "x()",
        "x.name",
        "int(x)",
        "float(x)",
        "sorted([x, x])",
        "sum([x])",
        "[*x]",
        "dict(x)",
        "'%s' % x",
        "'{}'.format(x)",
        "','.join([x])",
        "abs(x)",
        "next(x)",
        "range(x)",
    ],
)
def test_a_call_used_without_await_says_so_with_its_line(use: str) -> None:
    outcome = call(
        "async def main():\n    calls = [store(body={})]\n    for x in calls:\n        "
        f"{use}\nawait main()\n"
    )
    if outcome.status == "ok":
        pytest.fail(f"{use} went through")
    assert "await" in outcome.error.message + (outcome.error.suggestion or "")
    assert outcome.calls == []


def test_a_pending_call_as_an_argument_is_explained() -> None:
    outcome = call("x = [store(body={})]\nawait store(body=x[0])")
    assert outcome.status in {"failed", "refused"}
    assert "await" in outcome.error.message
    outcome = call("async def f():\n    return {}\ny = [f()]\nawait store(body=y[0])")
    assert "await" in outcome.error.message


def test_a_call_is_made_once() -> None:
    outcome = call(
        "x = store(body={})\nprint(await x)\ntry:\n    await x\n"
        "except RuntimeError as error:\n    print(error)\n"
    )
    assert len(outcome.calls) == 1
    assert "twice" in outcome.output


def test_a_call_starts_when_it_is_awaited_not_when_it_is_made() -> None:
    outcome = call("a, b = store(body={'n': 1}), store(body={'n': 2})\nawait b\nawait a\n")
    assert [arguments["body"]["n"] for _, arguments in outcome.calls] == [2, 1]


def test_the_last_expression_may_be_a_pending_call() -> None:
    outcome = call("y = await store(body={})\nstore(body={'last': y})")
    if outcome.status == "ok":
        assert outcome.value == {"body": {"last": {"body": {}}}}
    else:
        assert outcome.error.kind == "missing_await"


@pytest.mark.parametrize(
    "name", ["_stub", "_environment", "__self__", "__call__", "__func__", "issue", "tool_name"]
)
def test_a_tool_shows_nothing_of_itself(name: str) -> None:
    outcome = call(f"print(getattr(store, {name!r}, 'nothing'))")
    assert outcome.output in {"nothing\n", ""}


def test_a_tool_prints_its_name() -> None:
    assert call("print(store)").output == "<tool store>\n"


def test_tools_in_namespaces() -> None:
    outcome = run(
        "print(crm.contacts.find(q='x'), crm.ping(), ping())\n",
        {"crm.contacts.find": echo, "crm.ping": lambda: "crm", "ping": lambda: "top"},
    )
    assert outcome.output == "x crm top\n"
    assert [tool for tool, _ in outcome.calls] == ["crm.contacts.find", "crm.ping", "ping"]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "str"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "int | None"),
        ({"oneOf": [{"type": "number"}]}, "float"),
        ({"type": "array", "items": {"type": "boolean"}}, "list[bool]"),
        ({"type": "array"}, "list"),
        ({"enum": ["a", 1, None, True]}, '"a" | 1 | None | True'),
        ({"const": "x"}, '"x"'),
        ({"type": "string", "format": "date"}, "str (date, ISO 8601)"),
        ({"$ref": "#/$defs/Row"}, "list[int]"),
        ({"$ref": "#/$defs/Missing/deeper"}, "Any"),
        ({"$ref": "#/$defs/Loop"}, "Any"),
        ({}, "Any"),
    ],
)
def test_a_schema_reads_as_a_python_type(schema: dict[str, Any], words: str) -> None:
    root = {
        "$defs": {"Row": {"type": "array", "items": {"type": "integer"}}, "Loop": {"$ref": "#/$defs/Loop"}}
    }
    assert describe_type(schema, root) == words


def test_a_long_default_is_cut() -> None:
    parameters = {"properties": {"text": {"type": "string", "default": "x" * 1_000}}}
    assert len(describe_parameters("t", parameters)) < 250
