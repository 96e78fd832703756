"""Scripts that once gave another answer here than in plain Python, run in both."""

from __future__ import annotations

import contextlib
import io

import pytest

from tests.unit.guest.harness import run

SCRIPTS = {
    "hasattr of special names": """\
class A:
    def __enter__(self): return self
    def __exit__(self, *a): pass
    def __call__(self): pass
async def f(): pass
c = f()
print(hasattr([], "__iter__"), hasattr(5, "__iter__"), hasattr({}, "__len__"), hasattr("a", "__getitem__"))
print(hasattr(A(), "__enter__"), hasattr(A(), "__call__"), hasattr(A, "__exit__"), hasattr(print, "__call__"))
print(hasattr(A(), "__dict__"), hasattr(A(), "__len__"), hasattr(c, "__await__"), hasattr(5, "__await__"))
import asyncio
asyncio.run(c)
""",
    "type of types": """\
import typing
class A: pass
print(type(int) is type, type(A) == type, type(type) is type, type(A()) is A, type(type(len)) is type)
print(isinstance(A, type), isinstance(A(), type), type.__name__, type(int).__name__, str(type))
print(typing.get_origin(typing.Type[int]) is type, typing.get_origin(list[int]), typing.get_origin(int))
""",
    "calling Enum": """\
from enum import Enum, Flag, IntEnum, StrEnum
print(list(Enum("A", "X Y")), list(Enum("A", "X,Y")), list(Enum("A", ["X", "Y"], start=4)))
print(list(IntEnum("A", {"X": 5, "Y": 7})), list(Enum("A", [("X", 1), ("Y", "z")])), list(Flag("A", "X Y")))
E = Enum("E", "X Y", type=str)
print(E.X.name, E.X.value, E["Y"], repr(E), E.__name__, StrEnum("S", "red green").red)
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_prints_what_plain_python_prints(name: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(SCRIPTS[name], name, "exec"), {"__name__": "__main__"})
    outcome = run(SCRIPTS[name])
    assert outcome.errors == ()
    assert outcome.output == printed.getvalue()


@pytest.mark.parametrize(
    "expression",
    [
        "object.__repr__(object())",
        "list.__repr__([print])",
        "str.__mod__('%s', (iter([]),))",
        "text % (iter([]),)",
        "text % {'a': 1, 'b': iter([])}",
        "format(iter([]))",
    ],
)
def test_texts_hold_no_addresses(expression: str) -> None:
    outcome = run(f"text = '%s'\nx = {expression}\nprint(x)\nprint(sorted({{object.__hash__(object())}}))\n")
    assert outcome.errors == ()
    assert " at 0x" not in outcome.output
    assert outcome.output.endswith("\n[1]\n")


def test_sets_of_tools_iterate_by_name() -> None:
    order = ["alpha", "beta", "gamma", "delta"]
    outcome = run(
        "print([hash(tool) for tool in [alpha, beta, gamma, delta]])", {name: lambda: 1 for name in order}
    )
    assert outcome.output == f"{[hash(name) for name in order]}\n"
