"""The wire with the guest fallen: programs that speak to the host as they please, from the real container.

Whatever they send, the host answers with a result, runs no tool that policy would not allow, never calls the
run ok, and goes on working.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from bascule.bridge import Executor, Limits, Result
from bascule.sandbox import Backend, Sandbox, SandboxLimits, open_backend
from tests.escape.attack import Refuser, prepare_notes
from tests.escape.rows import Row, load
from tests.escape.tools import make_tools

pytestmark = pytest.mark.engine

ROWS = load("frames")
LIMITS = Limits(wall_s=1.0, cpu_s=2.0, run_s=8.0, start_s=5.0, calls=1000, output_bytes=64 << 10)
WORST_S = 30.0
"""Longest a run may take in the face of any guest: its limits, the grace periods, and a busy machine."""

PROGRAM = r"""
import json, os, struct, sys
from time import sleep
out = os.dup(1)
os.dup2(2, 1)
def raw(data):
    view = memoryview(data)
    while view:
        view = view[os.write(out, view):]
def send(payload):
    raw(struct.pack(">I", len(payload)) + payload)
def exactly(size):
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            os._exit(0)
        data += more
    return data
def read():
    return exactly(struct.unpack(">I", exactly(4))[0])
def dump(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
def call(seq, tool, **args):
    return {"type": "call", "seq": seq, "tool": tool, "args": args, "line": 1}
def act(*commands):
    activation = {"type": "activation", "commands": list(commands)}
    return dump({"type": "act", "activations": [activation], "blocked": True})
def finish(status, value):
    usage = {"type": "usage", "cpu_s": 0.1, "peak_memory_bytes": 1}
    return dump({"type": "finish", "status": status, "activations": [], "value": value,
                 "value_source": "none", "errors": [], "notes": [], "usage": usage})
send(dump({"type": "hello", "protocol": 1, "image": IMAGE, "python": "3.11.2"}))
read()
"""


class FallenBackend:
    """A backend whose guests run one hostile program instead of ours."""

    def __init__(self, real: Backend, code: str) -> None:
        self._real = real
        self.name = real.name
        self.image_hash = real.image_hash
        self._program = f"IMAGE = {real.image_hash!r}\n{PROGRAM}\n{code}"

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> Sandbox:
        """See `Backend.start`."""
        return await self._real.start(limits, run_id=run_id, command=["python3", "-S", "-c", self._program])

    async def sweep(self) -> int:
        """See `Backend.sweep`."""
        return await self._real.sweep()

    async def close(self) -> None:
        """The real backend is closed by whoever opened it."""


Seen = tuple[Result, list[str], float]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    root = tmp_path_factory.mktemp("host")
    prepare_notes(root)

    async def one(real: Backend, row: Row, slots: asyncio.Semaphore) -> Seen:
        ran: list[str] = []
        async with slots:
            began = time.monotonic()
            executor = Executor(
                make_tools(root / "notes", ran),
                approver=Refuser(),
                limits=LIMITS,
                backend=FallenBackend(real, row.code),
            )
            async with executor:
                result = await executor.run("print('never run')")
            return result, ran, time.monotonic() - began

    async def run() -> dict[str, Seen]:
        real = open_backend("container", build=True)
        slots = asyncio.Semaphore(4)
        try:
            seen = await asyncio.gather(*(one(real, row, slots) for row in ROWS))
        finally:
            await real.close()
        return {row.id: outcome for row, outcome in zip(ROWS, seen, strict=True)}

    return asyncio.run(run())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_lying_guest_gets_nothing(row: Row, outcomes: dict[str, Seen]) -> None:
    result, ran, took_s = outcomes[row.id]
    assert ran == [], "a call ran without approval"
    assert result.status != "ok"
    assert "ESCAPED" not in repr(result.value)
    assert took_s < WORST_S


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_what_the_model_is_told_is_short_and_names_no_internals(row: Row, outcomes: dict[str, Seen]) -> None:
    result, _, _ = outcomes[row.id]
    told = result.for_model()
    assert len(told) < 70_000
    assert "Traceback" not in told
    assert "site-packages" not in told


def test_an_honest_script_runs_after_all_of_them(outcomes: dict[str, Seen]) -> None:
    assert outcomes

    async def run() -> Result:
        async with Executor([]) as executor:
            return await executor.run("print('alive')")

    assert asyncio.run(run()).output == "alive\n"
