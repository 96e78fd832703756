"""Compiling and preflight at their edges: what is refused and let through, in forms rarely written."""

from __future__ import annotations

import ast

import pytest

from bascule.guest.compiler import ScriptRefused, compile_script
from bascule.wire import ScriptError, ToolStub
from tests.unit.guest.harness import run, stub_of


def rows(n: int) -> int:
    """Return rows."""
    return n


def refusals(script: str, **stub: dict[str, object]) -> list[ScriptError]:
    """Return the findings of a script that must not run."""
    outcome = run(script, {"rows": rows}, stubs=[_stub(**stub)])
    assert outcome.status == "refused", outcome.finish
    return list(outcome.errors)


def _stub(
    *, parameters: dict[str, object] | None = None, returns: dict[str, object] | None = None
) -> ToolStub:
    stub = stub_of("rows", rows)
    if parameters is None:
        return ToolStub(name="rows", parameters=stub.parameters, returns=returns)
    schema: dict[str, object] = {"type": "object", "properties": {"n": parameters}, "required": ["n"]}
    return ToolStub(name="rows", parameters=schema, returns=returns)


ASYNC = "import asyncio\nasync def own():\n    return 1\n"


@pytest.mark.parametrize(
    ("script", "use"),
    [
        ("x = rows(1) < 2", "comparing it"),
        ("print(*rows(1))", "unpacking it"),
        ("values = [1]\nvalues.sort(key=own)", "await"),
        ("await len([1])", "leave `await` out"),
    ],
)
def test_a_value_is_used_before_its_await(script: str, use: str) -> None:
    (error,) = refusals(f"{ASYNC}await own()\n{script}\n")
    assert use in error.message + (error.suggestion or "")


@pytest.mark.parametrize(
    "script",
    [
        "x = rows(1) is None",
        "sorted([1], key=abs)",
        "try:\n    x = rows(1) + 1\nexcept:\n    print('caught')",
    ],
)
def test_what_may_be_meant_is_let_through(script: str) -> None:
    assert run(f"{ASYNC}await own()\n{script}\n", {"rows": rows}).status == "ok"


@pytest.mark.parametrize(
    ("schema", "argument", "message"),
    [
        ({"type": "string", "minLength": 3}, "'a'", "at least 3 characters"),
        ({"type": "string", "maxLength": 1}, "'abc'", "at most 1 characters"),
        ({"type": "string", "format": "date-time"}, "'tomorrow'", "an ISO date and time"),
        ({"type": "array", "minItems": 2}, "[1]", "at least 2 items"),
        ({"type": "array", "maxItems": 1}, "[1, 2]", "at most 1 items"),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 'a']", "[1]"),
        ({"anyOf": [{"type": "integer", "maximum": 3}, {"type": "string"}]}, "7", "3"),
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "'a'", "an integer or True or False"),
        ({"anyOf": [{"type": "integer"}]}, "'a'", "int"),
    ],
)
def test_a_literal_argument_is_held_against_its_schema(
    schema: dict[str, object], argument: str, message: str
) -> None:
    errors = refusals(f"rows(n={argument})\n", parameters=schema)
    assert any(message in error.message for error in errors), errors


@pytest.mark.parametrize(
    ("schema", "argument"),
    [
        ({"type": "string", "format": "date-time"}, "'2025-03-31T14:30:00Z'"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, "[*['a', 'b']]"),
        ({"type": "array", "maxItems": 3}, "[1, 2]"),
        ({"$ref": "#/properties/n"}, "1"),
        ({"type": "string", "minLength": 1, "maxLength": 5}, "'abc'"),
    ],
)
def test_an_argument_that_may_be_right_is_let_through(schema: dict[str, object], argument: str) -> None:
    outcome = run(f"print(rows(n={argument}))\n", {"rows": rows}, stubs=[_stub(parameters=schema)])
    assert outcome.errors == ()


def test_a_dict_of_arguments_with_computed_keys_is_left_to_the_run() -> None:
    assert run("key = 'n'\nprint(rows({key: 3}))\n", {"rows": rows}).output == "3\n"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("rows(1)['a']", "gives integer here"),
        ("found: object = rows(1)\nfound['a']", "gives integer here"),
    ],
)
def test_a_number_has_no_fields(script: str, message: str) -> None:
    (error,) = refusals(script, returns={"type": "integer"})
    assert message in error.message


NESTED: dict[str, object] = {
    "type": "array",
    "items": {"type": "object", "properties": {"a": {"type": "string"}}},
}


@pytest.mark.parametrize(
    "script",
    [
        "for row in rows(1):\n    print(row['b']['c'])",
        "import contextlib\nwith contextlib.suppress(KeyError):\n    print(rows(1)[0]['b'])",
        "x = rows(1)\n"
        + "".join(f"x{i} = x{i - 1 if i else ''}\n" for i in range(20))
        + "print(x19[0]['b'])",
        "async def f():\n    x = await g\n    return x['b']\ng = 1",
    ],
)
def test_unclear_paths_to_a_value_are_followed_or_left(script: str) -> None:
    outcome = run(script, {"rows": rows}, stubs=[_stub(returns=NESTED)])
    assert outcome.status in {"refused", "failed", "ok"}
    assert all(error.kind != "internal" for error in outcome.errors)


@pytest.mark.parametrize(
    "script",
    [
        "__secret__",
        "class C[T]:\n    pass" if hasattr(ast, "TypeVar") else "class C(metaclass=type):\n    pass",
        "def f[T](x: T):\n    pass" if hasattr(ast, "TypeVar") else "_x_",
        "match 1:\n    case f'{1}':\n        pass",
        "match {}:\n    case {f'{1}': x}:\n        pass",
        "    x = 1\n  y = 2\n",
        "class C:\n    __slots__ = 5",
    ],
)
def test_what_has_no_place_in_a_script_is_refused(script: str) -> None:
    assert refusals(script)


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("from collections import abc\nprint(isinstance([], abc.Sequence))", "True\n"),
        ("import json\ntry:\n    json.absent\nexcept AttributeError:\n    print('absent')", "absent\n"),
        ("try:\n    from json import no\nexcept ImportError:\n    print('absent')", "absent\n"),
        ("try:\n    import numpy\nexcept ImportError:\n    print('absent')", "absent\n"),
        ("try:\n  from json import dumpz\nexcept ImportError as e:\n    print('dumps' in f'{e}')", "True\n"),
        ("try:\n    absent\nexcept:\n    print('absent')", "absent\n"),
        ("class C:\n    x: 'int' = 1\n    y: 5 = 2\nprint(C.x, C.y)", "1 2\n"),
        ("d: dict[str, int]\nrow = {}\nrow['a']: int\nrow['b']: int = 2\nprint(row)", "{'b': 2}\n"),
        ("def f(x: dict[str, (int, list)], *, y=1):\n    return x\nprint(f(1))", "1\n"),
        ("class C:\n    def f():\n        return 1\n    def g(self):\n        self = 2\n        return self\n"
         "print(C().g(), C.f())", "2 1\n"),
        ("print('{a} {}'.format(1, a=object()))", "<object object> 1\n"),
        ("print([f'{[x]}' for x in [1]])", "['[1]']\n"),
        ("(a, [b, c]) = d = (1, [2, 3])\nprint(a, b, c, d)", "1 2 3 (1, [2, 3])\n"),
        ("class A:\n    __match_args__ = ('x',)\n    def __init__(self):\n        self.x = 1\n"
         "for _ in range(2):\n    match A():\n        case A(x=1, y=2):\n            print('y')\n"
         "        case A(1):\n            print('x')", "x\nx\n"),
    ],
)  # fmt: skip
def test_it_runs_as_in_python(script: str, output: str) -> None:
    outcome = run(script + "\n")
    assert (outcome.errors, outcome.output) == ((), output)


def test_a_script_that_is_no_text_is_refused() -> None:
    with pytest.raises(ScriptRefused, match="a script is text"):
        compile_script(b"print(1)", tool_names=())  # type: ignore[arg-type]


@pytest.mark.parametrize("function", ["ast.parse", "builtins.compile"])
@pytest.mark.parametrize("error", [RecursionError, MemoryError, ValueError])
def test_a_parser_that_gives_up_refuses_the_script(
    function: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gives_up(*_: object, **__: object) -> object:
        raise error

    monkeypatch.setattr(function, gives_up)
    with pytest.raises(ScriptRefused) as raised:
        compile_script("print(1)\n", tool_names=())
    monkeypatch.undo()
    assert [found.kind for found in raised.value.errors] == ["too_deep"]


def test_a_lambda_and_a_generator_show_the_names_python_gives_them() -> None:
    outcome = run("print(lambda: 0, (n for n in ()))\ndef f():\n    return lambda: 0\nprint(f, f())\n")
    assert outcome.output == (
        "<function <lambda>> <generator object <genexpr>>\n<function f> <function f.<locals>.<lambda>>\n"
    )


def test_nonlocal_itself_may_not_name_what_is_special() -> None:
    found = refusals("def f():\n    def g():\n        nonlocal _getattr_\n")
    assert [(error.kind, error.line) for error in found if error.line == 3] == [("refused_name", 3)]


def test_the_result_of_an_awaited_call_is_known_before_it_runs() -> None:
    (error,) = refusals("text = await rows(1)\nprint(text['name'])\n", returns={"type": "string"})
    assert error.message == "rows() gives text here: 'name' is no index"
