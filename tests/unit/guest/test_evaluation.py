"""eval: what a script may write it may evaluate, to the same value; what it may not, it may not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from bascule.guest.compiler import ScriptRefused, compile_script
from bascule.guest.evaluation import MAX_CHARACTERS, MAX_DEPTH
from tests.escape.rows import load
from tests.unit.guest.harness import run

SAME = [
    "1 + 2 * 3",
    "  n * 2",
    "\tn // 2",
    "[n * i for i in range(3) if i != n]",
    "{key: value for key, value in rows[0].items()}",
    "sum(row['a'] for row in rows)",
    "(lambda q: q.upper() + '!')('ab')",
    "'{0[0][a]} {1.real}'.format(rows, n)",
    "f'{n:>4} {rows[0][\"a\"]!r}'",
    "'%s and %r' % (len, n)",
    "str(print) + str(len)",
    "Point(1, 2).x if n else None",
    "Point(1, 2).__class__.__name__",
    "[isinstance(n, int), type(n) is int, getattr(Point(3, 4), 'y')]",
    "max(rows, key=lambda row: row['a'])['a'] ** 2 % 7",
    "'x' in 'xyz' and not n > 5 or ...is None",
    "eval('n + ' + 'n')",
    "-" * (MAX_DEPTH - 6) + "n",
    "+".join("n" * (MAX_DEPTH - 6)),
]

SETUP = (
    "class Point:\n    def __init__(self, x, y):\n        self.x, self.y = x, y\n"
    "n = 7\nrows = [{'a': 1}, {'a': 5}]\n"
)


@pytest.mark.parametrize("text", SAME)
def test_an_expression_has_the_value_it_has_in_the_script(text: str) -> None:
    assert run(f"{SETUP}return eval({text!r})\n").value == run(f"{SETUP}return {text.strip()}\n").value


def test_the_variables_around_the_call_are_seen() -> None:
    outcome = run(
        "x = y = 1\n"
        "def f(y):\n"
        "    z = 4\n"
        "    return [eval('x + y * z'), list(map(eval, ['y', 'z'])), eval('eval(\"z\")')]\n"
        "class A:\n"
        "    w = 5\n"
        "    doubled = eval('w * 2')\n"
        "    def __init__(self):\n"
        "        self._v = 6\n"
        "    def m(self):\n"
        "        return eval('self._v + x')\n"
        "for i in range(300):\n"
        "    assert eval(f'{i} + x') == i + 1\n"
        "    assert eval('i + x') == i + 1\n"
        "return [f(3), A.doubled, A().m(), eval('(lambda x: eval(\"x\"))(9)'), x, y]\n"
    )
    assert outcome.value == [[13, [3, 4], 4], 10, 7, 9, 1, 1]


def double(n: int) -> int:
    """Return twice the number."""
    return 2 * n


def test_tools_can_be_called() -> None:
    outcome = run("return eval('double(n=4) + 1')\n", {"double": double})
    assert outcome.value == 9
    assert outcome.calls == [("double", {"n": 4})]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("1 +", "SyntaxError: invalid syntax (<eval>, line 1)"),
        ("x = 1", "SyntaxError: invalid syntax"),
        ("nothing", "NameError: name 'nothing' is not defined"),
        ("(y := 3)", "SyntaxError: in the text given to eval(): `:=` is not available there"),
        ("await n", "SyntaxError: in the text given to eval(): `await` is not available there"),
        ("open('x')", "NameError: name 'open' is not defined"),
        ("n.__mro__", "AttributeError: in the text given to eval(): `__mro__` is a special name"),
        ("__builtins__", "NameError: in the text given to eval(): `__builtins__` is a special name"),
        ("-" * MAX_DEPTH + "n", "ValueError: the text given to eval() is nested too deeply"),
        ("-" * 900 + "n", "ValueError: the text given to eval() is nested too deeply"),
        (
            "1" * (MAX_CHARACTERS + 1),
            "ValueError: eval() takes at most 1000 characters here",
        ),
    ],
)
def test_what_cannot_be_evaluated_is_an_error_that_scripts_can_catch(text: str, error: str) -> None:
    outcome = run(
        f"{SETUP}try:\n    eval({text!r})\nexcept Exception as e:\n    print(type(e).__name__, e, sep=': ')\n"
    )
    assert outcome.output.startswith(error)


@pytest.mark.parametrize(
    ("arguments", "message"), [("5", "must be a string"), ("'1', {}", "takes one argument")]
)
def test_eval_takes_one_text(arguments: str, message: str) -> None:
    assert message in run(f"eval({arguments})").error.message


def test_an_error_in_the_text_is_reported_at_the_line_that_called() -> None:
    error = run("x = 0\ny = eval('1 / x')\n").error
    assert (error.message, error.line) == ("ZeroDivisionError: division by zero", 2)


_MAX_ROW_CHARACTERS = 4_000


def expressions() -> Iterator[str]:
    """Yield every expression of every attack on the interpreter that is Python and short enough."""
    seen: set[str] = set()
    for row in load("interpreter"):
        if len(row.code) > _MAX_ROW_CHARACTERS:
            continue  # their point is their size
        try:
            tree = ast.parse(row.code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                text = ast.unparse(node)
                if text not in seen and len(text) < MAX_CHARACTERS - 20:
                    seen.add(text)
                    yield text


def is_refused(script: str) -> bool:
    """Whether the compiler refuses a script for what it says, not for what is missing around it."""
    try:
        compile_script(script, tool_names=[])
    except ScriptRefused:
        return True
    return False


def test_no_expression_that_is_refused_as_script_text_gets_through_eval() -> None:
    refused = [text for text in expressions() if is_refused(f"lambda: ({text})")]
    assert len(refused) > 300
    # As the body of a lambda: compiled whole, never run.
    checks = "".join(
        f"try:\n    eval({f'lambda: ({text})'!r})\nexcept Exception:\n    n += 1\n"
        f"else:\n    print({text!r})\n"
        for text in refused
    )
    outcome = run(f"n = 0\n{checks}return n\n")
    assert (outcome.output, outcome.value) == ("", len(refused))
