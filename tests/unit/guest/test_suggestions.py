"""What a script is told to do instead: whose value was None, what a loop forgot, how plain Python says it."""

# ruff: noqa: E501  scripts read better unbroken

from __future__ import annotations

import importlib.machinery
import sys

import pytest

from bascule.guest.failing import find_failing
from bascule.guest.none_values import explain_none
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
        (
            "import operator\nsorted([None, None], key=operator.itemgetter(0))",
            "the value is None: test for None first",
        ),
        ("x = None\nfor y in x:\n    pass", "`x` is None: test for None before looping over it"),
        ("x = None\n[y for y in x]", "`x` is None: test for None before looping over it"),
        ("x = None\nlist(x)", "`x` is None: test for None first"),
        ("a, b = None", "the value is None: test for None first"),
        ("x = None\nx + 1", "`x` is None: test for None before calculating with it"),
        ("x = None\n1 + x", "`x` is None: test for None before calculating with it"),
        ("x = None\nx > 1", "`x` is None: test for None before calculating with it"),
        ("x = None\nx += 1", "`x` is None: test for None before calculating with it"),
        ("x = None\ny = 1\ny -= x", "`x` is None: test for None before calculating with it"),
        ("x = None\nx()", "the value is None: test for None first"),
        (
            "x = [2, 1].sort()\nx[0]",
            "`[2, 1].sort(...)` changes [2, 1] itself and returns None; sorted(...) returns a list",
        ),
        (
            "x = []\nfor n in range(2):\n    x = x.append(n)",
            "`x.append(...)` changes x itself and returns None",
        ),
        ("def f(n):\n    n * 2\nf(2) + 1", "f() (line 1) has no `return` with a value, so it returns None"),
        (
            "def f(n):\n    def g():\n        return 1\n    return\nx = f(2)\nx[0]",
            "f() (line 1) has no `return` with a value, so it returns None",
        ),
        ("def f(n):\n    return n\nf(None)[0]", "`f(None)` returned None: test for None before `[0]`"),
        (
            "async def f():\n    pass\n(await f())[0]",
            "f() (line 1) has no `return` with a value, so it returns None",
        ),
        (
            "x = []\nx = x.clear()\ny = 1\nfor n in 'ab':\n    y = x[n]\n    x = 2",
            "`x.clear(...)` changes x itself and returns None",
        ),
        ("x, y = None, 1\nx[0]", "`x` is None: test for None before `[0]`"),
        ("x = None if find() else 1\nx[0]", "`x` is None: test for None before `[0]`"),
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
    looped = find_failing(Source(lines=("[y for y in x]",)), (1, 1, 12, 13))
    assert looped is not None
    assert explain_none(looped, "'NoneType' object is not iterable") == (
        "`x` is None: test for None before looping over it"
    )
    assert find_failing(Source(lines=("x[",)), (1, 1, 0, 2)) is None


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


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("(5).__name__", "'int' object does not give `__name__` to scripts"),
        ("int.__setattr__", "`__setattr__` can be read only from a class of yours or one it inherits from"),
        (
            "import datetime\ndatetime.date.__repr__",
            "`__repr__` can be read only from a class of yours or one it inherits from",
        ),
        ("int.__aenter__", "`__aenter__` can be read only from a class of yours or one it inherits from"),
        (
            "class Own(OSError):\n    def n(self):\n        return super().characters_written\nOwn().n()",
            "super() does not give 'characters_written' of 'OSError' to scripts",
        ),
    ],
)
def test_what_plain_objects_do_not_give_is_named(script: str, message: str) -> None:
    assert run(script).error.message == f"AttributeError: {message}"


@pytest.mark.parametrize(
    ("script", "suggestion"),
    [
        ("sorted([{}, {}])", "say what to order by: `key=lambda row"),
        ("max([])", "there is nothing to choose from: give `default=`"),
        ("1 / len([])", "test the divisor first"),
        ("d = {1: 1, 2: 2}\nfor k in d:\n    del d[k]", "loop over a copy"),
        ("len(n for n in [])", "make a list of it first"),
        ("map(str, [1])[0]", "make a list of it first"),
        ("{}.items[0]", "call it: put round brackets behind the name"),
        ("for n in 3:\n    pass", "to count, loop over `range(3)`"),
        ("range(4 / 2)", "write `//` or int(...)"),
        ("from decimal import Decimal\nDecimal(1) * 0.5", "write Decimal(str(number))"),
        ("import datetime\n'2025' > datetime.date(2025, 1, 1)", "make a date of it first"),
        (
            "from datetime import datetime, timezone\ndatetime.now(timezone.utc) - datetime(2025, 1, 1)",
            "give both a zone",
        ),
        ("'3' > 2", "convert the text with int(...) or float(...)"),
        ("'%d' % 'three'", "convert the text with int(...) or float(...)"),
        ("int('1,200')", "clean the text first"),
        ("import json\njson.loads('{1}')", "the text is no JSON"),
        ("import re\nre.findall('(', 'x')", "re.escape(text)"),
        ("'{a} {b}'.format(a=1)", "give .format() a value for 'b'"),
        ("'{a} {b}'.format_map({'a': 1})", "give .format() a value for 'b'"),
        ("{'a': 1}.pop('b')", "look at the keys first"),
        ("'{} {}'.format(1)", "give .format() as many values"),
        ("raise 'bad'", "raise an exception"),
        ("sorted([1], reversed=True)", "sorting takes `key` and `reverse`"),
        ("class A:\n    def f(x):\n        pass\nA().f(1)", "the first parameter of a method is `self`"),
        ("class A:\n    def f(self):\n        pass\nA().f(1, 2)", "line 2 has `def f(self)`"),
        ("for k, v in {'abc': 1}:\n    pass", "`.items()` gives a dict's pairs"),
        ("list = [1]\nlist(range(3))", "`list` was assigned in line 1, which hides the function"),
        ("x = 1\nx[0]()", "`x` is the number 1: it has no items"),
        ("[1][0]()", "if its name once was one, a variable hides it"),
        ("1()", "if its name once was one, a variable hides it"),
        ("def f(x):\n    x(1)\nf(3)", "if its name once was one, a variable hides it"),
        ("[1]['a']", "it is a list: loop over it"),
        ("for row in find():\n    row['x']", "loop over the list in it, such as `find()['cursor']`"),
        ("[row['x'] for row in find()]", "loop over the list in what `find()` gave"),
        (
            "async def f():\n    return [row['x'] for row in await find()]\nawait f()",
            "loop over the list in what `await find()` gave",
        ),
        (
            "class S(str):\n    pass\nfor row in find():\n    row = S('a')\n    row['x']",
            "look at the value: it is not the dict you expect",
        ),
        ("for row in 'ab':\n    row['x']", "`'ab'` is text, and going through it gives letters"),
        ("for a in [1]:\n    for row in (b for b in ['x']):\n        row['x']", "`row` is the text 'x', not a dict"),
        ("row = 'x'\nrow['x']", "`row` is the text 'x', not a dict"),
        ("'x'['x']", "is the text 'x', not a dict"),
        ("await find()\nx = find\nfor y in [x()]:\n    await y\n    ','.join([x()])", "write `await` before"),
        ("import asyncio\nasync def f(x):\n    return await x\nawait f(1)", "leave `await` out"),
        ("import asyncio\nasync def f(x):\n    return await x\nawait f([1])", "for several calls write"),
        (
            "import asyncio\nasync def f(x):\n    return await asyncio.gather(x)\nawait f([find()])",
            "give each call on its own",
        ),
    ],
)  # fmt: skip
def test_what_to_write_instead_is_said(script: str, suggestion: str | None) -> None:
    found = run(script, TOOLS).error.suggestion
    assert (found is None) if suggestion is None else (suggestion in (found or "")), found


@pytest.mark.parametrize(
    ("script", "kind", "suggestion"),
    [
        ("x = 1\nif x:\n    x = 2\nelse if x:\n    x = 3", "syntax_error", "write `elif`"),
        ("try:\n    x = 1\nx", "syntax_error", "add `except Exception as error:`"),
        ("f = lambda x: return x", "syntax_error", "a lambda is one expression: use `def`"),
        ("break", "syntax_error", "loops alone have it"),
        ("x = 1\nThis script prints the build.", "syntax_error", "only Python may stand here"),
        ("from tools import find\nfind()", "refused_import", "leave the import out"),
        ("import toolbox\ntoolbox.find()", "refused_import", "leave the import out"),
        ("import itertolls\nitertolls.chain()", "refused_import", "did you mean `itertools`?"),
        ("import asyncio\nr = await asyncio.gather([find()])", "missing_star", "asyncio.gather(*[find()])"),
        ("import asyncio\nc = [find() for n in 'ab']\nr = await asyncio.gather(c)", "missing_star", "(*c)`"),
        (
            "import asyncio\nr = await asyncio.gather([find(text='" + 'x' * 50 + "')])",
            "missing_star",
            "`asyncio.gather(*calls)`",
        ),
        (
            "import asyncio\nr = asyncio.gather(find())\nfor x in r:\n    await find()",
            "missing_await",
            "await asyncio.gather",
        ),
        (
            "import asyncio\nr = asyncio.wait_for(find(), 1)['x']\nawait find()",
            "missing_await",
            "asyncio.wait_for",
        ),
        ("x = await [find() for n in 'ab']", "needless_await", "for several calls write"),
        ("x = await f'{1}'", "needless_await", "leave `await` out"),
    ],
)  # fmt: skip
def test_what_is_certainly_wrong_is_said_before_anything_runs(
    script: str, kind: str, suggestion: str
) -> None:
    outcome = run(script, TOOLS)
    assert (outcome.error.kind, outcome.calls) == (kind, [])
    assert suggestion in (outcome.error.suggestion or ""), outcome.error


@pytest.mark.parametrize(
    "script",
    [
        "import asyncio\nasyncio.gather(find())\nawait asyncio.sleep(0)",
        "import asyncio\nfor calls in [find(), find()]:\n    await asyncio.gather(calls)",
        "import asyncio\ntry:\n    await asyncio.gather([1])\nexcept TypeError:\n    pass",
        "import asyncio\nasyncio.sleep(1)\nawait find()",
        "asyncio = {'gather': list}\nx = asyncio.get('gather')([1])\nawait find()",
        "class asyncio:\n    gather = list\nx = len(asyncio.gather([1]))\nawait find()",
    ],
)
def test_doubtful_uses_of_asyncio_are_left_to_the_run(script: str) -> None:
    assert run(script, TOOLS).status == "ok"


def test_a_task_of_a_tool_is_named_after_the_tool() -> None:
    (note,) = run(
        "import asyncio\nt = [asyncio.ensure_future(find()) for n in 'ab']\nawait asyncio.sleep(0)\n1 / 0",
        TOOLS,
    ).notes
    assert note.message.startswith("the task find() was not finished")
    assert note.message.endswith("(2 times)")
