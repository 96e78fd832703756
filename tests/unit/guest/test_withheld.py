"""A withheld result may be kept and handed on in a script; every other use ends the rehearsal at its line."""

from __future__ import annotations

import msgspec
import pytest

from bascule.wire import Call, Delivery, ToolFailure
from tests.unit.guest.harness import MemoryHost, Outcome, run

USES = [
    "print(r)",
    "str(r)",
    "f'{r}'",
    "'%s' % r",
    "'{}'.format(r)",
    "r['id']",
    "r.id",
    "r.get('id')",
    "if r: pass",
    "not r",
    "r == 1",
    "r + 1",
    "[*r]",
    "for x in r: pass",
    "len(r)",
    "list(r)",
    "dict(r)",
    "int(r)",
    "bool(r)",
    "hash(r)",
    "id(r)",
    "callable(r)",
    "list(filter(callable, [r]))",
    "{r: 1}",
    "{r}",
    "r()",
    "1 in r",
    "x, y = r",
    "with r: pass",
    "sorted([r, r])",
    "sum([r])",
    "max(r, r)",
    "effect(r)",
    "effect([{'a': r}])",
    "import json\njson.dumps(r)",
    "import json\njson.loads(r)",
    "getattr(r, 'id', None)",
    "hasattr(r, 'id')",
    "r.x = 1",
    "r.x += 1",
    "del r.x",
    "setattr(r, 'x', 1)",
    "r is None",
    "x = 1 if r is not None else 2",
    "a = r\n1 < 2 is a",
    "[x for x in [1, r] if x is None]",
    "type(r)",
    "type(r) is dict",
    "match r:\n    case None:\n        effect('x')",
    "match [1, {'a': (2, r)}]:\n    case [1, {'a': [2, None]}]:\n        effect('x')",
    "r.__class__",
    "isinstance(r, dict)",
    "isinstance(r, (int, str))",
    "import collections.abc\nisinstance(r, collections.abc.Mapping)",
    "match r:\n    case dict():\n        effect('x')",
    "match r:\n    case {'id': n}:\n        effect('x')",
    "match r:\n    case [a, *b]:\n        effect('x')",
    "match r:\n    case 'text':\n        effect('x')",
    "try:\n    r.id\nexcept Exception:\n    effect('caught')",
    "import contextlib\nwith contextlib.suppress(Exception):\n    r.id\neffect('suppressed')",
]


def effect(argument: object = None) -> None:
    """Have an effect."""


class RehearsingHost(MemoryHost):
    """Withholds every result."""

    def _execute(self, call: Call) -> Delivery:
        failure = ToolFailure(kind="withheld", message=call.tool)
        return Delivery(seq=call.seq, now=self.now, value=msgspec.Raw(b"null"), failure=failure)


def rehearse(script: str) -> Outcome:
    tools = {"effect": effect}
    return run(script, tools, host=RehearsingHost(tools=tools), rehearsal=True)


@pytest.mark.parametrize("use", USES)
def test_a_use_ends_the_rehearsal_and_nothing_catches_it(use: str) -> None:
    outcome = rehearse(f"r = effect('first')\n{use}\neffect('after')")
    assert outcome.finish.errors[0].kind == "rehearsal_end", outcome.finish
    assert outcome.finish.errors[0].line is not None
    assert [args for _, args in outcome.calls] == [{"argument": "first"}]


@pytest.mark.parametrize(
    "script",
    [
        "effect('a')\neffect('b')",
        "r = effect('a')\nrs = [r, effect('b')]\nd = {'a': r}\n",
        "rs = [effect(x) for x in ('a', 'b')]\nlen(rs)",
        "import asyncio\nrs = await asyncio.gather(effect('a'), effect('b'))\nlen(rs)",
        "def f(x):\n    return x\nf(effect('a'))\neffect('b')",
        "import copy\ncopy.deepcopy([effect('a')])\neffect('b')",
        "r = effect('a')\nx = [r]\nif x is not None and None is None:\n    effect('b')\nreturn [r]",
        "r = effect('a')\nmatch [1, {'a': None}]:\n    case [1, {'a': None}]:\n        effect('b')\nreturn r",
        "r = effect('a')\nmatch [1, r]:\n    case x:\n        effect('b')",
        "async def f(x):\n    return await effect(x)\nr = await f('a')\nawait effect('b')\nreturn r",
    ],
)
def test_keeping_it_is_no_use(script: str) -> None:
    outcome = rehearse(script)
    assert outcome.finish.status == "ok", outcome.finish
    assert len(outcome.calls) == 2


def test_a_returned_one_is_shown_as_such() -> None:
    assert rehearse("return {'a': effect('x')}").finish.value == {"a": "[withheld]"}


def test_a_run_that_is_no_rehearsal_is_not_watched() -> None:
    def look() -> None:
        """Look."""

    outcome = run("x = look()\nmatch x:\n    case None:\n        return x is None", {"look": look})
    assert outcome.finish.value is True
