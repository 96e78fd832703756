"""The executor with real containers: scripts that chain tools, hosts that die, guests that lie."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from bascule.bridge import Executor, approve_all
from bascule.sandbox import Backend
from bascule.sandbox.engine import Engine
from bascule.sandbox.hardening import OWNER_LABEL
from tests.integration import given_tools

pytestmark = [pytest.mark.engine, pytest.mark.anyio]

CALLS = 30


@pytest.fixture
async def executor(backend: Backend) -> AsyncGenerator[Executor]:
    async with Executor(given_tools.TOOLS, backend=backend, approver=approve_all) as opened:
        yield opened


WRITTEN = {
    "blocking, keywords": "total = 0\nfor i in range(30):\n    total += add(left=i, right=1)\ntotal",
    "blocking, positional": "total = 0\nfor i in range(30):\n    total += add(i, 1)\ntotal",
    "blocking, one dict": "total = 0\nfor i in range(30):\n    total += add({'left': i, 'right': 1})\ntotal",
    "blocking, default": "sum(add(i) for i in range(30))",
    "blocking, async tool": "sum(add_async(i) for i in range(30))",
    "blocking, threads": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor() as pool:\n    parts = list(pool.map(add, range(30)))\nsum(parts)"
    ),
    "await, keywords": "total = 0\nfor i in range(30):\n    total += await add(left=i)\ntotal",
    "await, gather": (
        "import asyncio\nparts = await asyncio.gather(*(add(i, 1) for i in range(30)))\nreturn sum(parts)"
    ),
    "await, gather of an async tool": (
        "import asyncio\nparts = await asyncio.gather(*(add_async({'left': i}) for i in range(30)))\n"
        "sum(parts)"
    ),
    "asyncio.run": (
        "import asyncio\nasync def main():\n    return sum([await add(i) for i in range(30)])\n"
        "asyncio.run(main())"
    ),
}


@pytest.mark.parametrize("way", WRITTEN)
async def test_thirty_calls_give_the_same_result_however_they_are_written(
    executor: Executor, way: str
) -> None:
    result = await executor.run(WRITTEN[way])
    assert (result.status, result.value) == ("ok", sum(range(1, CALLS + 1))), result.for_model()
    assert len(result.calls) == CALLS
    assert {call.state for call in result.calls} == {"done"}
    assert {call.arguments for call in result.calls} == {
        b'{"left":%d,"right":1}' % number for number in range(CALLS)
    }


async def test_effects_happen_once_and_in_order(executor: Executor) -> None:
    given_tools.sent.clear()
    result = await executor.run(
        "import asyncio\nreturn await asyncio.gather(*(send(f'mail {i}') for i in range(5)))"
    )
    assert result.value == [6] * 5
    assert given_tools.sent == [f"mail {number}" for number in range(5)]


async def test_a_failed_script_says_which_effects_had_happened(executor: Executor) -> None:
    result = await executor.run("send('hello')\nadd(1)\n1 / 0")
    assert result.status == "failed"
    assert result.error is not None
    assert (result.error.exception, result.error.line) == ("ZeroDivisionError", 3)
    assert result.happened == ("call 1 send (line 1): done",)


async def test_a_tools_exception_is_caught_under_its_own_name_with_its_message(executor: Executor) -> None:
    result = await executor.run(
        "try:\n    fail('no such quarter')\n"
        "except ValueError as e:\n    got = [str(e), e.kind, e.retryable]\ngot"
    )
    assert result.value == ["no such quarter", "failed", False]


DYING_HOST = """
import asyncio, sys, threading
from bascule.bridge import Executor
from bascule.tools import tool

@tool(effects="read")
def inside() -> None:
    print("inside", flush=True)
    threading.Event().wait()

async def main():
    async with Executor([inside]) as executor:
        executor.subscribe(lambda event: event.name == "run.started" and print(event.run_id, flush=True))
        await executor.run("inside()")

asyncio.run(main())
"""


def containers_owned_by(pid: int) -> list[dict[str, Any]]:
    """List the containers that a host process started; warm ones carry no run's name."""
    engine = Engine()
    try:
        found = engine.call_now(engine.api.containers, all=True, filters={"label": OWNER_LABEL})
        return [each for each in found if each["Labels"][OWNER_LABEL].split(":")[1] == str(pid)]
    finally:
        engine.close()


async def test_a_host_killed_in_the_middle_leaves_no_container_after_the_next_start(
    guest_image: object,
) -> None:
    host = subprocess.Popen(  # noqa: ASYNC220  # nothing else runs on this loop
        [sys.executable, "-c", DYING_HOST], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    with host, host.stdout:
        words = {host.stdout.readline().strip(), host.stdout.readline().strip()}
        os.kill(host.pid, signal.SIGKILL)
    assert "inside" in words
    assert len(containers_owned_by(host.pid)) == 1
    async with Executor([given_tools.add]):
        pass
    assert containers_owned_by(host.pid) == []
