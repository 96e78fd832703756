"""What the pipeline costs for each call: memory journal, SQLite reads, SQLite effects; and whether it grows.

The guest is a function on the same event loop that speaks frames, so that nothing but the host is measured;
`echo_s` is the raw round trip of the same frames through the same queues, without a bridge between. Run
alone: ``python -m tests.bench.pipeline``.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

import msgspec

from bascule.bridge import Executor, Limits, Policy, Store
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.sqlite_store import SqliteStore
from bascule.tools import tool
from bascule.wire import Delivery, Done, encode_frame
from tests.unit.bridge.guests import MAX_BYTES, GuestBackend, GuestSandbox, Line

CALLS = 400
COMMITS = 100
MANY = 10_100
WINDOW = 100
LIMITS = Limits(calls=20_000, run_s=600)
ALLOW = "version: 1\nrules: [{id: free, effect: allow, match: {tool: write}}]"


@tool(effects="read")
async def look(n: int) -> int:
    """Return the number."""
    return n


@tool(effects="once")
async def write(n: int) -> int:
    """Return the number."""
    return n


async def per_call_s(store: Store, name: str, *, calls: int = CALLS) -> list[float]:
    """Return how long each of ``calls`` calls of a tool took, one after the other, from frame to frame."""
    took: list[float] = []

    async def guest(line: Line) -> None:
        await line.greet()
        for number in range(calls):
            began = time.perf_counter()
            line.act([line.call(name, n=number)])
            await line.receive()
            took.append(time.perf_counter() - began)
        line.finish()

    executor = Executor(
        [look, write], policy=Policy.parse(ALLOW), store=store, limits=LIMITS, backend=GuestBackend(guest)
    )
    async with executor:
        result = await executor.run("...", seed=1)
    assert result.status == "ok", result.error
    return took


async def echo_s() -> list[float]:
    """Return how long the same frames take there and back when nothing happens between."""
    took: list[float] = []

    async def guest(line: Line) -> None:
        for number in range(CALLS):
            began = time.perf_counter()
            line.act([line.call("look", n=number)])
            await line.receive()
            took.append(time.perf_counter() - began)

    sandbox = GuestSandbox(guest)
    for seq in range(1, CALLS + 1):
        await sandbox.receive()
        done = Done(deliveries=(Delivery(seq=seq, now=0.0, value=msgspec.Raw(b"1")),))
        await sandbox.send(encode_frame(done, max_bytes=MAX_BYTES))
    await sandbox.close()
    return took


def commit_s(folder: Path) -> list[float]:
    """Return how long durable commits of one small row take by themselves; a call with effects needs two."""
    took: list[float] = []
    connection = sqlite3.connect(folder / "alone.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (value BLOB)")
    for _ in range(COMMITS):
        began = time.perf_counter()
        connection.execute("INSERT INTO rows VALUES (?)", (b"x" * 400,))
        took.append(time.perf_counter() - began)
    connection.close()
    return took


async def measure() -> dict[str, float]:
    """Measure everything once and return medians in seconds; run it several times and compare."""
    with tempfile.TemporaryDirectory() as folder:
        durable = SqliteStore(Path(folder) / "bench.db")
        found = {
            "raw round trip": statistics.median(await echo_s()),
            "read, memory journal": statistics.median(await per_call_s(MemoryStore(), "look")),
            "read, SQLite": statistics.median(await per_call_s(durable, "look")),
            "effect, SQLite": statistics.median(await per_call_s(durable, "write")),
            "durable commit alone": statistics.median(commit_s(Path(folder))),
        }
        durable.close()
        growing = SqliteStore(Path(folder) / "many.db")
        took = await per_call_s(growing, "look", calls=MANY)
        growing.close()
    found["around call 100"] = statistics.median(took[100 - WINDOW // 2 : 100 + WINDOW // 2])
    found["around call 10,000"] = statistics.median(took[10_000 - WINDOW // 2 : 10_000 + WINDOW // 2])
    return found


def ratios(found: dict[str, float]) -> dict[str, float]:
    """Return what the targets speak of."""
    raw = found["raw round trip"]
    kinds = ("read, memory journal", "read, SQLite", "effect, SQLite")
    compared = {f"{kind} / raw round trip": found[kind] / raw for kind in kinds}
    return {**compared, **{name: value for name, value, _ in targets(found)}}


def targets(found: dict[str, float]) -> list[tuple[str, float, float]]:
    """Return name, value and target of what the design bounds."""
    memory = found["read, memory journal"]
    effect = memory + 2 * found["durable commit alone"]
    return [
        ("read, SQLite / memory journal", found["read, SQLite"] / memory, 1.3),
        ("effect, SQLite / memory journal and two commits alone", found["effect, SQLite"] / effect, 1.0),
        ("call 10,000 / call 100, SQLite", found["around call 10,000"] / found["around call 100"], 1.2),
    ]


async def main() -> None:
    """Measure three times in turn and print the medians."""
    rounds = [await measure() for _ in range(3)]
    medians = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    for name, seconds in medians.items():
        print(f"{name:42} {seconds * 1e6:10.1f} us")
    for name, value in ratios(medians).items():
        print(f"{name:42} {value:10.2f}")


if __name__ == "__main__":
    asyncio.run(main())
