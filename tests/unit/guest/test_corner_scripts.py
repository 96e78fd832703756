"""Scripts that reach the rarely used ends of built-ins, facades, classes and guards."""

# ruff: noqa: E501 (scripts read best with few breaks)

from __future__ import annotations

from typing import Any

import pytest

from bascule.guest import compiler
from bascule.guest.compiler import ScriptRefused, compile_script
from bascule.guest.namespace import build_namespace
from tests.unit.guest.harness import Tools, run
from tests.unit.guest.test_run_edges import fresh_run


def double(i: int) -> int:
    """Return twice the number."""
    return 2 * i


TOOLS: Tools = {"double": double}

SCRIPTS: dict[str, tuple[str, str]] = {
    "a coroutine has no attributes": (
        "import asyncio\nasync def f():\n    return 1\nfor made in [f()]:\n    try:\n        made.x\n"
        "    except AttributeError as error:\n        print('write `await`' in str(error))\n    print(await made)",
        "True\n1\n",
    ),
    "calls in a set": ("import asyncio\nprint(sorted(await asyncio.gather(*{double(1), double(2)})))", "[2, 4]\n"),
    "views of types": ("print(issubclass(int, type(len)), isinstance(len, type(len)))", "False True\n"),
    "type in an alias": ("def f(kind: type[int]) -> None:\n    pass\nx = type[int]\nprint(x is type)", "True\n"),
    "a base that is none": (
        "from typing import Final\ntry:\n    class C(Final[int]):\n        pass\n"
        "except TypeError as error:\n    print('cannot inherit' in str(error))",
        "True\n",
    ),
    "modules in a set": ("import json, math\nprint(json in {json, math}, len({json, math, json}))", "True 2\n"),
    "strict batches": (
        "import itertools\nprint(list(itertools.batched(range(3), 2)))",
        "[(0, 1), (2,)]\n",
    ),
    "objects with slots have no fields": (
        "class S:\n    __slots__ = ('x',)\ns = S()\ns.x = 1\nprint(len({s}), s in {s})\n"
        "try:\n    s.__dict__\nexcept AttributeError:\n    print('none')",
        "1 True\nnone\n",
    ),
    "special attributes": (
        "class C:\n    'Text.'\n    x: int = 1\n    def f(self):\n        return 2\n"
        "print(C.__doc__, C().__doc__, C.__annotations__, double.__name__, C.f.__name__, C.__qualname__)\n"
        "for wrong in (5, 'a', [1]):\n    try:\n        print(wrong.__annotations__)\n"
        "    except AttributeError:\n        print('none')",
        "Text. Text. {'x': <class 'int'>} double f C\nnone\nnone\nnone\n",
    ),
    "annotations through a cache": (
        "import functools\n@functools.cache\ndef f(n: int) -> str:\n    return 'a'\nprint(f.__annotations__)",
        "{'n': <class 'int'>, 'return': <class 'str'>}\n",
    ),
    "causes are those of exceptions only": (
        "try:\n    (5).__cause__\nexcept AttributeError:\n    print('none')", "none\n",
    ),
    "tests for special names": (
        "print(hasattr([], '__iter__'), hasattr(5, '__iter__'), hasattr(list, '__len__'))", "True False True\n",
    ),
    "super of object": (
        "class C:\n    def __repr__(self):\n        return 'C ' + super().__repr__()\n"
        "    def __hash__(self):\n        return super().__hash__()\n"
        "print(repr(C()), isinstance(hash(C()), int), object.__repr__(C()))",
        "C <__main__.C object> True <__main__.C object>\n",
    ),
    "super of nothing": (
        "class C:\n    def f(self):\n        return super().absent\n"
        "try:\n    C().f()\nexcept AttributeError as error:\n    print('absent' in str(error))",
        "True\n",
    ),
    "a replaced method is not updated": (
        "class S(str):\n    pass\ns = S('a')\ntry:\n    s.format += 1\nexcept AttributeError:\n    print('refused')",
        "refused\n",
    ),
    "a class the tables do not know": (
        "import functools\ntry:\n    print(type(len).mro)\nexcept AttributeError:\n    print('refused')", "refused\n",
    ),
    "a pattern whose attribute is missing": (
        "class A:\n    x = 1\nmatch A():\n    case A(absent=1):\n        print('no')\n    case A(x=1):\n        print('yes')",
        "yes\n",
    ),
    "names of members": (
        "from enum import Enum\nprint([m.name for m in Enum('E', 'a b')])\n"
        "try:\n    Enum('E', ['__init__'])\nexcept ValueError:\n    print('refused')",
        "['a', 'b']\nrefused\n",
    ),
    "the clock's other functions": (
        "import time\nprint(time.localtime(0).tm_year, time.ctime(0), time.ctime()[:3], time.asctime()[-4:])\n"
        "for wrong in (lambda: time.ctime(1, 2), lambda: time.localtime(1, 2), lambda: time.localtime(x=1)):\n"
        "    try:\n        wrong()\n    except TypeError:\n        print('refused')",
        "1970 Thu Jan  1 00:00:00 1970 Sun 2025\nrefused\nrefused\nrefused\n",
    ),
    "asking for more recursion": (
        "import sys\nsys.setrecursionlimit(10)\nfor wrong in ('a', 0):\n    try:\n        sys.setrecursionlimit(wrong)\n"
        "    except (TypeError, ValueError) as error:\n        print(error)",
        "'str' object cannot be interpreted as an integer\nrecursion limit must be greater or equal than 1\n",
    ),
    "memory is nobody's business": (
        "import gc\ngc.disable()\ngc.enable()\nprint(gc.collect(), gc.isenabled())", "0 True\n",
    ),
    "paths are text": (
        "from pathlib import Path\nprint(repr(Path('a') / 'b'))\ntry:\n    Path('a').read_text()\n"
        "except FileNotFoundError as error:\n    print('scripts have no files' in str(error))",
        "PosixPath('a/b')\nTrue\n",
    ),
    "functions of the guest look built in": ("import time\nprint(repr(time.ctime))", "<built-in function ctime>\n"),
    "what is shown in a class body": (
        "class C:\n    text = f'{object()} {[n for n in range(2)]}'\n    more = [f'{[n]}' for n in range(2)]\nprint(C.text, C.more)",
        "<object object> [0, 1] ['[0]', '[1]']\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_prints_what_is_meant(name: str) -> None:
    script, output = SCRIPTS[name]
    outcome = run(script + "\n", TOOLS)
    assert (outcome.errors, outcome.output) == ((), output)


def namespace() -> dict[str, Any]:
    """Return the globals of a script that has not begun."""
    compiled = compile_script("print(1)\n", tool_names=())
    return build_namespace(compiled, fresh_run().environment, {})


def test_c_code_imports_what_it_needs_and_nothing_else() -> None:
    importer = namespace()["__builtins__"]["__import__"]
    with pytest.raises(ImportError, match="os"):
        importer("os")


@pytest.mark.parametrize("made", [5, type("Meta", (type,), {})("Made", (), {})])
def test_a_class_statement_that_makes_no_class_of_scripts_fails(made: object) -> None:
    with pytest.raises(TypeError):
        namespace()["<class>"](made)


def test_a_transformer_that_gives_up_refuses_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(*_: object) -> object:
        raise RecursionError

    monkeypatch.setattr(compiler, "ScriptTransformer", gives_up)
    with pytest.raises(ScriptRefused) as raised:
        compile_script("print(1)\n", tool_names=())
    assert [found.kind for found in raised.value.errors] == ["too_deep"]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("string", "Formatter"),  # reads attributes by name (CVE-2026-76825)
        ("string", "_string"),
        ("re", "enum"),
        ("json", "codecs"),
        ("typing", "sys"),
        ("functools", "WRAPPER_ASSIGNMENTS"),
        ("functools", "update_wrapper_"),
        ("types", "FunctionType"),
        ("types", "CodeType"),
        ("inspect", "currentframe"),
        ("sys", "modules"),
        ("sys", "_getframe"),
        ("logging", "os"),
        ("enum", "bltns"),
    ],
)
def test_no_facade_has_a_way_out(module: str, name: str) -> None:
    script = f"try:\n    import {module} as m\n    print(getattr(m, {name!r}))\nexcept (AttributeError, ImportError):\n    print('none')\n"
    assert run(script).output == "none\n"
