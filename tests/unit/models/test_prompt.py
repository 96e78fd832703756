"""The system prompt: each of its promises is kept by a real guest, and its size is bounded."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from bascule.bridge import Decision, Executor, approve_all
from bascule.models import ToolSurface, build_prompt
from bascule.tools import tool
from tests.forks.backend import ForkBackend
from tests.models.world import Shop, open_executor

pytestmark = pytest.mark.anyio

FIXED_TOKENS = 900
"""Bound on what the prompt costs without stubs, in estimated tokens."""


def deny(_request: object) -> Decision:
    """Refuse every call that asks."""
    return Decision(verdict="reject", reason="not today", by="kim")


PROMISES = {
    "top-level return and await": ("import asyncio\nx = await add(a=1)\nreturn x + 1", "2"),
    "plain data": ("crm.orders(customer='Ann')[0]['total'] * 2", "21.0"),
    "blocking without await": ("add(a=1) + add(a=2)", "3"),
    "gather": ("import asyncio\nsum(await asyncio.gather(*[add(a=n) for n in range(4)]))", "6"),
    "last assignment": ("result = add(a=4)", "4"),
    "printed text, then the value": ("print('seen')\n[1, 2]", "seen\n[1,2]"),
    "ToolError": (
        "try:\n    broken()\nexcept ToolError as e:\n    x = [e.message, e.suggestion, e.retryable]\nx",
        '["the ledger is closed on Sundays",null,false]',
    ),
    "ToolArgumentError": (
        "args = {'a': 'x'}\ntry:\n    add(**args)\nexcept ToolArgumentError:\n    x = 'caught'\nx",
        '"caught"',
    ),
    "ToolDenied": (
        "try:\n    mail.send(to='a', text='b')\nexcept ToolDenied as e:\n    x = e.message\nx",
        '"the operator denied this call: not today"',
    ),
}


@pytest.mark.parametrize("promise", PROMISES)
async def test_a_script_works_as_the_prompt_says(forks: ForkBackend, promise: str) -> None:
    script, text = PROMISES[promise]
    async with open_executor(forks, Shop(), approver=deny) as executor:
        done = await ToolSurface(executor).call("run_script", {"code": script})
    assert done.text == text


async def test_every_module_the_prompt_names_can_be_imported(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        surface = ToolSurface(executor)
        found = re.search(r"Imports: (.*?) and the like", build_prompt(surface).text, re.DOTALL)
        assert found is not None
        done = await surface.call("run_script", {"code": f"import {' '.join(found[1].split())}\n'ok'"})
    assert done.text == '"ok"'


async def test_variables_do_not_stay(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        surface = ToolSurface(executor)
        await surface.call("run_script", {"code": "x = 1"})
        assert (await surface.call("run_script", {"code": "x"})).is_error


async def test_an_error_names_the_line_and_the_calls_that_were_made(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop(), approver=approve_all) as executor:
        done = await ToolSurface(executor).call(
            "run_script", {"code": "refund(order=1, amount=1)\n[].push(1)"}
        )
    assert "line 2" in done.text
    assert "hint: write `.append" in done.text
    assert "call 1 refund (line 1): done" in done.text


async def test_the_prompt_shows_the_stubs_and_the_operators_words_first(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        prompt = build_prompt(ToolSurface(executor), instructions="Be brief.")
    assert prompt.text.startswith("Be brief.\n\n# Tools")
    assert "def add(a: int, b: int = 0) -> int" in prompt.text
    assert "`crm.orders(customer=...)`" in prompt.text
    assert prompt.hidden == 0
    assert prompt.tokens < FIXED_TOKENS + 300


async def test_a_tool_that_scripts_may_not_call_is_not_among_the_stubs(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        prompt = build_prompt(ToolSurface(executor, callers={"mail.send": "direct"}))
    assert "def send(" not in prompt.text


@pytest.mark.parametrize("count", [0, 1, 300])
def test_the_prompt_stays_within_its_budget(count: int) -> None:
    def make(number: int) -> Callable[..., Any]:
        def work(first: str, second: int = 0, third: list[str] | None = None) -> dict[str, int]:
            """Do one of many things that take some words to describe, and return what came of it."""
            return {}

        return tool(name=f"area{number % 20}.work_{number}", effects="read")(work)

    surface = ToolSurface(Executor([make(number) for number in range(count)]), budget_tokens=4000)
    prompt = build_prompt(surface)
    assert prompt.tokens <= 4000 + FIXED_TOKENS
    assert (prompt.hidden > 0) == ("search_tools finds" in prompt.text)
