"""Scripts at the rare ends of copying, callables, specials and logging, each beside what CPython gives.

Every one of them is also run by plain CPython: output and result are the same.
"""

# ruff: noqa: E501 (scripts read best with few breaks)

from __future__ import annotations

import contextlib
import io

import pytest

from tests.unit.guest.harness import run

SAME: dict[str, str] = {
    "a partial of a partial is one": (
        "from functools import partial\n"
        "p = partial(partial(divmod, 17), 5)\nq = partial(partial(int, base=2), '101')\n"
        "print(p(), q(), q.args, q.keywords)\n"
    ),
    "partials are copied with what they hold": (
        "import copy\nfrom functools import partial\n"
        "def add(rows, n, *, by=1):\n    rows.append(n + by)\n    return rows\n"
        "p = partial(add, [1], by=2)\nshallow, deep = copy.copy(p), copy.deepcopy(p)\n"
        "print(deep(5), shallow(6), p(7), deep.keywords)\n"
    ),
    "a random generator is copied with its state": (
        "import copy, random\nr = random.Random(5)\nr.random()\ntwin = copy.deepcopy(r)\n"
        "print([r.random() for _ in range(3)] == [twin.random() for _ in range(3)], twin is not r)\n"
    ),
    "a bound method is copied with its object, when deeply": (
        "import copy\nclass A:\n    def __init__(self):\n        self.rows = []\n"
        "    def add(self, n):\n        self.rows.append(n)\n        return self.rows\n"
        "a = A()\ndeep, shallow = copy.deepcopy(a.add), copy.copy(a.add)\n"
        "print(deep(1), shallow(2), a.rows)\nprint(copy.deepcopy([].append) is not None)\n"
    ),
    "a class decides how it is copied": (
        "import copy\nclass Node:\n    def __init__(self, n, other=None):\n        self.n, self.other = n, other\n"
        "    def __deepcopy__(self, memo):\n        return Node(self.n + 100, copy.deepcopy(self.other, memo))\n"
        "    def __copy__(self):\n        return Node(self.n + 1)\n"
        "inner = Node(2)\nrows = [Node(1, inner), inner]\ndeep = copy.deepcopy(rows)\n"
        "print(deep[0].n, deep[0].other.n, deep[0].other is deep[1], copy.copy(inner).n)\n"
    ),
    "a memo of the script's own": (
        "import copy\nkept, other = [1], [2]\nmemo = {id(kept): 'kept'}\n"
        "made = copy.deepcopy([kept, other], memo)\nprint(made, memo[id(other)] if id(other) in memo else made[1])\n"
        "memo = {}\nfirst = copy.deepcopy(other, memo)\nprint(memo[id(other)] is first)\n"
    ),
    "a tuple that holds itself by way of a list": (
        "import copy\nrows = []\npair = (rows, 1)\nrows.append(pair)\ndeep = copy.deepcopy(pair)\n"
        "print(deep[0][0] is deep, deep is not pair, deep[1])\n"
    ),
    "super reaches past a class that hides a text's format": (
        "class Loud(str):\n    def format(self, *args):\n        return super().format(*args).upper()\n"
        "    def again(self):\n        return super().upper()\n"
        "print(Loud('{} and {}').format('a', 'b'), Loud('x').again())\n"
    ),
    "class methods by way of super": (
        "class Base:\n    made = 0\n    @classmethod\n    def make(cls, n):\n        cls.made += n\n        return cls()\n"
        "class Own(Base):\n    @classmethod\n    def make(cls, n):\n        return super().make(n + 1)\n"
        "print(type(Own.make(2)).__name__, Own.made, Base.made)\n"
        "class Days(dict):\n    @classmethod\n    def of(cls, names):\n        return super().fromkeys(names, 0)\n"
        "print(Days.of('ab'))\n"
    ),
    "the order of two bases decides what super gives": (
        "class Log:\n    def get(self, key):\n        return 'log ' + str(key)\n"
        "class Rows(Log, dict):\n    def get(self, key):\n        return super().get(key)\n"
        "class Other(dict):\n    def get(self, key):\n        return super().get(key, 'none')\n"
        "print(Rows(a=1).get('a'), Other(a=1).get('b'))\n"
    ),
    "methods of built-in classes called by name": (
        "from collections import Counter\nclass Tally(Counter):\n    def __init__(self, *rows):\n"
        "        Counter.__init__(self, *rows)\n        self.n = 1\n"
        "print(Tally('aab').most_common(1), [1, 2].__len__(), (3).__add__(4), 'abc'.__contains__('b'))\n"
        "print([1].__repr__(), ValueError('x').__str__(), {'a': 1}.__getitem__('a'))\n"
    ),
    "a named tuple gives the arguments it was made of": (
        "from collections import namedtuple\nPoint = namedtuple('Point', 'x y')\nprint(Point(1, 2).__getnewargs__())\n"
    ),
    "fields, annotations and names of objects": (
        "import math\nfrom dataclasses import dataclass\nfrom typing import Optional\n"
        "class Slots:\n    __slots__ = ('a',)\n"
        "@dataclass\nclass Row:\n    '''A row.'''\n    a: int\n    b: str = 'x'\n"
        "print(hasattr(Slots(), '__dict__'), Row(1).__dict__, Row.__annotations__, math.__name__, Row(1).__doc__)\n"
        "print(list(Row.__dataclass_fields__), list[int].__args__ == (int,), Optional[int].__args__[0] is int)\n"
        "print(hasattr(3, '__args__'), hasattr(3, '__members__'), hasattr(Slots, '__cause__'))\n"
    ),
    "a pattern whose attribute is missing does not match": (
        "class Point:\n    def __init__(self, **fields):\n"
        "        for name in fields:\n            setattr(self, name, fields[name])\n"
        "for p in (Point(x=1), Point(x=1, y=2), 5):\n"
        "    match p:\n        case Point(x=x, y=y):\n            print('both', x, y)\n"
        "        case Point(x=x):\n            print('one', x)\n        case _:\n            print('none')\n"
    ),
    "batches of exactly one size": (
        "from itertools import batched\nprint(list(batched('abcd', 2, strict=True)))\n"
        "try:\n    list(batched('abc', 2, strict=True))\nexcept ValueError as error:\n    print(error)\n"
        "try:\n    list(batched('abc', 0))\nexcept ValueError as error:\n    print(error)\n"
    ),
    "an assignment that is no result": "rows = [0]\nprint(rows)\na, rows[0] = 1, 2\n",
    "a date has no such field to match": (
        "import datetime\nmatch datetime.date(2024, 1, 2):\n    case datetime.date(hours=h):\n        print(h)\n"
        "    case datetime.date(month=m):\n        print('month', m)\n"
    ),
    "the arguments of a version": "import sys\nprint(sys.version_info.__getnewargs__()[0][:1] == (3,))\n",
    "eval by way of a partial sees the variables of the caller": (
        "from functools import partial\ndef f(y):\n    return partial(eval, 'y + 1')()\nprint(f(2))\n"
    ),
    "the trace of an error inside a module": (
        "import json, traceback\ntry:\n    json.loads('{')\nexcept ValueError:\n"
        "    print(traceback.format_exc().count('line 3, in <module>'))\n"
    ),
    "a percent of what is no text": "n = 17\nn %= 5\nrows = {'t': '%d'}\nrows['t'] %= 3\nprint(n, rows)\n",
}

_SINCE_3_13 = {"batches of exactly one size"}
"""Run against the words of the newest CPython, which the guest gives on every one."""


def plain(script: str) -> str:
    """Return what plain CPython prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        exec(compile(script, "<script>", "exec", dont_inherit=True), {"__name__": "__main__"})
    return text.getvalue()


@pytest.mark.parametrize("name", sorted(SAME.keys() - _SINCE_3_13))
def test_a_script_prints_what_plain_python_prints(name: str) -> None:
    outcome = run(SAME[name])
    assert outcome.errors == ()
    assert outcome.output == plain(SAME[name])


def test_batches_are_there_on_every_python() -> None:
    outcome = run(SAME["batches of exactly one size"])
    assert outcome.output == (
        "[('a', 'b'), ('c', 'd')]\nbatched(): incomplete batch\nn must be at least one\n"
    )
