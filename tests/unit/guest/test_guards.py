"""Objects give what their exact type lists, and nothing else."""

# ruff: noqa: E501  scripts read better unbroken

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.guest.harness import Outcome, run


def echo(text: Any) -> Any:
    return text


def fails_with(script: str, exception: str) -> Outcome:
    outcome = run(script, {"echo": echo})
    assert outcome.finish.status == "failed", (outcome.finish.status, outcome.finish.errors, outcome.output)
    assert outcome.finish.errors[0].exception == exception, outcome.finish.errors
    return outcome


def gives(script: str, value: object) -> None:
    outcome = run(script, {"echo": echo})
    assert outcome.finish.status == "ok", outcome.finish.errors
    assert outcome.finish.value == value


@pytest.mark.parametrize(
    "script",
    [
        "def f(): pass\nf.code",
        "len.name",
        "(x for x in ()).gi",
        "[].append.owner",
        "echo.name",
        "echo.allowed = 1",
        "del echo.name",
        "import json\njson.codecs",
        "import json\ndel json.loads",
        "import json\njson.loads = 1",
        "import json as j\nm = j\nm.loads = 1",
        "import string\nstring.digits += 'x'",
        "class C: pass\nC.mro",
        "class C: pass\nC.mro()",
        "int.mro()",
        "type(len).mro",
        "class C: pass\ndel C.x",
        "class C:\n    x = 1\ndel C.x",
        "'a'.nope",
        "[].push(1)",
        "x = [1]\nx.label = 1",
        "len.x = 1",
        "try:\n    [].nope\nexcept AttributeError as e:\n    e.obj",
        "try:\n    1 / 0\nexcept Exception as e:\n    e.with_traceback",
        "class E(Exception): pass\nE().with_traceback(None)",
        "class S(str): pass\nS.mro",
        "class S(str): pass\nS().nope",
        "from enum import Enum\nclass C(Enum): A = 1\nC.nope",
        "from enum import Enum\nclass C(Enum): A = 1\nC.mro()",
    ],
)
def test_what_is_not_in_the_row_of_the_type_is_not_given(script: str) -> None:
    if script.startswith(("import json\njson.codecs",)):
        assert run(script).finish.status == "refused"
        return
    fails_with(script, "AttributeError")


@pytest.mark.parametrize(
    "name",
    ["'__class__'", "'__dict__' + ''", "'_' + '_globals_' + '_'", "'gi_frame'", "'__subclasses__'", "'_a_'"],
)
@pytest.mark.parametrize("target", ["len", "f", "C", "C()", "()", "echo", "'x'"])
def test_names_made_at_run_time_meet_the_same_rules(target: str, name: str) -> None:
    prelude = "def f(): pass\nclass C: pass\n"
    got = run(f"{prelude}try:\n    r = getattr({target}, {name})\nexcept AttributeError:\n    r = 'refused'\n"
              "r = r if type(r) is str else repr(r)\nr", {"echo": echo})  # fmt: skip
    assert got.finish.status == "ok", got.finish.errors
    allowed = {"'__class__'": "<class", "'__dict__' + ''": "{}"}
    assert got.finish.value == "refused" or str(got.finish.value).startswith(allowed[name])
    for change in (f"setattr({target}, {name}, 1)", f"delattr({target}, {name})"):
        fails_with(prelude + change, "AttributeError")


def test_attribute_names_are_exact_texts() -> None:
    script = """
class C: pass
class Name(str):
    def __eq__(self, other): return True
    def __hash__(self): return hash("strip")
for use in (lambda: getattr("x", Name("format")), lambda: hasattr("x", Name("format")),
            lambda: setattr(C(), Name("__class__"), int)):
    try:
        print(use())
    except TypeError as e:
        print(e)
"""
    assert run(script).output == "attribute name must be string, not 'Name'\n" * 3


def test_getattr_hasattr_and_setattr_work_on_ordinary_objects() -> None:
    gives(
        "class C:\n    a = 1\nc = C()\nsetattr(c, 'b', 2)\ndelattr(c, 'b')\nsetattr(c, 'b', 3)\n"
        "[getattr(c, 'a'), getattr(c, 'b'), getattr(c, 'z', 'no'), hasattr(c, 'z'), hasattr('x', 'upper'),"
        " getattr('x', 'upper')(), getattr('{}', 'format')(1)]",
        [1, 3, "no", False, True, "X", "1"],
    )


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("class E(ValueError):\n    def __init__(self, c):\n        super().__init__(c)\n        self.c = c\n"
         "try:\n    raise E(4)\nexcept E as e:\n    r = [e.c, list(e.args), type(e).__name__, e.__class__.__name__]\nr",
         [4, [4], "E", "E"]),
        ("class D(dict):\n    def first(self): return next(iter(self.keys()))\nd = D(a=1)\n[d.first(), d.get('a')]",
         ["a", 1]),
        ("from enum import Enum\nclass C(Enum):\n    A = 1\n    B = 'b'\n    def up(self): return self.name.lower()\n"
         "[C.A.value, C.B.name, C['A'].value, C('b').name, [c.name for c in C], C.A.up(), len(C.__members__)]",
         [1, "B", 1, "B", ["A", "B"], "a", 2]),
        ("from collections import namedtuple\nP = namedtuple('P', 'x y')\np = P(1, 2)\n"
         "[p.x, p._replace(x=5).x, p._asdict(), list(P._fields)]", [1, 5, {"x": 1, "y": 2}, ["x", "y"]]),
        ("def f(): pass\nf.calls = 1\nf.calls += 1\n[f.calls, f.__name__, hasattr(f, 'nope')]", [2, "f", False]),
        ("from types import SimpleNamespace\nn = SimpleNamespace(a=1)\nn.b = 2\n[n.a, n.b]", [1, 2]),
        ("class C:\n    n = 0\n    @classmethod\n    def up(cls):\n        cls.n += 1\n        return cls.n\n"
         "    @staticmethod\n    def s(x): return x\n    @property\n    def p(self): return self._p\n"
         "    @p.setter\n    def p(self, v): self._p = v\nc = C()\nc.p = 7\n[C.up(), C.up(), C.n, C.s(1), c.p]",
         [1, 2, 2, 1, 7]),
        ("list(map(str.strip, [' a ', 'b ']))", ["a", "b"]),
        ("dict.fromkeys('ab', 0)", {"a": 0, "b": 0}),
        ("list(map(str.format, ['{}', '<{}>'], [1, 2]))", ["1", "<2>"]),
        ("class A:\n    def __init__(self, n=1): self.n = n\nclass B(A):\n    def __init__(self):\n"
         "        A.__init__(self, 5)\nB().n", 5),
        ("class P:\n    def __init__(self): self.a = 1; self.b = 2\n[P().__dict__, P.__doc__]",
         [{"a": 1, "b": 2}, None]),
    ],
)  # fmt: skip
def test_ordinary_objects_give_what_scripts_expect(script: str, value: object) -> None:
    gives(script, value)


@pytest.mark.parametrize(
    "receiver",
    [
        "S('{0.__class__}')",
        "M('{0.__class__}')",
        "sup('{0.__class__}')",
        "E.A",
        "S.format",
        "getattr(S, 'format')",
    ],
)
def test_no_subclass_gives_the_real_str_format(receiver: str) -> None:
    prelude = """
from enum import Enum
class S(str): pass
class Mix: pass
class M(Mix, str): pass
class E(str, Enum):
    A = "{0.__class__}"
class T(str):
    def get(self): return super().format
def sup(text):
    class Holder:
        format = T(text).get()
    return Holder
"""
    call = (
        f"{receiver}('{{0.__class__}}', 1)"
        if receiver.endswith(("format", "'format')"))
        else f"{receiver}.format(1)"
    )
    fine = run(prelude + f"try:\n    r = {call}\nexcept AttributeError:\n    r = 'refused'\nstr(r)")
    assert fine.finish.value in ("refused", "<class 'int'>", "<enum 'int'>"), fine.finish
    evil = run(
        prelude.replace("__class__", "__init__.__globals__")
        + f"print({call.replace('__class__', '__init__')})"
    )
    assert evil.finish.status == "failed"


def test_deleting_what_hides_a_listed_name_is_refused() -> None:
    script = """
class Mix:
    def format(self, *a): return "mine"
class S(Mix, str): pass
s = S("{0.__init__.__globals__}")
s.format(1)
del Mix.format
"""
    fails_with(script, "AttributeError")


def test_failures_of_tools_give_their_data_and_can_be_inherited_from() -> None:
    def broken() -> None:
        raise KeyError("k")

    script = """
class Mine(ToolError):
    def __init__(self, text):
        super().__init__(text, kind="own")
        self.extra = 1
found = []
for act in (broken, lambda: (_ for _ in ()).throw(Mine("m"))):
    try:
        act()
    except ToolError as e:
        found.append([e.kind, e.message, e.suggestion, e.retryable, type(e).__name__, isinstance(e, KeyError)])
found
"""
    outcome = run(script, {"broken": broken})
    assert outcome.finish.value == [
        ["failed", "k", None, False, "KeyError", True],
        ["own", "m", None, False, "Mine", False],
    ], outcome.finish


def test_a_decorator_that_takes_a_name_away_uncovers_nothing() -> None:
    script = """
from dataclasses import dataclass, field

def early(cls):
    for _ in range(3):
        cls("a").format
        cls.format
    return cls
@dataclass
@early
class S(str):
    format: object = field(default_factory=dict)
for use in (lambda: S("{0.__init__.__globals__}").format(early), lambda: S.format("{0.__globals__}", early)):
    try:
        print("ESCAPED:", use())
    except Exception as e:
        print(type(e).__name__)
"""
    outcome = run(script)
    assert "ESCAPED" not in outcome.output, outcome.output


def test_an_import_that_never_runs_gives_no_shortcut() -> None:
    script = """
def never():
    try:
        import str
    except ImportError:
        pass
try:
    print("ESCAPED:", str.format("{0.__globals__}", never))
except AttributeError:
    print("refused")
echo.tool_name
"""
    outcome = run(script, {"echo": echo})
    assert outcome.output == "refused\n"
    assert outcome.finish.errors[0].exception == "AttributeError"


def test_an_object_cannot_change_between_the_check_and_the_use() -> None:
    script = """
class Plain:
    format = None
state = Plain()
def flip():
    global state
    state = "{0.__init__.__globals__}"
    return 1
try:
    r = [state.format for _ in range(2) if flip()]
except TypeError:
    r = []
try:
    print([f(1) for f in r])
except AttributeError as e:
    print("refused")
"""
    assert run(script).output == "refused\n"


def test_a_pending_call_says_where_its_await_is_missing() -> None:
    outcome = run("async def f():\n    x = echo(text=1)\n    y = [x]\n    return y[0].real\nawait f()",
                  {"echo": echo})  # fmt: skip
    assert "await echo(...)" in outcome.finish.errors[0].message


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("A.__len__(A())", 3),
        ("A().__len__()", 3),
        ("getattr(A(), '__len__')()", 3),
        ("[1, 2].__len__()", 2),
        ("(1).__add__(2)", 3),
        ("(1).__add__('a') is NotImplemented", True),
        ("{'a': 1}.__getitem__('a')", 1),
        ("'abc'.__contains__('b')", True),
        ("(i for i in 'ab').__next__()", "a"),
        ("(lambda x: x + 1).__call__(1)", 2),
        ("B(a=1).__getitem__('a')", 1),
        ("A().__eq__(1) is NotImplemented", True),
        ("'%s'.__mod__(len)", "<built-in function len>"),
        ("'%s'.__mod__(A)", "<class '__main__.A'>"),
        ("A().__repr__() == repr(A())", True),
        ("hash(A()) > A().__hash__() - 9", True),
    ],
)
def test_special_methods_do_what_the_operators_do(expression: str, value: object) -> None:
    classes = "class A:\n    def __len__(self): return 3\nclass B(dict): pass\n"
    gives(classes + expression, value)


@pytest.mark.parametrize(
    "script",
    [
        "[].__init__",
        "(i for i in 'a').__init__",
        "class A(dict): pass\nA().__init__",
        "from collections import Counter\nCounter().__missing__",
        "A = type(1)\nA.__setattr__",
        "import asyncio\nasyncio.Lock().__enter__",
    ],
)
def test_special_methods_of_other_objects_are_not_given(script: str) -> None:
    outcome = run(script)
    assert outcome.finish.status in {"failed", "refused"}
    assert outcome.finish.errors[0].exception == "AttributeError"


def test_special_methods_can_be_put_on_classes_and_mean_nothing_on_objects() -> None:
    gives("class A: pass\ndef __init__(self, x): self.x = x\nA.__init__ = __init__\nA(3).x", 3)
    gives("class A: pass\nsetattr(A, '__len__', lambda self: 4)\nlen(A())", 4)
    gives("class A:\n    __call__ = len\nA()('abc')", 3)
    fails_with("class A: pass\na = A()\na.__len__ = lambda: 1\nlen(a)", "TypeError")


def test_frozen_dataclasses_set_their_fields_through_object() -> None:
    frozen = (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    x: int\n"
        "    def __post_init__(self): object.__setattr__(self, 'x', self.x * 2)\n"
    )
    gives(frozen + "P(2).x", 4)
    fails_with(frozen + "p = P(2)\np.x = 1", "FrozenInstanceError")
    fails_with("class A: pass\nobject.__setattr__(A(), '__class__', int)", "AttributeError")
    fails_with("class A: pass\nobject.__setattr__(A, 'x', 1)", "TypeError")
    fails_with("object.__setattr__(len, 'x', 1)", "AttributeError")


@pytest.mark.parametrize(
    "expression", ["f % A()", "f % values", "(f + '') % A()", "(lambda t, v: t % v)(f, A())", "'%s' % A()"]
)
def test_percent_shows_no_address_wherever_its_text_comes_from(expression: str) -> None:
    script = f"class A: pass\nf = '%s'\nvalues = (object(),)\nstr({expression})"
    outcome = run(script)
    assert outcome.finish.status == "ok"
    assert " at 0x" not in str(outcome.finish.value)


def test_percent_of_numbers_and_of_a_scripts_own_objects_is_native() -> None:
    gives("n, d = 7, 4\nn % d", 3)
    gives("class M:\n    def __rmod__(self, other): return f'{other}!'\nm = M()\n(3 + 4) % m", "7!")
    gives("class M:\n    def __mod__(self, other): return other\nm = M()\nx = [1]\nm % x", [1])


def test_special_methods_of_the_guest_are_not_given() -> None:
    fails_with("import json\njson.__init__", "AttributeError")
    fails_with("echo.__call__", "AttributeError")
