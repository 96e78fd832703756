"""The container with the interpreter switched off: plain, unrestricted Python tries to get out of it.

Every row runs in a fresh container of the guest image under the product's own hardening. What a row prints
goes to stderr, because stdout is the wire and is never parsed for text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from bascule.sandbox import Backend, Ending, SandboxClosed, SandboxLimits, open_backend
from bascule.sandbox.engine import Engine
from bascule.wire import FrameError
from tests.escape.rows import Row, load

pytestmark = pytest.mark.engine

ROWS = load("container")
DEADLINE_S = 8.0
LIMITS = SandboxLimits(memory_bytes=128 << 20, exit_grace_s=0.5)
CRASHES = {"ctr-process-18": 11}
"""Rows that must be reported as the signal they died of, never as an end like any other."""

PROGRAM = """
import os
if {redirect}:
    os.dup2(2, 1)
exec(compile({code!r}, "<raw>", "exec"), {{"__name__": "__main__"}})
"""


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = open_backend("container", build=True)
    yield opened
    asyncio.run(opened.close())


def command(row: Row) -> list[str]:
    """Return what the container runs for a row; floods go to the stream they name."""
    return ["python3", "-c", PROGRAM.format(redirect=row.kind != "output", code=row.code)]


async def attack(backend: Backend, row: Row) -> Ending:
    """Run one row to its end or to the deadline and return how it ended."""
    sandbox = await backend.start(LIMITS, run_id=f"escape-{row.id}", command=command(row))
    try:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                await sandbox.receive()
    except (SandboxClosed, FrameError, TimeoutError):
        await sandbox.kill()
    return await sandbox.close()


async def attack_all(backend: Backend) -> list[Ending]:
    """Run all rows, four at a time: most of them wait."""
    slots = asyncio.Semaphore(4)

    async def one(row: Row) -> Ending:
        async with slots:
            return await attack(backend, row)

    return await asyncio.gather(*(one(row) for row in ROWS))


@pytest.fixture(scope="module")
def endings(backend: Backend) -> dict[str, Ending]:
    return {row.id: ending for row, ending in zip(ROWS, asyncio.run(attack_all(backend)), strict=True)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_unrestricted_python_stays_inside(row: Row, endings: dict[str, Ending]) -> None:
    ending = endings[row.id]
    assert "ESCAPED" not in ending.stderr_tail
    assert "SyntaxError" not in ending.stderr_tail, "the row itself is broken"
    if row.id in CRASHES:
        assert ending.signal == CRASHES[row.id]


def test_the_attacks_really_ran(endings: dict[str, Ending]) -> None:
    """A row that cannot even import what it needs proves little; most must get as far as the wall."""
    refused = [name for name, ending in endings.items() if "ModuleNotFoundError" in ending.stderr_tail]
    assert len(refused) < len(ROWS) / 2, refused


def test_nothing_is_left_of_any_attack(endings: dict[str, Ending]) -> None:
    assert endings
    engine = Engine()
    try:
        left = engine.api.containers(all=True, filters={"name": "bascule-escape-ctr-"})
        assert [container["Names"] for container in left] == []
    finally:
        engine.close()


def test_the_host_still_works_after_all_of_them(backend: Backend, endings: dict[str, Ending]) -> None:
    assert endings
    row = Row(id="after", layer="container", kind="k", outcome="ok", source="s", code="print('alive')")
    assert "alive" in asyncio.run(attack(backend, row)).stderr_tail
