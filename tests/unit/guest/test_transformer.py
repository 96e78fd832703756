"""Which syntax and names pass, and that guards change neither the order nor the number of evaluations."""

# ruff: noqa: E501  scripts read better unbroken

from __future__ import annotations

import pytest

from bascule.guest.compiler import ScriptRefused, compile_script
from tests.unit.guest.harness import Outcome, run

BINDING_FORMS = [
    "{0} = 1",
    "{0} += 1",
    "{0}: int = 1",
    "a, {0} = 1, 2",
    "[a, *{0}] = 1, 2",
    "({0} := 1)",
    "for {0} in (): pass",
    "[0 for {0} in ()]",
    "{{0: 0 for {0} in ()}}",
    "sum(0 for {0} in ())",
    "with f() as {0}: pass",
    "try: pass\nexcept ValueError as {0}: pass",
    "import math as {0}",
    "from math import pi as {0}",
    "def {0}(): pass",
    "async def {0}(): pass",
    "class {0}: pass",
    "def f({0}): pass",
    "def f({0}, /): pass",
    "def f(*, {0}): pass",
    "def f(*{0}): pass",
    "def f(**{0}): pass",
    "async def f({0}): pass",
    "async def f({0}, /): pass",
    "async def f(*, {0}=1): pass",
    "async def f(*{0}): pass",
    "async def f(**{0}): pass",
    "lambda {0}: 0",
    "lambda {0}, /: 0",
    "lambda *, {0}: 0",
    "lambda *{0}: 0",
    "lambda **{0}: 0",
    "def f():\n    global {0}",
    "def f():\n    a = 1\n    def g():\n        nonlocal {0}",
    "match 1:\n    case {0}: pass",
    "match 1:\n    case 1 as {0}: pass",
    "match 1:\n    case [*{0}]: pass",
    "match 1:\n    case {{**{0}}}: pass",
    "match 1:\n    case [int({0})]: pass",
    "del {0}",
    "async def g():\n    async for {0} in x: pass",
    "async def g():\n    async with x as {0}: pass",
    "class C:\n    {0} = 1",
    "class C:\n    for {0} in (): pass",
    "print({0})",
]


@pytest.mark.parametrize("name", ["__builtins__", "_getattr_", "__import__", "super"])
@pytest.mark.parametrize("form", BINDING_FORMS)
def test_no_binding_form_takes_a_special_name(form: str, name: str) -> None:
    text = form.format(name)
    with pytest.raises(ScriptRefused) as caught:
        compile_script(text, tool_names=[])
    # Not left to CPython's own complaint: each form has a check of ours.
    assert {error.kind for error in caught.value.errors} == {"refused_name"}, text


@pytest.mark.parametrize("form", [form for form in BINDING_FORMS if "print" not in form])
def test_every_binding_form_takes_an_ordinary_name(form: str) -> None:
    text = form.format("name")
    if "nonlocal" in text:
        text = text.replace("a = 1", "name = 1")
    compile_script(text, tool_names=[])


@pytest.mark.parametrize(
    "text",
    [
        "try: pass\nexcept* ValueError: pass",
        "class C(metaclass=M): pass",
        "class C(B, flag=1): pass",
        "class C(*bases): pass",
        "class C(**kw): pass",
        "from math import *",
        "from . import x",
        "from .a import x",
        "x.__class__.__mro__",
        "x.__globals__",
        "x.__dict__ = {}",
        "x.gi_frame",
        "x.__dict__['a'] = 1",
        "del x.__dict__['a']",
        "x.__dict__.update(a=1)",
        "x.__dict__ |= {}",
        "x.f_back = 1",
        "del x.__class__",
        "x.__init__ += 1",
        "del x.__init__",
        "x.__new__ = 1",
        "super",
        "super()",
        "s = super()",
        "super().__class__",
        "super().__new__(c)",
        "super().x = 1",
        "super(f(), 1).x",
        "super(**k).x",
        "class C:\n    __getattr__ = f",
        "class C:\n    def __getattr__(self, n): pass",
        "class C:\n    def __del__(self): pass",
        "class C:\n    async def __await__(self): pass",
        "class C:\n    __match_args__ = ('__class__',)",
        "class C:\n    __match_args__ = ('gi_frame',)",
        "class C:\n    __slots__ = names",
        "class C:\n    __await__ = f",
        "class C:\n    __call__: int = f",
        "class C:\n    match 1:\n        case 1: pass",
        "match x:\n    case object(__class__=c): pass",
        "match x:\n    case C(gi_frame=f): pass",
        "yield 1",
        "class C:\n    yield 1",
        "class C:\n    return 1",
        "def f():\n    await g()",
        "lambda: await_\nlambda: (await g())",
        "nonlocal x",
        "f(**a).__subclasses__()",
        "().__ｃlass__.__base__",
        "i.gᵢ_frame",
    ],
)
def test_what_is_not_listed_is_refused(text: str) -> None:
    with pytest.raises(ScriptRefused):
        compile_script(text, tool_names=[])


def test_refused_syntax_says_what_to_write_instead() -> None:
    with pytest.raises(ScriptRefused) as caught:
        compile_script("try: pass\nexcept* ValueError: pass", tool_names=[])
    (error,) = caught.value.errors
    assert (error.kind, error.line) == ("refused_syntax", 1)
    assert error.suggestion is not None
    assert "ExceptionGroup" in error.suggestion


def calls_of(script: str) -> Outcome:
    def tool(value: int = 0) -> list[int]:
        return [value, value + 1]

    outcome = run(script, {"tool": tool})
    assert outcome.finish.status == "ok", outcome.finish.errors
    return outcome


@pytest.mark.parametrize(
    ("script", "calls"),
    [
        ("a, b = c = tool()", 1),
        ("a = b, c = d = tool()", 1),
        ("d = {0: 1}\nd[tool()[0]] += 1", 1),
        ("class O: x = 0\no = O()\ndef f():\n    tool()\n    return o\nf().x += 1", 1),
        ("class O: x = 0\no = O()\ndef f():\n    tool()\n    return o\nf().x.real", 1),
        ("class O: x = 0\no = O()\n[0 for o.x in tool()]", 1),
        ("class O: x = 0\no = O()\nfor o.x in tool(): pass\nwith_ = o.x", 1),
        ("print(f'{tool()!r:>10}', tool())", 2),
        ("'%s' % tool()[0]", 1),
        ("str(tool())", 1),
        ("'{}'.format(tool())", 1),
        ("match tool():\n    case [a, b]: pass", 1),
        ("tool().copy().copy()", 1),
        ("[tool().copy() for _ in range(3)]", 3),
        ("x = [y := tool(), y.copy()]", 1),
        ("sum(len(tool().copy()) for _ in range(2))", 2),
    ],
)
def test_everything_is_evaluated_once(script: str, calls: int) -> None:
    assert len(calls_of(script).calls) == calls


def test_evaluation_keeps_its_order() -> None:
    script = """
class O:
    pass
log = []
def say(name, value=None):
    log.append(name)
    return value
o = O()
say("a", o).x = say("b", 1)
say("c", o).x += say("d", 1)
say("e", {})[say("f")] = say("g")
a, say("h", o).y = say("i", (1, 2))
"".join(log), o.x, o.y
"""
    assert run(script).finish.value == ["bacdgefih", 2, 2]


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("def f(x: Missing) -> Other:\n    y: Nowhere = x\n    return y\nf(3)", 3),
        (
            "def f():\n    x: int\n    def g():\n        nonlocal x\n        x = 5\n    g()\n    return x\nf()",
            5,
        ),
        ("class C:\n    __x = 3\n    def get(self): return self.__x\nC().get()", 3),
        ("class C:\n    def __init__(self): self._items = [1]\nC()._items", [1]),
        ("n = 0\ndef f():\n    global n\n    n += 1\nf(); f()\nn", 2),
        ("global n\nn = 1\nn", 1),
        ("[y for x in [1, 2] if (y := x * 2)]; y", 4),
        ("def g():\n    x = yield 1\n    yield x\ni = g()\n[next(i), i.send(5)]", [1, 5]),
        ("def g():\n    yield from [1, 2]\nlist(g())", [1, 2]),
        (
            "try:\n    raise KeyError('a') from ValueError('b')\nexcept KeyError as e:\n    r = str(e.__cause__)\nr",
            "b",
        ),
        ("a, *b = range(4)\n[a, b, *b]", [0, [1, 2, 3], 1, 2, 3]),
        ("try:\n    1 / 0\nexcept:\n    r = 'caught'\nr", "caught"),
        ("try:\n    1 / 0\nexcept BaseException as e:\n    r = type(e).__name__\nr", "ZeroDivisionError"),
        ("f'{3.14159:{8}.{2}f}'", "    3.14"),
        ("x = 5\nf'{x=} {x!r:>3}'", "x=5   5"),
        ("def outer():\n    '''doc'''\n    return 1\nouter.__doc__", "doc"),
        ("__name__", "__main__"),
        ("_ = 3\n__ = 4\n_ + __", 7),
    ],
)
def test_ordinary_python_means_what_it_says(script: str, value: object) -> None:
    outcome = run(script)
    assert outcome.finish.status == "ok", outcome.finish.errors
    assert outcome.finish.value == value


def test_limits_of_the_interpreter_are_not_reached_through_a_bare_except() -> None:
    assert run("try:\n    exit(3)\nexcept:\n    print('swallowed')").output == ""


def test_async_python_means_what_it_says() -> None:
    script = """
class Rows:
    async def __aenter__(self): return self
    async def __aexit__(self, *error): return False
    async def each(self):
        for i in range(3):
            yield i
async with Rows() as rows:
    found = [i async for i in rows.each() if i]
    async for i in rows.each():
        found.append(i)
found
"""
    assert run(script).finish.value == [1, 2, 0, 1, 2]
