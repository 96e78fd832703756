"""When a journal is written: before the first read of a burst, never for each, and soon after the last."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from bascule.bridge import Executor, approve_all
from bascule.bridge.errors import LeaseLost, StoreError
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.writing import LATEST_S, Writing
from bascule.tools import tool
from tests.unit.bridge.guests import GuestBackend, Line

pytestmark = pytest.mark.anyio

T = TypeVar("T")


async def test_a_burst_of_reads_costs_few_transactions_and_an_effect_finds_all_of_them_written(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    written: list[int] = []

    @tool(effects="read")
    async def look(n: int) -> int:
        """Look."""
        return n

    @tool(effects="once")
    async def put(n: int) -> int:
        """Put, and see what is in the file by then."""
        written.extend(row[0] for row in store.read("SELECT count(*) FROM events WHERE kind = 'delivered'"))
        return n

    async def guest(line: Line) -> None:
        await line.greet()
        for number in range(50):
            line.act([line.call("look", n=number)])
            await line.receive()
        line.act([line.call("put", n=1)])
        await line.receive()
        line.finish()

    made = 0
    write_now = store.writer.try_now

    def count(work: Callable[[sqlite3.Connection], T]) -> tuple[bool, T | None]:
        nonlocal made
        made += 1
        return write_now(work)

    store.writer.try_now = count  # type: ignore[method-assign]
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with Executor(
        [look, put], approver=approve_all, backend=GuestBackend(guest), store=store
    ) as executor:
        result = await executor.run("...", seed=1)
    assert result.status == "ok", result.error
    assert written == [50]
    assert made <= 3 + 2 * (loop.time() - began) / LATEST_S
    store.close()


class Failing:
    """A journal that cannot be written any more."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.flushes = 0

    async def flush(self) -> None:
        self.flushes += 1
        if self.flushes > 1:
            raise self._error


@pytest.mark.parametrize("error", [StoreError("store_unavailable", "full"), LeaseLost("run-1")])
async def test_a_journal_that_cannot_be_written_ends_the_run_although_nothing_is_started(
    error: Exception,
) -> None:
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    writing = Writing(Failing(error), failed=failed.set_result)  # type: ignore[arg-type]
    await writing.keep_up()
    writing.later()
    writing.later()
    assert await failed is error
    with pytest.raises(type(error)):
        await writing.keep_up()


async def test_nothing_is_written_after_the_end() -> None:
    journal = Failing(StoreError("store_unavailable", "full"))
    writing = Writing(journal, failed=lambda error: None)  # type: ignore[arg-type]
    await writing.keep_up()
    writing.later()
    writing.end()
    await asyncio.sleep(LATEST_S * 1.5)
    assert journal.flushes == 1
