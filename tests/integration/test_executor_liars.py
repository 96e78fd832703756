"""Guests that lie, in real containers: each ends in a clean Result, and the host stays healthy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bascule.bridge import Executor, Limits, approve_all
from bascule.sandbox import Backend, Sandbox, SandboxLimits, open_backend
from bascule.sandbox.hardening import CONTEXT_DIR
from tests.integration import given_tools

pytestmark = [pytest.mark.engine, pytest.mark.anyio]

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
