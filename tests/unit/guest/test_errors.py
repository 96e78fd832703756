"""Failures of tools arrive as exceptions that scripts catch under the names they know."""

from __future__ import annotations

import builtins

import pytest

from bascule.guest.errors import (
    SCRIPT_ERRORS,
    BudgetExceeded,
    ToolArgumentError,
    ToolDenied,
    ToolError,
    ToolOutcomeUnknown,
    ToolTimeout,
    ToolUnavailable,
    failure_exception,
)
from bascule.wire import ToolFailure
from tests.unit.guest.harness import run


@pytest.mark.parametrize(
    ("kind", "cls"),
    [
        ("invalid_arguments", ToolArgumentError),
        ("denied", ToolDenied),
        ("timeout", ToolTimeout),
        ("unavailable", ToolUnavailable),
        ("unknown_outcome", ToolOutcomeUnknown),
        ("budget_exceeded", BudgetExceeded),
        ("unknown_tool", ToolError),
        ("failed", ToolError),
        ("a kind of next year", ToolError),
    ],
)
def test_the_kind_decides_the_class(kind: str, cls: type[ToolError]) -> None:
    error = failure_exception(ToolFailure(kind=kind, message="m", suggestion="s", retryable=True))
    assert type(error) is cls
    assert (error.kind, error.message, error.suggestion, error.retryable) == (kind, "m", "s", True)
    assert str(error) == "m"


@pytest.mark.parametrize("name", ["ValueError", "KeyError", "LookupError", "PermissionError", "TimeoutError"])
def test_an_exception_of_a_tool_keeps_its_name_and_its_class(name: str) -> None:
    error = failure_exception(ToolFailure(kind="failed", message="it's gone", exception=name))
    assert isinstance(error, getattr(builtins, name))
    assert isinstance(error, ToolError)
    assert type(error).__name__ == name
    assert str(error) == "it's gone"


def test_a_class_of_a_tools_own_keeps_its_name_beside_the_built_in_it_can_be_caught_as() -> None:
    failure = ToolFailure(kind="failed", message="m", exception="LookupError", raised="UnknownOrder")
    error = failure_exception(failure)
    assert type(error).__name__ == "UnknownOrder"
    assert isinstance(error, LookupError)
    assert isinstance(error, ToolError)


def test_a_timeout_raised_by_a_tool_keeps_its_name() -> None:
    error = failure_exception(ToolFailure(kind="timeout", message="m", exception="TimeoutError"))
    assert isinstance(error, ToolTimeout)
    assert type(error).__name__ == "TimeoutError"


def test_a_denial_keeps_the_name_of_its_kind() -> None:
    error = failure_exception(ToolFailure(kind="denied", message="m", exception="PermissionError"))
    assert type(error) is ToolDenied
    unknown = failure_exception(ToolFailure(kind="unknown_outcome", message="m", exception="TimeoutError"))
    assert isinstance(unknown, TimeoutError)
    assert type(unknown).__name__ == "ToolOutcomeUnknown"


@pytest.mark.parametrize(
    "name", ["StopIteration", "SystemExit", "KeyboardInterrupt", "Warning", "print", "x"]
)
def test_a_name_that_would_change_the_flow_of_the_script_is_ignored(name: str) -> None:
    error = failure_exception(ToolFailure(kind="failed", message="m", exception=name))
    assert type(error) is ToolError


def test_a_message_is_bounded() -> None:
    assert len(str(failure_exception(ToolFailure(kind="failed", message="x" * 100_000)))) <= 4_000


def test_scripts_can_make_and_name_every_class() -> None:
    for cls in SCRIPT_ERRORS.values():
        error = cls("text")
        assert error.message == "text"
        assert error.retryable is False
    assert ToolError(3).message == "3"


def test_a_script_catches_a_tools_failure_and_reads_it() -> None:
    def lookup(key: str) -> str:
        raise KeyError(f"no such key: {key}")

    outcome = run(
        """
try:
    lookup("a")
except KeyError as error:
    print(error, type(error).__name__, error.kind, error.retryable, error.suggestion, error.message)
try:
    lookup("b")
except ToolError as error:
    print(error)
try:
    lookup("c")
except ToolDenied:
    print("wrong")
except Exception as error:
    print(error)
""",
        {"lookup": lookup},
    )
    assert outcome.output.splitlines() == [
        "no such key: a KeyError failed False None no such key: a",
        "no such key: b",
        "no such key: c",
    ]


def test_a_failure_that_leaves_the_script_names_the_line() -> None:
    def fail() -> None:
        raise ValueError("no")

    outcome = run("x = 1\nfail()\n", {"fail": fail})
    assert outcome.status == "failed"
    assert (outcome.error.line, outcome.error.exception) == (2, "ValueError")
    assert "no" in outcome.error.message


@pytest.mark.parametrize("name", ["args", "__traceback__", "__context__", "__cause__", "tool"])
def test_a_failure_holds_no_live_objects(name: str) -> None:
    def fail() -> None:
        raise ValueError("no")

    outcome = run(
        f"try:\n    fail()\nexcept Exception as error:\n    print(getattr(error, {name!r}, 'nothing'))\n",
        {"fail": fail},
    )
    assert outcome.output in {"nothing\n", "None\n", "('no',)\n", ""}
