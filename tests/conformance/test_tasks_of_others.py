"""Tasks that nobody here wrote, through the real container: every call equals the recorded one.

`make test` runs a share of them, `make conformance` all (``BASCULE_ALL_TASKS=1``).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import pytest

from bascule.bridge import Executor, approve_all
from bascule.models.counting import O200kCounter
from bascule.models.exchange import cost_of
from bascule.sandbox import Backend, WarmPool, open_backend
from tests.bench.bfcl import Entry, World, load_entries, script_of
from tests.bench.exchanges import LIMITS, measure_travel
from tests.bench.nestful import load_travel

pytestmark = pytest.mark.engine

ALL = os.environ.get("BASCULE_ALL_TASKS") == "1"
CONVERSATIONS = 20
TRIPS = 40
AT_ONCE = 3

T = TypeVar("T")


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the process the time zone in which the leaderboard's own records were made."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def some_of(items: Sequence[T], share: int) -> list[T]:
    """Return all items, or so many of them, evenly spread."""
    return list(items) if ALL else list(items[:: max(1, len(items) // share)])[:share]


def in_containers(work: Callable[[Backend], Awaitable[T]]) -> T:
    """Run something with a pool of containers."""

    async def run() -> T:
        pool = WarmPool(open_backend("container", build=True))
        try:
            return await work(pool)
        finally:
            await pool.close()

    return asyncio.run(run())


async def play(entry: Entry, backend: Backend) -> list[str]:
    """Play a conversation, one script for each turn, in one session; return what differs from the golden."""
    golden, played = World(entry), World(entry)
    for call in (call for turn in entry.turns for call in turn):
        golden.call(call.name, call.arguments)
    different: list[str] = []
    executor = Executor(played.tools(), backend=backend, approver=approve_all, limits=LIMITS)
    async with executor, executor.session() as session:
        for number, turn in enumerate(entry.turns):
            if not turn:
                continue
            result = await session.run(script_of(turn))
            if result.status != "ok":
                different.append(f"{entry.id} turn {number}: {result.status}, {result.error}")
    if played.calls != golden.calls:
        different.append(f"{entry.id}: calls {played.calls} are not {golden.calls}")
    if played.state() != golden.state():
        different.append(f"{entry.id}: state {played.state()} is not {golden.state()}")
    return different


@pytest.mark.usefixtures("in_utc")
def test_conversations_of_the_leaderboard_end_in_the_same_calls_and_the_same_state(
    capsys: pytest.CaptureFixture[str],
) -> None:
    entries = some_of(load_entries(), CONVERSATIONS)

    async def play_all(backend: Backend) -> list[str]:
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(entry: Entry) -> list[str]:
            async with slots:
                return await play(entry, backend)

        return [line for lines in await asyncio.gather(*map(one, entries)) for line in lines]

    different = in_containers(play_all)
    calls = sum(len(turn) for entry in entries for turn in entry.turns)
    with capsys.disabled():
        print(
            f"\nBFCL v4 multi-turn base: {len(entries)} conversations, {calls} calls, {len(different)} differ"
        )
    assert different == []
    assert len(entries) == (200 if ALL else CONVERSATIONS)
    assert calls > 5 * len(entries)


def test_trips_make_the_recorded_calls_and_cost_fewer_tokens_than_calls_one_by_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api, tasks = load_travel()
    largest = max(tasks, key=lambda task: max(len(str(step.response)) for step in task.steps))
    chosen = list({task.id: task for task in [*some_of(tasks, TRIPS - 1), largest]}.values())
    measured = in_containers(lambda backend: measure_travel(api, chosen, backend, O200kCounter()))
    assert [each.problem for each in measured if each.problem] == []
    exchanges = [each.exchange for each in measured if each.exchange is not None]
    assert len(exchanges) == len(chosen) >= (1000 if ALL else TRIPS - 1)
    sizes = [call.result_bytes for exchange in exchanges for call in exchange.calls]
    assert max(sizes) > 100_000
    direct = sum(cost_of(each, "one_by_one").input for each in exchanges)
    parallel = sum(cost_of(each, "parallel").input for each in exchanges)
    script = sum(cost_of(each, "script").input for each in exchanges)
    with capsys.disabled():
        print(
            f"\nComplexFuncBench: {len(exchanges)} tasks, {len(sizes)} calls; input tokens {direct:,} one by"
            f" one, {parallel:,} in parallel rounds, {script:,} as scripts"
        )
    assert script < parallel <= direct
