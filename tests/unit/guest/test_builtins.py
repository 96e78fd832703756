"""Built-in functions of scripts: print, attribute functions, exit, and what C code finds."""

from __future__ import annotations

import pytest

from tests.unit.guest.harness import run


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("print()", "\n"),
        ("print('a', 1, None, [1])", "a 1 None [1]\n"),
        ("print('a', 'b', sep='-', end='!')", "a-b!"),
        ("print('a', 'b', sep=None, end=None)", "a b\n"),
        ("import sys\nprint('x', file=sys.stdout)", "x\n"),
        (
            "import io\nb = io.StringIO()\nprint('x', file=b, flush=True)\nprint(b.getvalue() * 2, end='')",
            "x\nx\n",
        ),
        ("print(*range(3), sep=', ')", "0, 1, 2\n"),
    ],
)
def test_print_writes_to_the_output(call: str, text: str) -> None:
    outcome = run(call)
    assert outcome.finish.status == "ok", outcome.finish.errors
    assert outcome.output == text


@pytest.mark.parametrize("call", ["print('a', sep=1)", "print('a', end=b'')", "print(1, colour=2)"])
def test_print_checks_its_options(call: str) -> None:
    assert run(call).finish.errors[0].exception == "TypeError"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("getattr()", "getattr expected at least 2 arguments, got 0"),
        ("getattr(1, 'a', 2, 3)", "getattr expected at most 3 arguments, got 4"),
        ("hasattr(1)", "hasattr expected 2 arguments, got 1"),
        ("setattr(1, 'a')", "setattr expected 3 arguments, got 2"),
        ("delattr(1)", "delattr expected 2 arguments, got 1"),
        ("id()", "id() takes exactly one argument (0 given)"),
        ("format()", "format expected at least 1 argument, got 0"),
        ("format(1, 2)", "format() argument 2 must be str, not int"),
        ("format(1, None)", "format() argument 2 must be str, not None"),
        ("getattr(1, name='a')", "getattr() takes no keyword arguments"),
        ("hasattr(1, 2)", "attribute name must be string, not 'int'"),
    ],
)
def test_wrong_arguments_are_reported_in_pythons_words(call: str, message: str) -> None:
    (error,) = run(call).finish.errors
    assert error.message == f"TypeError: {message}"


@pytest.mark.parametrize(
    ("call", "status"),
    [("exit()", "ok"), ("quit(0)", "ok"), ("exit(3)", "failed"), ("raise SystemExit('x')", "failed")],
)
def test_leaving_ends_the_script_past_every_except(call: str, status: str) -> None:
    outcome = run(f"try:\n    {call}\nexcept Exception:\n    print('swallowed')\nprint('after')")
    assert (outcome.finish.status, outcome.output) == (status, "")


@pytest.mark.parametrize("name", ["open", "input", "exec", "compile", "globals", "vars", "dir", "breakpoint"])
def test_names_that_are_not_given_are_refused_before_anything_runs(name: str) -> None:
    outcome = run(f"print('ran')\n{name}('x')")
    assert (outcome.finish.status, outcome.output) == ("refused", "")
    (error,) = outcome.finish.errors
    assert (error.kind, error.line, error.exception) == ("refused_name", 2, "NameError")


def test_c_code_finds_the_modules_it_needs_and_no_others() -> None:
    script = "import datetime\nd = datetime.date(2024, 5, 6)\n[d.strftime('%d.%m.%Y'), f'{d:%Y}', "
    script += "datetime.datetime.strptime('2024', '%Y').year]"
    assert run(script).finish.value == ["06.05.2024", "2024", 2024]


def test_the_builtins_of_one_run_are_not_those_of_the_next() -> None:
    assert run("str.x = 1").finish.status == "failed"
    assert run("print.x = 1\nprint.x").finish.status == "failed"
    assert run("def print(*a): pass\nlen = 3\nlen").finish.value == 3
    assert run("len([1])").finish.value == 1
