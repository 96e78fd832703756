"""From text to code: results, positions, hostile texts."""

from __future__ import annotations

import pytest

from bascule.guest.compiler import MAX_SOURCE_BYTES, ScriptRefused, compile_script
from bascule.guest.rules.modules import MODULES
from tests.unit.guest.harness import run


def refused(text: str) -> ScriptRefused:
    with pytest.raises(ScriptRefused) as caught:
        compile_script(text, tool_names=[])
    return caught.value


@pytest.mark.parametrize(
    ("script", "source", "value"),
    [
        ("return 7", "return", 7),
        ("return", "return", None),
        ("if True:\n    return 1\n2", "return", 1),
        ("x = 1\nx + 1", "last_expression", 2),
        ("x = 5", "last_assignment", 5),
        ("x = 1\nx += 2", "last_assignment", 3),
        ("x: int = 4", "last_assignment", 4),
        ("a = b = 6", "last_assignment", 6),
        ("a, b = 1, 2", "last_assignment", [1, 2]),
        ("d = {}\nd['a'] = 1", "none", None),
        ("import math", "none", None),
        ("for i in range(3):\n    i", "none", None),
        ("print(1)", "none", None),
        ("", "none", None),
        ("# nothing", "none", None),
        ('"text"', "last_expression", "text"),
        ('if __name__ == "__main__":\n    x = 1\n    x + 1', "last_expression", 2),
        ("def f():\n    return 1\nf()", "last_expression", 1),
        ("async def f():\n    return 1\nawait f()", "last_expression", 1),
        ("async def f():\n    return 1\nreturn await f()", "return", 1),
    ],
)
def test_the_first_rule_that_applies_chooses_the_value(script: str, source: str, value: object) -> None:
    outcome = run(script)
    assert outcome.finish.status == "ok", outcome.finish.errors
    assert (outcome.finish.value_source, outcome.finish.value) == (source, value)


@pytest.mark.parametrize(
    ("script", "line", "column"),
    [
        ("x = 1\ny = x.nope", 2, 5),
        ("def f():\n    a = [1]\n    return a[5]\nf()", 3, 12),
        ("t = 'é'; t.nope", 1, 10),
        ("x = {}\nz = (1 +\n     x.a.b)", 3, 6),
        ("class A:\n    def f(self):\n        return self.missing\nA().f()", 3, 16),
        ("[1 / 0 for _ in range(2)]", 1, 2),
    ],
)
def test_errors_point_to_the_submitted_text(script: str, line: int, column: int) -> None:
    outcome = run(script)
    assert outcome.finish.status == "failed"
    (error,) = outcome.finish.errors
    assert (error.line, error.column) == (line, column)
    assert error.source is not None
    shown, caret = error.source.split("\n")
    assert shown == script.split("\n")[line - 1]
    assert caret == " " * (column - 1) + "^"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 500 + ")" * 500,
        "x = " + "+".join(["1"] * 5_000),
        "x" + ".a" * 3_000,
        "x" + "[0]" * 3_000,
        "x" + "()" * 3_000,
        "-" * 5_000 + "1",
        "not " * 5_000 + "1",
        "lambda: " * 2_000 + "1",
        "\n".join("    " * i + "if 1:" for i in range(95)) + "\n" + "    " * 95 + "pass",
        "[" * 180 + "]" * 180,
        'f"' + "{f'" * 40 + "'}" * 40 + '"',
        "x = 1 if " * 1_000 + "1",
    ],
)
def test_texts_that_exhaust_a_compiler_are_refused_cleanly(text: str) -> None:
    assert _kinds_of_refusal(text) <= {"too_deep", "syntax_error"}


@pytest.mark.parametrize(
    "script",
    [
        "x = str(1)\ny = " + " + ".join(["x"] * 400) + "\nreturn len(y) - 399\n",
        "a = 150\nif a == -1:\n    b = 0\n"
        + "".join(f"elif str(a).strip() == '{i}':\n    b = {i}\n" for i in range(200))
        + "return b - 149\n",
        "class Q:\n    n = 0\n    def add(self, n):\n        self.n += n\n        return self\n"
        "return Q()" + ".add(1)" * 150 + ".n - 149\n",
        "class Q:\n    n = 0\n    def add(self, n):\n        self.n += n\n        return self\n"
        "def f(q):\n    return [q" + ".add(1)" * 150 + " for q in [Q()]][0].n - 149\nreturn f(Q())\n",
    ],
)
def test_a_chain_that_people_write_is_not_too_deep(script: str) -> None:
    assert run(script).value == 1


@pytest.mark.parametrize(
    "text",
    [
        *("if a == 0:\n    b = 0\n" + "elif a == 1:\n    b = 1\n" * n for n in (480, 520, 5_000)),
        *("x = a" + ".b(1)" * n for n in (240, 260, 5_000)),
        *("x = 'a'" + " % b" * n for n in (480, 520, 5_000)),
        *("class A:\n    x: " + "-" * n + "y" for n in (480, 520, 5_000)),
        *("match 1:\n    case [" + "[" * n + "]" * n + "]: pass" for n in (90, 180)),
        "async def f():\n    return " + "(await f()) + " * 480 + "1",
    ],
)
def test_what_is_near_the_bound_of_depth_is_compiled_or_refused(text: str) -> None:
    assert _kinds_of_refusal(text) <= {"too_deep", "syntax_error"}


COMPREHENSIONS = "[" * 18 + "x" + " for x in y]" * 18


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("[" * 20 + "x" + " for x in y]" * 20, True),
        ("[" * 21 + "x" + " for x in y]" * 21, False),
        ("def f():\n return " + "{" * 23 + "x" + " for x in y}" * 23, False),
        (f"def f():\n while 1:\n  for x in y:\n   return {COMPREHENSIONS}", True),
        (f"def f():\n with a, b, c:\n  return {COMPREHENSIONS}", False),
        (f"def f():\n try:\n  x = {COMPREHENSIONS}\n except KeyError:\n  pass\n finally:\n  pass", True),
        (f"while 1:\n try:\n  x = {COMPREHENSIONS}\n except KeyError:\n  pass\n finally:\n  pass", False),
        (f"with a, b, c:\n x = lambda: {COMPREHENSIONS}", True),
        ("".join(" " * i + "for x in y:\n" for i in range(21)) + " " * 21 + "pass", False),
    ],
)
def test_blocks_and_comprehensions_nest_as_deep_as_every_python_compiles(text: str, accepted: bool) -> None:
    assert _kinds_of_refusal(text) == (set() if accepted else {"too_deep"})
    if not accepted:
        with pytest.raises(ScriptRefused) as raised:
            compile_script(text, tool_names=[])
        assert "move the inner ones into a function" in str(raised.value.errors[0].suggestion)


def _kinds_of_refusal(text: str) -> set[str]:
    try:
        compile_script(text, tool_names=[])
    except ScriptRefused as error:
        return {finding.kind for finding in error.errors}
    return set()


def test_the_size_of_a_script_is_bounded() -> None:
    assert refused("#" * (MAX_SOURCE_BYTES + 1)).errors[0].kind == "too_large"
    compile_script("#" * MAX_SOURCE_BYTES, tool_names=[])


@pytest.mark.parametrize("text", ["x = 1\0", "x = '\ud800'", "'abc", "x ==== 1", "\x0c\x0c(", "def"])
def test_what_is_no_text_or_no_python_is_a_syntax_error(text: str) -> None:
    assert [finding.kind for finding in refused(text).errors] == ["syntax_error"]


def test_a_coding_cookie_changes_nothing() -> None:
    text = '# -*- coding: unicode_escape -*-\n# \\u000aprint("ESCAPED")\n'
    assert run(text).output == ""


def test_a_carriage_return_is_a_line_break_of_the_submitted_text() -> None:
    outcome = run("x = 1\r\ny = 2\rprint(x, y, z_unknown)")
    assert [(error.kind, error.line) for error in outcome.finish.errors] == [("unknown_name", 3)]


def test_future_imports_are_accepted() -> None:
    assert run("from __future__ import annotations, division\nx = 1 / 2\nx").finish.value == 0.5
    assert refused("from __future__ import braces").errors[0].kind == "syntax_error"


def test_async_syntax_anywhere_makes_calls_awaitable() -> None:
    assert compile_script("async def f(): pass", tool_names=[]).uses_async
    assert not compile_script("async def f(): pass", tool_names=[]).is_async
    assert compile_script("await f()", tool_names=[]).is_async
    assert compile_script("[x async for x in f()]", tool_names=[]).is_async
    assert not compile_script("x = 1", tool_names=[]).uses_async
    assert compile_script("x = 1", tool_names=[], force_async=True).uses_async


def test_the_tree_of_a_compiled_script_is_the_script_as_written() -> None:
    compiled = compile_script("x = a.b", tool_names=[])
    assert "ok" not in repr(__import__("ast").dump(compiled.tree))


@pytest.mark.parametrize("module", sorted(MODULES))
def test_every_listed_module_can_be_imported(module: str) -> None:
    outcome = run(f"import {module} as m\nprint(m.__name__)")
    assert outcome.finish.status == "ok", outcome.finish.errors
    assert outcome.output == f"{module}\n"
