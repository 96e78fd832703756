"""Class statements: what may be inherited, what type() shows, text and hash without addresses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.guest.harness import run


def echo(text: Any) -> Any:
    return text


@pytest.mark.parametrize(
    ("statement", "use"),
    [
        ("class C: pass", "C()"),
        ("class C(object): pass", "C()"),
        ("class C(Exception): pass", "str(C('x'))"),
        ("class C(BaseException): pass", "issubclass(C, Exception)"),
        ("class C(dict): pass", "C(a=1)['a']"),
        ("from abc import ABC, abstractmethod\nclass B(ABC):\n    @abstractmethod\n    def f(self): ...\n"
         "class C(B):\n    def f(self): return 1", "C().f()"),
        ("from typing import NamedTuple\nclass C(NamedTuple):\n    x: int\n    y: str = 'd'", "C(1).y"),
        ("from typing import TypedDict\nclass C(TypedDict, total=False):\n    x: int", "C(x=1)['x']"),
        ("from typing import Protocol\nclass C(Protocol):\n    def f(self) -> int: ...", "C.__name__"),
        ("from typing import Generic, TypeVar\nT = TypeVar('T')\nclass C(Generic[T]):\n"
         "    def __init__(self, v: T): self.v = v", "C[int](3).v"),
        ("from enum import Enum, auto\nclass C(str, Enum):\n    A = 'a'", "C.A.value"),
        ("from enum import IntEnum\nclass C(IntEnum):\n    A = 2", "C.A + 1"),
        ("from enum import Enum, auto\nclass C(Enum):\n    A = auto()", "C.A.value"),
        ("from dataclasses import dataclass\n@dataclass\nclass C:\n    x: int\n    y: list[Later] = None",
         "C(1) == C(1)"),
        ("from dataclasses import dataclass, field\n@dataclass(frozen=True, order=True)\nclass C:\n"
         "    x: int\n"
         "    y: list = field(default_factory=list)", "C(1) < C(2)"),
        ("from dataclasses import dataclass\n@dataclass(slots=True)\nclass C:\n    x: int\n"
         "    def double(self): return self.x * 2", "C(4).double()"),
        ("from dataclasses import dataclass\nfrom typing import ClassVar\n@dataclass\nclass C:\n    x: int\n"
         "    n: ClassVar[int] = 9", "C(1).n"),
        ("from functools import cached_property\nclass C:\n    @cached_property\n    def x(self): return 6",
         "C().x"),
        ("class A:\n    def f(self): return ['A']\nclass B(A):\n    def f(self): return super().f() + ['B']\n"
         "class C(B):\n    def f(self): return super(C, self).f() + ['C']", "C().f()"),
        ("class C:\n    class Inner:\n        x = 1", "C.Inner.x"),
        ("class C:\n    __slots__ = ('a',)\n    def __init__(self): self.a = 1", "C().a"),
        ("class C:\n    __hash__ = None\n    __doc__ = 'd'", "C.__doc__"),
        ("from collections import UserDict\nclass C(UserDict): pass", "C(a=1)['a']"),
        ("from collections.abc import Mapping\nclass C(Mapping):\n    def __getitem__(self, k): return k\n"
         "    def __iter__(self): return iter('ab')\n    def __len__(self): return 2", "C().get('z')"),
    ],
)  # fmt: skip
def test_ordinary_classes_work(statement: str, use: str) -> None:
    outcome = run(f"{statement}\n{use}")
    if "UserDict" in statement and outcome.finish.status == "refused":
        return  # not among the facades: the refusal is tested there
    assert outcome.finish.status == "ok", outcome.finish.errors


@pytest.mark.parametrize(
    "base",
    [
        "type",
        "echo",
        "len",
        "type(len)",
        "type(f)",
        "3",
        "'x'",
        "super_",
        "bool",
        "range",
        "property",
        "Trick()",
    ],
)
def test_other_bases_are_refused_before_the_class_exists(base: str) -> None:
    script = f"""
def f(): pass
class Trick: pass
super_ = None
try:
    class C({base}): pass
except TypeError as e:
    r = "refused"
else:
    r = "made"
r
"""
    outcome = run(script, {"echo": echo})
    assert outcome.finish.value == "refused", outcome.finish


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("type(1) is int", True),
        ("type(1) == type(2)", True),
        ("type(C()) is C", True),
        ("type(len) is type(abs)", True),
        ("type(f) == type(lambda: 0)", True),
        ("type(f) in {type(f): 1}", True),
        ("isinstance(f, type(lambda: 0))", True),
        ("isinstance(1, type(f))", False),
        ("isinstance(int, type)", True),
        ("isinstance(3, type)", False),
        ("isinstance(type(f), type)", True),
        ("type(f).__name__", "function"),
        ("type(None).__name__", "NoneType"),
        ("type(None)() is None", True),
        ("str(type(f))", "<class 'function'>"),
        ("str(type(1))", "<class 'int'>"),
        ("C().__class__ is C", True),
        ("type(C).__name__", "type"),
        ("str(type)", "<class 'type'>"),
        ("type(3)('4')", 4),
        ("issubclass(bool, int)", True),
        ("{int: 'n', str: 's'}[type('x')]", "s"),
    ],
)
def test_type_shows_the_class_without_handing_out_machinery(expression: str, value: object) -> None:
    outcome = run(f"class C: pass\ndef f(): pass\n{expression}")
    assert outcome.finish.status == "ok", outcome.finish.errors
    assert outcome.finish.value == value


@pytest.mark.parametrize("call", ["type('T', (), {})", "type()", "type(1, 2)", "type(f)(1)", "type(x=1)"])
def test_type_makes_no_classes(call: str) -> None:
    outcome = run(f"def f(): pass\n{call}")
    assert outcome.finish.errors[0].exception == "TypeError"


def test_objects_show_no_addresses_and_hash_by_order() -> None:
    script = """
class C: pass
a, b = C(), C()
print(a, [a], {"k": b}, f"{a} {b!r:>5}", str(a), "%s" % a, "{} {!r}".format(a, b), repr(b), format(a))
print(hash(b), hash(a), hash(b), {a: 1, b: 2} == {b: 2, a: 1})
class E:
    def __eq__(self, other): return True
try:
    hash(E())
except TypeError as e:
    print(e)
"""
    first = run(script).output
    assert " at 0x" not in first
    assert "\n1 2 1 True\nunhashable type: 'E'\n" in first
    assert first == run(script).output


def test_text_that_looks_like_an_address_is_left_alone_in_data() -> None:
    assert run("print('jump at 0x7fff0000 now', ['at 0x7fff0000 x'])").output == (
        "jump at 0x7fff0000 now ['at 0x7fff0000 x']\n"
    )


def test_id_counts_objects() -> None:
    assert run("a, b = [], []\n[id(a), id(b), id(a)]").finish.value == [1, 2, 1]
