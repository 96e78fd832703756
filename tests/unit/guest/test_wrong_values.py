"""What a script is told about the very values of the line that failed: what they are, and what to write."""

# ruff: noqa: E501  scripts read better unbroken

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from bascule.guest.errors import ToolError
from bascule.guest.failing import find_failing
from bascule.guest.known_values import kind_of
from bascule.guest.source import Source
from bascule.guest.wrong_calls import explain_call, own_argument, passing_failure
from bascule.guest.wrong_operands import explain_operand
from bascule.guest.wrong_texts import explain_text
from tests.unit.guest.harness import run


def page(word: str = "") -> dict[str, Any]:
    """Return a page of rows; the fields of its rows have the forms in which services send them."""
    rows: list[dict[str, Any]] = [
        {
            "id": "R1",
            "amount": "12.50",
            "day": "2025-03-31",
            "at": "2025-03-31T10:00:00+02:00",
            "tags": ["a"],
        },
        {"id": "R2", "amount": "7", "day": "2025-04-01", "at": "2025-04-01T10:00:00+02:00", "tags": []},
    ]
    return {"rows": rows, "next": None}


def flaky() -> int:
    """Fail as a service that is busy."""
    raise ConnectionError("busy, try again")


def listed(active: bool) -> int:
    """Take a flag."""
    return int(active)


TOOLS: dict[str, Callable[..., Any]] = {"page": page, "flaky": flaky, "listed": listed}
ROWS = "rows = page()['rows']\n"
ROW = "row = page()['rows'][0]\n"


@pytest.mark.parametrize(
    ("script", "suggestion"),
    [
        ("p = page()\np[0]", "`p` is a dict with 'rows', 'next': write `p['rows'][0]`"),
        ("p = page()\np[:5]", "`p` is a dict with 'rows', 'next': write `p['rows'][:5]`"),
        ("p = {'a': 1}\np[:5]", "slice the list in it, or `list(p.items())`"),
        ("p = {'1': 2}\nn = 1\np[n]", "the keys of `p` are texts: write `p[str(n)]`"),
        ("p = {1: 2}\nn = '1'\np[n]", "the keys of `p` are numbers: write `p[int(n)]`"),
        ("p = {}\np['a']", "`p` is empty"),
        ("p = {'a': 1}\np['b']", "its keys are: 'a'"),
        ("p = {k: 1 for k in range(40)}\np['b']", "28, 29 and 10 more"),
        ("p = {10**5000: 1}\np['b']", "its keys are: "),
        ("d = {}\nk = 'x'\nd[k] += 1", "write `d[k] = d.get(k, 0) + 1`"),
        ("d = {}\nk = 'x'\nd[k].append(1)", "write `d.setdefault(k, []).append(...)`"),
        ("d = {}\nk = 'x'\nd[k].add(1)", "write `d.setdefault(k, set()).add(...)`"),
        ("d = {}\nk = 'x'\nd[k]['n'] = 1", "write `d.setdefault(k, {})['n'] = ...`"),
        ("from collections import defaultdict\nd = defaultdict()\nd['x'] += 1", "write `defaultdict(int)`"),
        (ROWS + "rows['id']", "loop over it, or take one item first, as in `rows[0]['id']`"),
        (ROWS + "rows['name']", "loop over it; its items are dicts with 'id', 'amount'"),
        (ROWS + "rows['0']", "write `rows[0]`, without quotes"),
        (ROWS + "rows[len(rows) / 2]", "write `//` or int(...)"),
        (ROWS + "rows[2]", "`rows` has 2 items: the last is `rows[-1]`"),
        (ROWS + "x = [rows]\nx['id']", "`x` is a list of lists"),
        ("x = [('a', 1)]\nx['a']", "as in `x[0]`; the first is a tuple"),
        ("x = []\nx[0]", "`x` is empty: test for that first, `if x:`"),
        ("import sys\nsys.argv[1]", "scripts get no arguments: assign the value"),
        ("x = '{\"a\": 1}'\nx['a']", "parse it first, `json.loads(x)['a']`"),
        (ROW + "for t in row['tags']:\n    t['name']", "going through `row['tags']` gives texts"),
        ("try:\n    flaky()\nexcept ToolError as e:\n    print(e['message'])", "`str(e)` is its message"),
        (
            "import asyncio\nfor x in await asyncio.gather(flaky(), return_exceptions=True):\n    print(x['n'])",
            "test `isinstance(x, Exception)` first",
        ),
        ("x = page\nx['rows']", "`x` is the tool itself: call it, `page(...)`"),
        ("x = page\nfor y in x:\n    pass", "`x` is the tool itself: call it, `page(...)`"),
        (
            "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as pool:\n"
            "    f = pool.submit(page)\n    f['rows']",
            "`f` is a future: `f.result()` is its value",
        ),
        (
            "import asyncio\nasync def f():\n    return [1]\nt = asyncio.create_task(f())\nt[0]\nawait t",
            "`t` is a task: `await t` gives its value",
        ),
        (ROW + "row['amount'] * 1.5", "`float(row['amount'])`"),
        (ROW + "1 + row['amount']", "`row['amount']` is the text '12.50': convert the text"),
        (ROW + "total = 0.0\ntotal += row['amount']", "`float(row['amount'])`"),
        (ROW + "from decimal import Decimal\nDecimal(1) + row['amount']", "`Decimal(row['amount'])`"),
        ("n, word = 3, 'apples'\nn + word", "join texts with an f-string, or `str(n)`"),
        ("n, word = 3, 'apples'\nn < word", "`word` is the text 'apples', not a number"),
        (ROW + "row['at'] - row['at']", "`datetime.fromisoformat(row['at']) - datetime.fromisoformat(row['at'])`"),
        ("a = '3'\na - a", "`float(a) - float(a)`"),
        (ROW + "from datetime import date\ndate(2025, 1, 1) < row['day']", "`date.fromisoformat(row['day'])`"),
        (
            ROW + "from datetime import date\ndate(2025, 1, 1) < row['at']",
            "`datetime.fromisoformat(row['at']).date()`",
        ),
        ("from datetime import date\ndate(2025, 1, 1) + 5", "write `timedelta(days=5)`"),
        ("from datetime import datetime, date\ndate.today() < datetime.now()", "write `.date()` behind the moment"),
        ("from datetime import timedelta\ntimedelta(months=1)", "timedelta takes weeks, days"),
        (ROW + "float(row)", "take one of its values, as in `row['id']`"),
        (ROW + "round(row, 2)", "take one of its values, as in `row['id']`"),
        ("float(page())", "take one of its values first"),
        (ROW + "row > 5", "take one of its values, as in `row['id']`"),
        (ROWS + "rows + 5", "wrap the one item, `rows + [item]`"),
        (ROWS + "5 * rows > 3", None),
        (ROWS + "rows > 5", "`rows` is a list of 2: loop over it, or take one item, as in `rows[0]`"),
        (ROWS + "sum(r['amount'] for r in rows)", "`sum(float(r['amount']) for r in ...)`"),
        (ROWS + "x = [r['amount'] for r in rows]\nsum(x)", "`sum(float(x) for x in x)`"),
        (ROWS + "sum(rows)", "sum() got dicts: take one of their values ('id', 'amount', 'day', 'at', 'tags')"),
        (ROWS + "sum(r['tags'] for r in rows)", "sum() got lists"),
        ("sum(x['n'] for x in [{'n': None}])", "`sum(x['n'] or 0 for x in ...)`"),
        ("async def f():\n    return 1\nasync def g():\n    return sum(f() for x in 'a')\nawait g()", "not awaited"),
        ("rows = [{'n': None}, {'n': 1}]\nrows.sort(key=lambda r: r['n'])", "`[r for r in rows if r['n'] is not"),
        ("rows = [{'n': None}, {'n': 1}]\nmin(r['n'] for r in rows)", "`r['n']` is None for some"),
        ("max([1, None])", "some of the values are None"),
        (ROWS + "range(rows)", "write `for item in rows`, or `range(len(rows))`"),
        ("n = 3\nlen(n)", "`n` is the number 3, not a list"),
        ("n = 3\nfor x in n:\n    pass", "to count, loop over `range(n)`"),
        ("','.join([1, 2])", "write `','.join(str(x) for x in values)`"),
        ("','.join([None])", "some are None"),
        (ROWS + "','.join(rows)", "take one of the dicts' values, which have 'id'"),
        (ROW + "s = set()\ns.add(row)", "take what identifies it, such as `row['id']`"),
        (ROW + "s = {}\ns[row] = 1", "take what identifies it, such as `row['id']`"),
        (ROWS + "import statistics\nstatistics.mean(r['amount'] for r in rows)", "`float(r['amount'])`"),
        ("import asyncio\nrow = await page()\nawait asyncio.gather(row)", "`row` is a result already"),
        (ROW + "row('id')", "write square brackets, `row['id']`"),
        (ROW + "row['tags'](1)", "this is no function"),
        ("x = {'a': {'b': 1}}\nx['a']('b')", "`x['a']` is a dict with 'b': it takes square brackets"),
        ("name = 'page'\nname()", "`name` is the text 'page', not a function"),
        (
            "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as pool:\n"
            "    f = pool.submit(page())\nf.result()",
            "`submit(f, x)`, not `submit(f(x))`",
        ),
        ("def f(a, b=2):\n    return a\nf()", "line 1 has `def f(a, b=2)`"),
        ("def f(order_id):\n    return 1\nf(order=1)", "did you mean `order_id`? line 1 has `def f(order_id)`"),
        ("class A:\n    def f(x):\n        pass\nA().f(1)", "write `def f(self, ...)` in line 2"),
        ("class A:\n    def __init__(self, a):\n        pass\nA()", "line 2 has `def __init__(self, a)`"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass A:\n    id: str\nA(**page())",
            "take these alone, `A(**{k: row[k] for k in ('id',)})`",
        ),
        ("from dataclasses import dataclass\n@dataclass\nclass A:\n    id: str\nA()", "A (line 3) has the fields id"),
        ("class A:\n    pass\nA(1)", None),
        (ROWS + "for a, b in rows:\n    pass", "the items of `rows` are dicts with 'id'"),
        (ROW + "for a, b in row:\n    pass", "`row` is a dict: write `row.items()` for its pairs"),
        (ROW + "f\"{row['amount']:.2f}\"", "write `float(row['amount'])` in front of the format"),
        ("'{:.2f}'.format('1')", "the value is a text"),
        (ROW + "from datetime import datetime\ndatetime.strptime(row['at'], '%Y')", "it is an ISO text"),
        ("from datetime import datetime\ndatetime.strptime('31.3.', '%Y')", "the format must fit"),
        (ROW + "from datetime import date\ndate.fromisoformat(row['at'])", "the text has a time as well"),
        ("from datetime import date\ndate.fromisoformat('31.3.2025')", "reads other forms"),
        ("import asyncio\nasync def f():\n    pass\nasyncio.create_task(f())", "write `await main()` at the end"),
        ("c = None\nwhile c is not None:\n    r = page()\nr['rows']", "`r` is assigned in line 3 alone, in a loop (line 2)"),
        ("if page(word='') == 1:\n    r = 1\nprint(r)", "in an `if` (line 1) that did not get there"),
        ("x = [row for row in page()['rows']]\nprint(row)", "`row` belongs to the comprehension in line 1 alone"),
        ("try:\n    flaky()\nexcept ToolError as e:\n    pass\nprint(e)", "`e` is gone after its `except`"),
        ("def f():\n    r = 1\nf()\nprint(r)", "assign it on every path"),
        ("print(r)\nr = 1", "assign it on every path"),
        ("x = '1.50'\nx + 5", "`float(x)`"),
        ("x = 'n: '\nx + 5", "join texts with an f-string, or `str(5)`"),
        ("text = '{\"a\": 1}'\nfor row in text:\n    row['a']", "going through it gives letters: json.loads(text)"),
        ("x = {'doc_id': 1, 'kind': 2}\nx['id']", "did you mean `doc_id`?"),
        ("next(iter([]))", "give next() a default"),
        ("x = {'name': 1}\nx.pop('nam')", "did you mean `name`?"),
        ("x = {'name': 1}\nx.pop('zzz')", "its keys are: 'name'"),
        ("x, y = {'name': 1}, {'b': 2}\nx.pop('zzz') or y", "the keys"),
        ("x = []\nx += 5", "write `x.append(5)`"),
        ("class A:\n    pass\na = A()\na.x = []\na.x += 5", "write `a.x.append(5)`"),
        ("x = [1]\nx[-5]", "`x` has 1 items: the last is `x[-1]`"),
        ("x = True\nx[0]", "`x` is True: it has no items"),
        ("listed(active='yes')", "write `True`"),
        ("d = {'a': 1}\nk = [1]\nd[k]", "use a tuple, or a text, as the key"),
        ("p = {'a': 1}\np[0]", "its keys are: 'a'"),
        ("n = 3\nfor x in n:\n    pass", "`n` is the number 3, not a list; to count, loop over `range(n)`"),
        ("a = '2025-13-45'\na - a", "`float(a) - float(a)`"),
        ("s = set()\nd = {1: 2}\ns.add(d)", "use a tuple, or a text, as the key"),
        ("import math\nx = '4'\nmath.sqrt(x)", "`x` is the text '4': convert it, `float(x)`"),
        ("import bisect\nbisect.bisect([1, None], 2)", "test for None first"),
        ("a, b = [1, 2, 3]", "names and values must be as many"),
        ("a, b = 1, 2\n(a, b), c = [(1, 2, 3), 4]", "names and values must be as many"),
        ("import json, datetime\njson.dumps(datetime.date(2025, 1, 1))", "write json.dumps(value, default=str)"),
        ("import json\njson.dumps({1})", "make a list of it"),
        ("flaky()", "catch ConnectionError around this one call and call again"),
        ("try:\n    flaky()\nexcept ToolError as e:\n    e.code", "`str(error)` is its message"),
        ("from datetime import date\ndate.now()", "write `date.today()`"),
        ("from datetime import datetime\ndatetime.timedelta(days=1)", "add `from datetime import timedelta`"),
    ],
)  # fmt: skip
def test_the_value_and_what_to_write_are_named(script: str, suggestion: str | None) -> None:
    found = run(script, TOOLS).error.suggestion
    assert (found is None) if suggestion is None else (suggestion in (found or "")), found


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="there date has it")
def test_a_date_has_no_strptime() -> None:
    script = "from datetime import date\ndate.strptime('2025', '%Y')"
    assert "write `datetime.strptime(text, form).date()`" in (run(script).error.suggestion or "")


@pytest.mark.parametrize(
    ("value", "suggestion"),
    [
        ({"sku": "S1", "n": 1}, "write `sku=row['sku']`"),
        ({"id": "S1"}, "`row` is a dict with 'id': give one of its values"),
        ("S1", None),
    ],
)
def test_a_row_given_for_one_of_its_values_is_named(value: object, suggestion: str | None) -> None:
    text = "get(sku=row)"
    failing = find_failing(Source(lines=(text,)), (1, 1, 0, len(text)))
    assert failing is not None
    assert (
        own_argument(failing, "get(): wrong arguments\n- sku: must be a text", {"row": value}) == suggestion
    )


def test_what_is_no_call_gives_no_argument() -> None:
    failing = find_failing(Source(lines=("row + 1",)), (1, 1, 0, 7))
    assert failing is not None
    assert own_argument(failing, "get(): wrong arguments\n- sku: must be a text", {"row": {}}) is None


@pytest.mark.parametrize(
    ("lines", "place", "explain", "text", "suggestion"),
    [
        # Where Pythons differ in what they call the failing place.
        (
            ("n = 3", "for x in n: pass"),
            (2, 2, 9, 10),
            explain_operand,
            "'int' object is not iterable",
            "`n` is",
        ),
        (("for a, b in n: pass",), (1, 1, 0, 19), explain_text, "not enough values to unpack", None),
        (
            ("class A: pass", "A(1)"),
            (2, 2, 0, 4),
            explain_call,
            "A() takes 1 positional argument but 2",
            None,
        ),
    ],
)
def test_places_that_other_pythons_give_are_explained(
    lines: tuple[str, ...],
    place: tuple[int, int, int, int],
    explain: Callable[..., str | None],
    text: str,
    suggestion: str | None,
) -> None:
    failing = find_failing(Source(lines=lines), place)
    assert failing is not None
    values = {"n": 3}
    if explain is explain_text:
        found = explain(failing, ValueError(text), text, values)
    else:
        found = explain(failing, text, values)
    assert (found is None) if suggestion is None else (found or "").startswith(suggestion)


def test_only_what_may_pass_is_called_again() -> None:
    assert passing_failure(ToolError("no", kind="denied")) is None


def test_values_are_told_in_words() -> None:
    assert kind_of(ValueError("a")) == "the exception ValueError"
    assert kind_of({1}) == "a set"


@pytest.mark.parametrize(
    "script", ["d = {'a': [1]}\nd[10**6000]", "d = {10**6000: 1}\nd['1']", "x = 10**6000\nx['a']"]
)
def test_numbers_that_python_does_not_write_cost_no_report(script: str) -> None:
    assert run(script, TOOLS).error.line == 2


def test_advice_that_fails_costs_the_advice_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr("bascule.guest.report.suggest", fail)
    error = run("1 / 0").error
    assert (error.message, error.suggestion) == ("ZeroDivisionError: division by zero", None)
