"""What a pool gives: time to the first instruction and to the result, calls, results, rates, memory."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from bascule.bridge import Executor
from bascule.bridge.guest import sandbox_limits
from bascule.sandbox import Backend, PoolLimits, Reuse, SandboxLimits, WarmPool
from bascule.sandbox.reuse import Reusing
from bascule.tools import AnyTool, tool
from tests.bench import ours

MIB = 1 << 20
BIG_MIB = (1, 10, 50)
RATE_S = 6.0

LINES = "".join(
    f"def f{n}(a, b=2):\n    rows = [a * i for i in range(b)]\n    return sum(rows) + len(str(a))\n"
    for n in range(9)
)
THIRTY_LINES = "mark(n=1)\n" + LINES + "x = f1(2)\ny = f2(x)\n"


class Stopwatch:
    """Tools that note when they were called, and give large results."""

    def __init__(self) -> None:
        self.marked_s = 0.0
        self.rows: dict[int, list[dict[str, Any]]] = {}
        for size in BIG_MIB:
            row = {"id": 12345, "name": "a name of a row", "amount": 12.5, "tags": ["one", "two"]}
            self.rows[size] = [row] * (size * MIB // (len(json.dumps(row, separators=(",", ":"))) + 1))

    def tools(self) -> list[AnyTool]:
        """Return them."""

        @tool(effects="read")
        def mark(n: int) -> int:
            """Note the time.

            Args:
                n: given back.
            """
            self.marked_s = time.perf_counter()
            return n

        @tool(effects="read")
        def big(mib: int) -> list[dict[str, Any]]:
            """Give many rows.

            Args:
                mib: how many mebibytes of them.
            """
            return self.rows[mib]

        return [mark, big, ours.noop, ours.threaded, ours.slow]


async def until_ready(pool: WarmPool, count: int = 1) -> None:
    """Wait until sandboxes stand ready and nothing is being started or removed, so that nothing disturbs."""
    while pool.state.ready < count or pool.state.starting or pool.state.ending:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def make_pool(backend: Backend, *, floor: int = 2, reuse: Reuse = "never") -> WarmPool:
    """Return a pool whose backend stays open when the pool is only left."""
    pool = WarmPool(backend, limits=PoolLimits(floor=floor, ceiling=16), reuse=reuse)
    pool.keep_ready(sandbox_limits(ours.LIMITS))
    return pool


async def first_instruction_s(executor: Executor, pool: WarmPool, watch: Stopwatch, script: str) -> float:
    """Return the seconds from the order to the script's first call arriving at its tool."""
    await until_ready(pool)
    began = time.perf_counter()
    result = await executor.run(script, seed=1)
    assert result.status == "ok", result.error
    return watch.marked_s - began


async def warm_s(executor: Executor, pool: WarmPool, script: str) -> float:
    """Return the seconds from the order to the result, with a warm sandbox."""
    await until_ready(pool)
    return await ours.run_s(executor, script)


async def big_result_s(executor: Executor, pool: WarmPool, mib: int) -> float:
    """Return the seconds one large result takes, less those of a small one."""
    small_s = await warm_s(executor, pool, "mark(n=1)\n")
    return await warm_s(executor, pool, f"big(mib={mib})\nNone") - small_s


def decode_s(watch: Stopwatch, mib: int) -> float:
    """F_dec: msgspec decoding the same rows, collector off."""
    import gc

    data = msgspec.json.encode(watch.rows[mib])
    gc.disable()
    began = time.perf_counter()
    msgspec.json.decode(data)
    took_s = time.perf_counter() - began
    gc.enable()
    return took_s


async def rate(executor: Executor, *, at_once: int = 4) -> float:
    """Return runs a second, each in a fresh container, kept up for a while."""
    until_s = time.monotonic() + RATE_S
    count = 0

    async def worker() -> None:
        nonlocal count
        while time.monotonic() < until_s:
            await ours.run_s(executor, ours.HELLO)
            count += 1

    began_s = time.monotonic()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return count / (time.monotonic() - began_s)


async def reused_rate(pool: WarmPool, *, users: int = 4) -> float:
    """Return runs a second of as many users at once, each of whom has a container for all their runs."""
    until_s = time.monotonic() + RATE_S
    count = 0

    async def work(user: str) -> None:
        nonlocal count
        executor = Executor([ours.noop], limits=ours.LIMITS, backend=pool, user=user)
        async with executor:
            await ours.run_s(executor, ours.HELLO)  # starts the container
            began.append(time.monotonic())
            while time.monotonic() < until_s or count < users:
                await ours.run_s(executor, ours.HELLO)
                count += 1

    began: list[float] = []
    await asyncio.gather(*(work(f"user-{number}") for number in range(users)))
    return count / (time.monotonic() - min(began))


async def bare_rate(backend: Backend, *, at_once: int = 2) -> float:
    """Return how many bare containers a second the builder itself makes and removes."""
    until_s = time.monotonic() + RATE_S
    count = 0

    async def worker() -> None:
        nonlocal count
        while time.monotonic() < until_s:
            sandbox = await backend.start(
                SandboxLimits(), run_id="bench", command=["python3", "-S", "-c", "pass"]
            )
            await sandbox.close()
            count += 1

    began_s = time.monotonic()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return count / (time.monotonic() - began_s)


def idle_bytes(*kinds: str, pids: Collection[int] | None = None) -> int:
    """Return the memory of one idle guest on this machine, of the kinds that smaps_rollup knows, added.

    Args:
        pids: only these; else every guest there is.
    """
    sizes: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or (pids is not None and int(entry.name) not in pids):
            continue
        words = _read(entry / "cmdline").split(b"\0")
        if os.path.basename(words[0]) == b"python3" and b"/bascule" in words:
            rollup = _read(entry / "smaps_rollup").decode("ascii", "replace").splitlines()
            found = [int(line.split()[1]) * 1024 for line in rollup if line.partition(":")[0] in kinds]
            sizes += [sum(found)] if found else []
    return int(statistics.median(sizes)) if sizes else 0


async def idle_child_bytes(backend: Reusing) -> int:
    """Return what a warmed child that waits for its run has to itself."""
    child = await backend.start_reusable(sandbox_limits(ours.LIMITS), run_id="bench-child")
    try:
        await child.receive()  # its hello
        return idle_bytes("Private_Clean", "Private_Dirty", pids={child.pid})
    finally:
        await child.kill()
        await child.close()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
