"""The executor with real containers: scripts that chain tools, hosts that die, guests that lie."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import pytest

from bascule.bridge import Executor, Limits, approve_all
from bascule.sandbox import Backend, Sandbox, SandboxLimits, open_backend
from bascule.sandbox.engine import Engine
from bascule.sandbox.hardening import CONTEXT_DIR, OWNER_LABEL
from tests.integration import given_tools

pytestmark = [pytest.mark.engine, pytest.mark.anyio]

CALLS = 30


@pytest.fixture
async def executor(backend: Backend) -> AsyncGenerator[Executor]:
    async with Executor(given_tools.TOOLS, backend=backend, approver=approve_all) as opened:
        yield opened


# ---------------------------------------------------------------- thirty calls, all ways of writing them

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


# ---------------------------------------------------------------- a host that dies

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
    with host.stdout:
        words = {host.stdout.readline().strip(), host.stdout.readline().strip()}
    os.kill(host.pid, signal.SIGKILL)
    host.wait()
    assert "inside" in words
    assert len(containers_owned_by(host.pid)) == 1
    async with Executor([given_tools.add]):
        pass
    assert containers_owned_by(host.pid) == []


# ---------------------------------------------------------------- guests that lie

PRELUDE = f"""
import json, os, sys, time

def send(data):
    payload = data if isinstance(data, bytes) else json.dumps(data, separators=(",", ":")).encode()
    os.write(1, len(payload).to_bytes(4, "big") + payload)

def receive():
    size = int.from_bytes(os.read(0, 4), "big")
    data = b""
    while len(data) < size:
        data += os.read(0, size - len(data))
    return json.loads(data)

def act(*commands, blocked=True):
    activation = {{"type": "activation", "commands": list(commands)}}
    send({{"type": "act", "activations": [activation], "blocked": blocked}})

def call(seq, tool="add", **args):
    return {{"type": "call", "seq": seq, "tool": tool, "args": args, "line": 1}}

def finish(value=None):
    usage = {{"type": "usage", "cpu_s": 0.0, "peak_memory_bytes": 0}}
    send({{"type": "finish", "status": "ok", "activations": [], "value": value, "value_source": "return",
          "errors": [], "notes": [], "usage": usage}})

image = open("{CONTEXT_DIR}/IMAGE").read().strip()
send({{"type": "hello", "protocol": 1, "image": image, "python": "3.11"}})
receive()
"""

LIES = {
    "an honest one, to prove the others": (
        "act(call(1, left=1, right=2)); finish(receive()['deliveries'][0]['value'])"
    ),
    "a forged delivery": "send({'type': 'done', 'deliveries': []}); time.sleep(60)",
    "a forged approval": "send({'type': 'approve', 'seq': 1}); time.sleep(60)",
    "seq out of order": "act(call(2), call(1)); time.sleep(60)",
    "seq twice": "act(call(1), call(1)); time.sleep(60)",
    "a frame after finish": "finish(1); act(call(1)); time.sleep(60)",
    "an oversized frame": "os.write(1, (1 << 30).to_bytes(4, 'big') + b'x' * 1000); time.sleep(60)",
    "a deep frame": "send(b'[' * 100000); time.sleep(60)",
    "half a frame, then silence": "os.write(1, (100).to_bytes(4, 'big') + b'{'); time.sleep(60)",
    "white space in a frame": "send(b' {}'); time.sleep(60)",
    "a flood of frames": "act(call(1, left=1))\nwhile True: act(call(2, left=1))",
    "a flood of bytes": "while True: os.write(1, b'x' * 65536)",
    "a flood on stderr": "while True: os.write(2, b'x' * 65536)",
    "a finish that does not exit": "finish('forged'); time.sleep(60)",
    "a finish with a bad exit": "finish('forged'); os._exit(3)",
    "nothing but an exit": "os._exit(0)",
    "an infinite number": "send({'type': 'finish', 'value': float('inf')}); time.sleep(60)",
}


class LyingBackend:
    """The real backend with another program in place of the guest."""

    name = "container"

    def __init__(self, backend: Backend, lie: str) -> None:
        self._backend = backend
        self._command = ["python3", "-S", "-s", "-P", "-c", PRELUDE + lie]

    @property
    def image_hash(self) -> str:
        return self._backend.image_hash

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> Sandbox:
        return await self._backend.start(limits, run_id=run_id, command=self._command)

    async def sweep(self) -> int:
        return await self._backend.sweep()

    async def close(self) -> None:
        await self._backend.close()


@pytest.mark.parametrize("name", LIES)
async def test_a_lying_guest_ends_in_a_clean_result_and_the_host_stays_healthy(
    backend: Backend, containers_of: Callable[[str], list[dict[str, Any]]], name: str
) -> None:
    liar = LyingBackend(backend, LIES[name])
    limits = Limits(wall_s=1.0)
    async with Executor(given_tools.TOOLS, backend=liar, limits=limits, approver=approve_all) as executor:
        result = await executor.run("add(1)")
    assert containers_of(result.run_id) == []
    if name.startswith("an honest one"):
        assert (result.status, result.value) == ("ok", 3)
        return
    assert result.status in ("failed", "limit")
    assert result.value is None
    assert result.error is not None
    assert result.error.kind in ("protocol_violation", "wall_limit", "guest_crashed")


async def test_after_all_lies_an_honest_script_still_runs(guest_image: object) -> None:
    backend = open_backend("container")
    try:
        liar = LyingBackend(backend, LIES["a flood of bytes"])
        async with Executor(given_tools.TOOLS, backend=liar) as executor:
            assert (await executor.run("1")).status == "failed"
        async with Executor(given_tools.TOOLS, backend=backend) as executor:
            assert (await executor.run("add(1)")).value == 2
    finally:
        await backend.close()
