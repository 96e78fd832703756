"""What a script is told to do instead: whose value was None, what a loop forgot, how plain Python says it."""

from __future__ import annotations

import importlib.machinery
import sys

import pytest

from bascule.guest.none_values import none_in
from bascule.guest.report import describe_exception
from bascule.guest.rules.modules import missing_in_python
from bascule.guest.source import Source
from tests.unit.guest.harness import run


def find(cursor: str | None = None, text: str = "") -> dict[str, object] | None:
    """Answer the same whatever is asked, as a loop that never moves on sees it; nothing for some texts."""
    return None if text == "none" else {"cursor": "2", "given": cursor}


TOOLS = {"find": find}


@pytest.mark.parametrize(
    ("script", "suggestion"),
    [
        ("find(text='none')['rows']", "`find(text='none')` returned None: test for None before `['rows']`"),
        (
            "x = (await find(text='none'))['rows']",
            "`await find(text='none')` returned None: test for None before `['rows']`",
        ),
        ("é = {'ü': None}\né['ü'][0]", "`é['ü']` is None: test for None before `[0]`"),
        ("x = None\nx['a'] += 1", "`x` is None: test for None before `['a']`"),
        ("x = None\nx['a'] = 1", "`x` is None: test for None before `['a']`"),
        ("x = None\ndel x[1]", "`x` is None: test for None before `[1]`"),
        ("x = None\nfor y in x['a']:\n    pass", "`x` is None: test for None before `['a']`"),
        ("x = None\nx.strip().lower()", "`x` is None: test for None before `.strip`"),
        ("def f(row):\n    return row['n']\nf(None)", "`row` is None: test for None before `['n']`"),
        (f"x = None\nx[{'n' * 100!r}]", f"`x` is None: test for None before `['{'n' * 79}…]`"),
        ("x = None\nfor y in x:\n    pass", "a value is None: test for None first"),
        ("a, b = None", "a value is None: test for None first"),
        (
            "raise TypeError(\"'NoneType' object is not subscriptable\")",
            "the value is None: test for None first",
        ),
    ],
)
def test_the_value_that_was_none_is_named(script: str, suggestion: str) -> None:
    assert run(script, TOOLS).error.suggestion == suggestion


def test_an_error_that_passed_no_line_of_the_script_names_nothing() -> None:
    error = TypeError("'NoneType' object is not subscriptable")
    assert (
        describe_exception(error, Source(lines=("x",))).suggestion == "the value is None: test for None first"
    )
    assert none_in(Source(lines=("x[",)), (1, 1, 0, 2)) is None


@pytest.mark.parametrize(
    ("call", "changed"), [("find(cursor=None)", "`cursor`"), ("find(text='a')", "an argument")]
)
def test_a_loop_that_asks_for_the_same_until_the_calls_run_out_is_told_so(call: str, changed: str) -> None:
    outcome = run(f"while True:\n    {call}\n", TOOLS, calls=20)
    assert outcome.error.kind == "call_limit"
    assert outcome.error.suggestion == (
        f"The last 20 calls asked find() for the same: the loop never changes {changed}. "
        "Set it from the last result, or end the loop."
    )


@pytest.mark.parametrize(
    "script",
    [
        "for i in range(30):\n    find(text=str(i))\n",
        "for i in range(30):\n    find(text=str(i // 5))\n",
        "for i in range(30):\n    find(text='a' if i < 20 else 'b')\n",
    ],
)
def test_a_loop_that_moves_on_is_told_to_ask_for_more_at_once(script: str) -> None:
    outcome = run(script, TOOLS, calls=20)
    assert outcome.error.suggestion == (
        "Use a tool that answers for many items at once, or narrow what you loop over."
    )


def test_an_argument_for_a_part_of_the_result_is_answered_with_slicing() -> None:
    part = run("find(limit=5)", TOOLS).error.suggestion
    assert part is not None
    assert part.endswith("; it gives all of its result: slice that in the script")
    other = run("find(colour='red')", TOOLS).error.suggestion
    assert other is not None
    assert "slice" not in other


@pytest.mark.parametrize(
    ("statement", "message", "name"),
    [
        ("import a.b.c", "No module named 'a'", "a"),
        ("from leftpad.inner import pad", "No module named 'leftpad'", "leftpad"),
        ("import math.pi", "No module named 'math.pi'; 'math' is not a package", "math.pi"),
        ("import os.nothing.more", "No module named 'os.nothing'; 'os' is not a package", "os.nothing"),
        (
            "import os.path.join",
            "No module named 'os.path.join'; 'os.path' is not a package",
            "os.path.join",
        ),
        (
            "import collections.abc.Map",
            "No module named 'collections.abc.Map'; 'collections.abc' is not a package",
            "collections.abc.Map",
        ),
    ],
)
def test_an_import_that_plain_python_fails_fails_in_its_words(
    statement: str, message: str, name: str
) -> None:
    script = f"try:\n    {statement}\nexcept ImportError as error:\n    print(error, error.name, sep='|')\n"
    with pytest.raises(ImportError) as plain:
        exec(statement)
    assert (str(plain.value), plain.value.name) == (message, name)
    assert run(script).output == f"{message}|{name}\n"


def test_a_failed_import_that_leaves_the_script_names_the_substitute() -> None:
    error = run("try:\n    import pandas\nexcept ImportError:\n    raise\n").error
    assert error.message == "ModuleNotFoundError: No module named 'pandas'"
    assert error.suggestion is not None
    assert error.suggestion.startswith("pandas is not available: ")


@pytest.mark.parametrize("name", ["subprocess", "os.path", "json.decoder", "xml.etree.ElementTree"])
def test_an_import_that_only_fails_here_says_why(name: str) -> None:
    assert missing_in_python(name) is None
    printed = run(f"try:\n    import {name}\nexcept ImportError as error:\n    print(error)\n").output
    assert printed.startswith(f"{name} is not available")


def test_packages_of_the_standard_library_are_known() -> None:
    for name in sorted(sys.stdlib_module_names):
        spec = importlib.machinery.PathFinder.find_spec(name)
        if spec is not None:
            is_package = spec.submodule_search_locations is not None
            assert (missing_in_python(f"{name}.inner") is None) == is_package, name
