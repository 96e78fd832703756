"""The sandbox with the interpreter switched off: plain, unrestricted Python tries to get out of it.

Every row runs in a fresh container of the guest image under the product's own hardening, by engine and by
runtime alone, and in a process of this host behind the walls of its kernel. What a row prints goes to stderr,
because stdout is the wire and is never parsed for text.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator

import pytest

from bascule.bridge import Executor, Result
from bascule.sandbox import (
    Backend,
    Ending,
    Isolation,
    SandboxClosed,
    SandboxError,
    SandboxLimits,
    open_backend,
)
from bascule.sandbox.engine import Engine
from bascule.sandbox.process import ProcessBackend
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
def attempt(name, number, *args):
    import ctypes, errno, platform
    if platform.machine() != "x86_64":
        print("numbers of another processor")
        return -1
    ctypes.set_errno(0)
    result = ctypes.CDLL(None, use_errno=True).syscall(number, *args)
    refusal = errno.errorcode.get(ctypes.get_errno(), "0")
    print("ESCAPED:" + name if result >= 0 else name + " refused " + refusal)
    return result
exec(compile({code!r}, "<raw>", "exec"), {{"__name__": "__main__", "attempt": attempt}})
"""


@pytest.fixture(scope="module", params=["container", "oci", "process"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    isolation: Isolation = request.param
    try:
        opened = open_backend(isolation, build=True)
    except SandboxError as error:
        if error.code != "isolation_unsupported":
            raise
        pytest.skip(error.message)
    if isinstance(opened, ProcessBackend) and opened.missing:
        pytest.skip(f"this kernel gives processes no {', '.join(opened.missing)}")
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
    except SandboxClosed:
        pass
    except (FrameError, TimeoutError):
        await sandbox.kill()
    return await sandbox.close()


def rows_for(backend: Backend) -> list[Row]:
    """Return the rows to run; by an engine, which is slow, the newer ones only where all were asked for.

    Engine and runtime build the same walls from the same settings.
    """
    everything = backend.name != "container" or os.environ.get("BASCULE_ALL_ATTACKS") == "1"
    return [row for row in ROWS if everything or row.kind != "newer"]


async def attack_all(backend: Backend) -> list[Ending]:
    """Run all rows, four at a time: most of them wait."""
    slots = asyncio.Semaphore(4)

    async def one(row: Row) -> Ending:
        async with slots:
            return await attack(backend, row)

    return await asyncio.gather(*(one(row) for row in rows_for(backend)))


@pytest.fixture(scope="module")
def endings(backend: Backend) -> dict[str, Ending]:
    return {
        row.id: ending
        for row, ending in zip(rows_for(backend), asyncio.run(attack_all(backend)), strict=True)
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_unrestricted_python_stays_inside(row: Row, endings: dict[str, Ending]) -> None:
    if row.id not in endings:
        pytest.skip("the same wall as without an engine; `make escape` tries it with one too")
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


def test_there_are_attacks_of_every_kind() -> None:
    kinds = Counter(row.id.rpartition("-")[0].partition("-")[2] for row in ROWS)
    assert len(ROWS) >= 150
    assert kinds.keys() >= {"net", "kernel", "files", "process", "newer", "fs", "output"}


def test_another_run_beside_the_attacks_gets_its_right_answer(backend: Backend) -> None:
    bombs = [row for row in ROWS if row.id in ("ctr-process-01", "ctr-process-04", "wall-process-14")]

    async def run() -> tuple[Result, list[Ending]]:
        attacks = [asyncio.create_task(attack(backend, row)) for row in bombs]
        async with Executor([], backend=backend) as executor:
            result = await executor.run("sum(range(100_000))")
        return result, await asyncio.gather(*attacks)

    result, endings = asyncio.run(run())
    assert (result.status, result.value) == ("ok", 4999950000)
    assert len(endings) == len(bombs) == 3


def test_what_stopped_a_bomb_is_reported_with_its_number(
    backend: Backend, endings: dict[str, Ending]
) -> None:
    if backend.name == "process":
        assert "Operation not permitted" in endings["wall-process-02"].stderr_tail
        return
    memory, forks = endings["wall-process-03"], endings["ctr-process-01"]
    assert memory.oom_killed
    assert memory.peak_memory_bytes == LIMITS.memory_bytes
    if forks.refused_forks is not None:
        assert forks.refused_forks > 0
