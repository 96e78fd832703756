"""Errors in words for the model: where, what, what to write; nothing of the guest, nothing unbounded."""

# ruff: noqa: E501  scripts and schemas read better unbroken

from __future__ import annotations

from typing import Any

import pytest

from bascule.wire import ScriptError
from tests.unit.guest.harness import run


def echo(text: Any) -> Any:
    return text


def error_of(script: str) -> ScriptError:
    outcome = run(script, {"echo": echo})
    assert outcome.finish.status == "failed", outcome.finish
    (error,) = outcome.finish.errors
    return error


@pytest.mark.parametrize(
    ("script", "message", "hint"),
    [
        ("x = {'name': 1}\nx['nmae']", "KeyError: 'nmae'", "did you mean `name`?"),
        ("rows = {'a': 1, 'b': 2}\nrows['zzz']", "KeyError: 'zzz'", "its keys are: 'a', 'b'"),
        ("class A:\n    def run(self): pass\nA().rnu()", "AttributeError: 'A' object has no attribute 'rnu'",
         "did you mean `run`?"),
        ("[].push(1)", "AttributeError: 'list' object has no attribute 'push'", "write `.append(...)`"),
        ("d = {'a': 1}\nd.a", "AttributeError: 'dict' object has no attribute 'a'", 'write ["a"]'),
        ("x = None\nx.a", "AttributeError: 'NoneType' object has no attribute 'a'", "`x` is None: test for None before `.a`"),
        ("x = None\nx['a']", "TypeError: 'NoneType' object is not subscriptable", "test for None first"),
        ("'ABC'.trim()", "AttributeError: 'str' object has no attribute 'trim'", "write `.strip()`"),
        ("def f():\n    x += 1\nx = 1\nf()", "UnboundLocalError", "global x"),
        ("if False:\n    total = 1\ntotl = 2\ntotal", "NameError: name 'total' is not defined", "did you mean `totl`?"),
        ("[][0]", "IndexError: list index out of range", "test the length first"),
        ("'1' + 1", "TypeError: can only concatenate str", "f-string"),
        ("1 + '1'", "TypeError: unsupported operand", "int(...)"),
        ("1 + None", "TypeError: unsupported operand", "None"),
        ("{[]: 1}", "TypeError: ", "tuple"),
        ("import json\nclass C: pass\njson.dumps(C())", "TypeError: Object of type C is not JSON serializable",
         "dataclasses.asdict"),
        ("assert 1 == 2", "AssertionError", "give assert a message"),
        ("raise ValueError('boom')", "ValueError: boom", None),
        ("class E(Exception):\n    def __str__(self): return 'mine'\nraise E()", "E: mine", None),
    ],
)  # fmt: skip
def test_errors_say_what_to_write_instead(script: str, message: str, hint: str | None) -> None:
    error = error_of(script)
    assert error.message.startswith(message)
    assert (error.suggestion is None) if hint is None else (hint in (error.suggestion or "")), (
        error.suggestion
    )
    assert error.exception == message.partition(":")[0]


@pytest.mark.parametrize(
    "body",
    [
        "raise KeyError('x')",
        "return self.missing",
        "return 3",
        "return str(self)",
        "return Text('x')",
        "exit(0)",
    ],
)
def test_the_text_of_a_scripts_own_exception_cannot_break_the_report(body: str) -> None:
    prelude = "class Text(str): pass\n"
    outcome = run(f"{prelude}class E(Exception):\n    def __str__(self):\n        {body}\nraise E()")
    assert outcome.finish.status == "failed"
    assert outcome.finish.errors[0].exception == "E"


def test_reports_are_bounded_and_show_nothing_of_the_guest() -> None:
    error = error_of("raise ValueError('x' * 100_000)")
    assert len(error.message) <= 2_000
    error = error_of("import json\njson.loads('{')")
    assert error.line == 2
    assert "/" not in error.message
    assert "bascule" not in repr(error)
    error = error_of("x = 1\n" + "y = 0; " * 200 + "x.nope")
    assert error.source is not None
    assert len(error.source) < 400


def test_the_position_is_the_innermost_line_of_the_script() -> None:
    error = error_of("def key(x):\n    return x['a']\nsorted([{}, {}], key=key)")
    assert (error.line, error.column) == (2, 12)


def test_a_failure_of_a_tool_keeps_its_kind() -> None:
    def broken() -> None:
        raise ValueError("no such city")

    outcome = run("broken()", {"broken": broken})
    (error,) = outcome.finish.errors
    assert (error.kind, error.exception, error.message) == (
        "tool_failed",
        "ValueError",
        "ValueError: no such city",
    )


def test_a_chained_error_is_reported_by_its_last_link() -> None:
    error = error_of(
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('outer') from e"
    )
    assert (error.line, error.message) == (4, "RuntimeError: outer")


@pytest.mark.parametrize(
    "line", ["str(10 ** 5000)", "print(10 ** 5000)", "f'{10 ** 5000:,}'", "int('9' * 5000)"]
)
def test_a_number_with_too_many_digits_names_what_scripts_have(line: str) -> None:
    error = error_of(line)
    assert error.message.startswith(
        "ValueError: Exceeds the limit (4300 digits) for integer string conversion"
    )
    assert "set_int_max_str_digits" not in error.message
    assert "math.log10(n) for its size" in (error.suggestion or "")
