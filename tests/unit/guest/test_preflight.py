"""What is certainly wrong is found before anything runs, in one list; what may be right is left alone."""

# ruff: noqa: E501  scripts and schemas read better unbroken

from __future__ import annotations

from typing import Any

import pytest

from bascule.guest.compiler import ScriptRefused
from bascule.guest.preflight import check_script
from bascule.wire import ScriptError, ToolStub

EXPENSE = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "amount": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "amount"],
}


def stub(
    name: str, returns: dict[str, Any] | None = None, required: tuple[str, ...] = (), /, **properties: Any
) -> ToolStub:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolStub(name=name, parameters=parameters, returns=returns)


STUBS = [
    stub(
        "get_expenses",
        {"type": "array", "items": {"$ref": "#/$defs/Expense"}, "$defs": {"Expense": EXPENSE}},
        ("employee", "quarter"),
        employee={"type": "string"},
        quarter={"enum": ["Q1", "Q2", "Q3", "Q4"], "type": "string"},
        limit={"type": "integer", "minimum": 1, "maximum": 100},
        since={"type": "string", "format": "date"},
    ),
    stub("page", {"type": "object", "properties": {"rows": {"type": "array", "items": EXPENSE}, "next": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, (), cursor={"anyOf": [{"type": "string"}, {"type": "null"}]}),
    stub("read_text", {"type": "string"}, ("key",), key={"type": "string"}),
    stub("find", None, ("filter",), filter={"type": "object", "properties": {"status": {"type": "array", "items": {"enum": ["open", "closed"]}}}, "required": ["status"], "additionalProperties": False}),
    stub("ping", {"type": "object", "additionalProperties": True}),
    stub("crm.find_contact", None, ("name",), name={"type": "string"}),
]  # fmt: skip


def findings(script: str) -> list[ScriptError]:
    try:
        check_script(script, STUBS)
    except ScriptRefused as refused:
        return list(refused.errors)
    return []


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ("get_expense(employee='a', quarter='Q1')", "unknown_tool", ["get_expense", "get_expenses"]),
        ("nothing_like_it()", "unknown_tool", ["nothing_like_it", "read_text"]),
        ("crm.find_contcat(name='a')", "unknown_tool", ["crm.find_contcat", "crm.find_contact"]),
        ("total = 1\nprint(totl)", "unknown_name", ["totl", "total"]),
        ("print(null)", "unknown_name", ["None"]),
        ("json.dumps(1)", "unknown_name", ["import json"]),
        ("d = defaultdict(list)", "unknown_name", ["from collections import defaultdict"]),
        ("tools.ping()", "unknown_name", ["call the tool by its name, `ping(...)`"]),
        ("client = Client()\nclient.x()", "unknown_tool", ["the tools are: get_expenses"]),
        (
            "try:\n    ping()\nexcept NotFound:\n    pass",
            "unknown_name",
            ["except ToolError", "except ValueError"],
        ),
        (
            "try:\n    ping()\nexcept (ToolErrr, ValueError):\n    pass",
            "unknown_name",
            ["did you mean `ToolError`", "except ToolError"],
        ),
        ("import datetime\ndatetime.now()", "refused_attribute", ["write `datetime.datetime.now(...)`"]),
        ("import datetime as dt\ndt.today()", "refused_attribute", ["write `dt.date.today(...)`"]),
        (
            "with ping() as x:\n    await ping()",
            "needless_with",
            ["gives a value", "result = await ping(...)"],
        ),
        (
            "find(status=['open'])",
            "invalid_arguments",
            ["takes one argument, `filter`", "write find(filter={'status': ...})"],
        ),
        ("find(filter={'status': 'open'})", "invalid_arguments", ["write a list: `['open']`"]),
        ("find(filter=3)", "invalid_arguments", ["write find(filter: dict {status: list["]),
        ("get_expenses(employee=7, quarter='Q1')", "invalid_arguments", ['write a text: `"7"`']),
        (
            "get_expenses(employee='a', quarter='Q1', limit='3')",
            "invalid_arguments",
            ["write the number: `3`"],
        ),
        (
            "get_expenses(employee='a', quarter='Q1', limit='3.5')",
            "invalid_arguments",
            ["write get_expenses("],
        ),
        ("with open('x') as f: pass", "refused_name", ["open", "file system"]),
        ("import requests", "refused_import", ["requests", "network"]),
        ("import pandas as pd", "refused_import", ["pandas"]),
        ("import os.path", "refused_import", ["os.path"]),
        ("import statistic", "refused_import", ["statistics"]),
        ("import ping", "refused_import", ["tool"]),
        ("from collections import Countr", "unknown_import", ["Counter"]),
        ("import math\nmath.sqr(4)", "refused_attribute", ["math.sqr", "sqrt"]),
        ("get_expenses(employee='a')", "invalid_arguments", ["missing", "quarter", '"Q1"']),
        ("get_expenses('a', 'Q1', 5, '2024-01-01', 9)", "invalid_arguments", ["takes 4 arguments", "got 5"]),
        ("get_expenses(employee='a', quarter='Q1', limits=3)", "invalid_arguments", ["limits", "limit"]),
        ("get_expenses('a', 'Q1', employee='b')", "invalid_arguments", ["employee", "twice"]),
        (
            "get_expenses(employee='a', quarter='q1')",
            "invalid_arguments",
            ["Q2", "'q1'", "did you mean 'Q1'?"],
        ),
        ("get_expenses(employee=5, quarter='Q1')", "invalid_arguments", ["employee must be a text", "5"]),
        ("get_expenses('a', 'Q1', limit=0)", "invalid_arguments", ["limit must be at least 1"]),
        ("get_expenses('a', 'Q1', limit='3')", "invalid_arguments", ["limit must be an integer"]),
        ("get_expenses('a', 'Q1', limit=True)", "invalid_arguments", ["limit must be an integer"]),
        ("get_expenses('a', 'Q1', since='31.03.2025')", "invalid_arguments", ["ISO date", "2025-03-31"]),
        ("get_expenses({'employee': 'a'})", "invalid_arguments", ["missing", "quarter"]),
        ("get_expenses({'employee': 'a', 'quarter': 'Q9'})", "invalid_arguments", ["quarter", "Q4"]),
        ("find(filter={'status': ['opne']})", "invalid_arguments", ["filter.status[0]", "open"]),
        ("find(filter={'state': []})", "invalid_arguments", ["status"]),
        ("find(filter={})", "invalid_arguments", ["status"]),
        ("page(cursor=5)", "invalid_arguments", ["cursor must be"]),
        ("r = get_expenses('a', 'Q1')\nr[0]['amuont']", "unknown_field", ["amuont", "amount"]),
        ("for e in get_expenses('a', 'Q1'):\n    print(e['total'])", "unknown_field", ["total", "'amount'"]),
        ("r = get_expenses('a', 'Q1')\nr['id']", "unknown_field", ["list", "[0]"]),
        ("read_text('k')['name']", "unknown_field", ["json.loads"]),
        ("for row in page():\n    row['id']", "unknown_field", ['page()["rows"]']),
        ("page().rows", "unknown_field", ['["rows"]']),
        ("[r['ident'] for r in page()['rows']]", "unknown_field", ["ident"]),
        ("def f():\n    await ping()", "syntax_error", ["async def"]),
    ],
)
def test_certain_mistakes_are_found_with_what_to_write(script: str, kind: str, words: list[str]) -> None:
    found = findings(script)
    assert {error.kind for error in found} == {kind}, found
    text = " ".join(f"{error.message} {error.suggestion}" for error in found)
    assert all(word in text for word in words), text
    assert all(error.line and error.column and error.source for error in found)


PREFIX = "import asyncio\nasync def own(): return [1]\n"


@pytest.mark.parametrize(
    "script",
    [
        "get_expenses('a', 'Q1')[0]\nawait ping()",
        "len(get_expenses('a', 'Q1'))\nawait ping()",
        "for e in get_expenses('a', 'Q1'): pass\nawait ping()",
        "[e for e in own()]\nawait ping()",
        "print(f'{ping()}')\nawait ping()",
        "x = get_expenses('a', 'Q1')\nprint(x[0])\nawait ping()",
        "x = own()\nfor i in x: pass\nawait ping()",
        "await get_expenses('a', 'Q1')[0]",
        "ping()\nawait ping()",
        "if ping(): pass\nawait ping()",
        "a, b = own()\nawait ping()",
        "sorted([1], key=lambda x: get_expenses('a', 'Q1'))\nawait ping()",
        "list(filter(own, []))\nawait ping()",
        "ping() + 1\nawait ping()",
        "ping().x\nawait ping()",
        "max([1], key=own)\nawait ping()",
    ],
)
def test_a_missing_await_is_found_when_it_is_certain(script: str) -> None:
    found = findings(PREFIX + script)
    assert [error.kind for error in found] == ["missing_await"], found
    assert "await" in f"{found[0].message} {found[0].suggestion}"


@pytest.mark.parametrize(
    "script",
    [
        "tasks = [ping() for _ in range(3)]\nawait asyncio.gather(*tasks)",
        "a = ping()\nb = ping()\nx, y = await asyncio.gather(a, b)",
        "x = ping()\nprint((await x)['a'])",
        "t = asyncio.create_task(ping())\nawait t",
        "await asyncio.wait_for(ping(), 1)",
        "jobs = {}\njobs['a'] = ping()\nfor k, j in jobs.items():\n    print(k, await j)",
        "async def f():\n    return ping()\nr = await (await f())",
        "x = own()\nr = await x\nr[0]",
        "def make():\n    return ping()\nawait make()",
        "calls = list(map(lambda n: ping(), [1, 2]))\nawait asyncio.gather(*calls)",
        "x = ping() or own()\nawait x",
        "await own()",
        "print(await ping())",
        "try:\n    ping()\nexcept TypeError:\n    pass\nawait ping()",
    ],
)
def test_calls_that_may_be_awaited_later_are_left_alone(script: str) -> None:
    assert findings(PREFIX + script) == []


@pytest.mark.parametrize(
    "script",
    [
        "get_expenses('a', 'Q1', 5, '2024-01-01')",
        "get_expenses({'employee': 'a', 'quarter': 'Q1'})",
        "args = {'employee': 'a', 'quarter': 'Q1'}\nget_expenses(args)\nget_expenses(**args)",
        "get_expenses(*['a', 'Q1'])",
        "q = 'Q7'\nget_expenses('a', q)",
        "get_expenses('a', 'Q1', limit=5.0)",
        "get_expenses('a', 'Q1', since='2024-01-01T00:00:00')",
        "get_expenses('a', 'Q1', since=f'{2024}-01-01')",
        "page(cursor=None)\npage(cursor='x')\npage(None)",
        "find({'status': ['open']})",
        "find({'filter': {'status': ['open']}})",
        "find(filter={**{}})",
        "r = page()\nr['extra'] = 1\nprint(r['extra'])",
        "r = page()\nr.update(extra=1, other={'more': 2})\nprint(r['more'])",
        "r = page()\nfor k in r:\n    print(k, r[k])",
        "r = page()\nfor k, v in r.items(): print(k)\nprint(r.get('nope'))",
        "try:\n    print(page()['nope'])\nexcept KeyError:\n    pass",
        "print(ping()['anything'])",
        "r = page()\nr = {'x': 1}\nprint(r['x'])",
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas",
        "try:\n    undefined\nexcept NameError:\n    pass",
        "def f(x: Undefined) -> AlsoUndefined:\n    y: Nothing = 1\n    return y",
        "def f():\n    global made\n    made = 1\nf()\nprint(made)",
        "import collections.abc, urllib.parse\nurllib.parse.quote('a'); collections.abc.Mapping",
        "class C:\n    x = 1\n    y = [x for _ in range(2)]\nC.x",
        "[z for a in [[1]] for z in a]\nlambda q: q\nmatch 1:\n    case w: print(w)",
        "crm.find_contact(name='a')",
        "get_expenses = 5\nget_expenses + 1",
        "def open(x): return x\nopen('a')",
    ],
)
def test_what_may_be_right_is_left_alone(script: str) -> None:
    assert findings(script) == []


def test_all_findings_come_in_one_list_by_line() -> None:
    script = "import requests\nget_expenses(employee='a')\nx.__globals__\ntry: pass\nexcept* ValueError: pass\nprint(undefind)"
    assert [(error.line, error.kind) for error in findings(script)] == [
        (1, "refused_import"),
        (2, "invalid_arguments"),
        (3, "refused_attribute"),
        (3, "unknown_name"),
        (4, "refused_syntax"),
        (6, "unknown_name"),
    ]


def test_what_python_cannot_compile_comes_first() -> None:
    found = findings("print(undefind)\nmatch 1:\n    case a: pass\n    case b: pass")
    assert found[0].exception == "SyntaxError"


@pytest.mark.parametrize(
    ("script", "line", "words"),
    [
        ("for p in x\n    print(p)", 1, ["expected ':'"]),
        ("f(a, b=1\nprint(2)", 1, ["never closed"]),
        ("def f():\n    a = 1\n\tb = 2", 3, ["four spaces"]),
        ('x = 1\nprint(f"{{a: {x}}")', 2, ["}}"]),
        ("if x == 1 && y == 2:\n    pass", 1, ["and"]),
        ("const x = 1", 1, ["const"]),
        ("print 'a'", 1, ["print(...)"]),
        ("x = “a”", 1, ["ASCII"]),
        ("if x = 1:\n    pass", 1, ["=="]),
        ("def f():\nreturn 1", 2, ["indent"]),
        ("x = 'abc", 1, ["close the string"]),
        ("def f():\n    def g():\n        nonlocal n\n    return g\nn = 1", 3, ["global"]),
    ],
)
def test_syntax_errors_say_where_and_what(script: str, line: int, words: list[str]) -> None:
    found = findings(script)
    assert (found[0].kind, found[0].line) == ("syntax_error", line), found
    text = f"{found[0].message} {found[0].suggestion}"
    assert all(word in text for word in words), text
