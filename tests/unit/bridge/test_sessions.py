"""Sessions: variables stay between scripts, also when the guest that held them is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bascule.bridge import Executor, Limits, approve_all
from bascule.bridge.sqlite_store import SqliteStore
from bascule.sandbox import Backend, open_backend
from bascule.tools import tool

pytestmark = pytest.mark.anyio

calls: list[int] = []


@tool(effects="once")
def put(n: int) -> int:
    """Put."""
    calls.append(n)
    return n * 10


@pytest.fixture
def backend() -> Backend:
    calls.clear()
    return open_backend("process")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "runs.db")
    yield opened
    opened.close()


def make(backend: Backend, store: SqliteStore | None = None, **limits: float) -> Executor:
    return Executor(
        [put],
        backend=backend,
        approver=approve_all,
        store=store,
        limits=Limits(**limits),  # type: ignore[arg-type]
    )


async def test_variables_functions_classes_and_imports_stay(backend: Backend) -> None:
    async with make(backend) as executor, executor.session() as session:
        first = await session.run(
            "import json\nclass A:\n    def __init__(self, n):\n        self.n = n\n"
            "def twice(x):\n    return x * 2\na = A(put(1))\nprint('one')"
        )
        assert (first.status, first.output) == ("ok", "one\n"), first.error
        second = await session.run("await put(2)\nb = twice(a.n) + A(1).n\njson.dumps([b])")
        assert (second.status, second.value, second.output) == ("ok", "[21]", ""), second.error
        third = await session.run("import asyncio\nx = await asyncio.gather(put(3), put(4))\nx + [b]")
        assert third.value == [30, 40, 21], third.error
        assert [call.tool for call in third.calls] == ["put", "put"]
    assert calls == [1, 2, 3, 4]


async def test_a_failed_or_refused_script_ends_nothing(backend: Backend) -> None:
    async with make(backend) as executor, executor.session() as session:
        await session.run("x = 1")
        failed = await session.run("x = 2\nraise ValueError('no')")
        refused = await session.run("y = nothing_of_that_name")
        assert (failed.status, refused.status) == ("failed", "refused")
        assert (await session.run("x")).value == 2


async def test_what_an_earlier_script_made_is_unknown_outside_its_session(backend: Backend) -> None:
    async with make(backend) as executor:
        async with executor.session() as session:
            await session.run("secret = 1")
        async with executor.session() as other:
            assert (await other.run("secret")).status == "refused"


async def test_another_process_goes_on_with_a_session(backend: Backend, store: SqliteStore) -> None:
    async with make(backend, store) as executor, executor.session() as session:
        name = session.id
        await session.run("import random\nx = put(1)\ny = random.random()")
        expected = (await session.run("[x, y]")).value
    async with make(backend, store) as executor, executor.session(name) as session:
        again = await session.run("[x, y]")
        assert again.value == expected
        assert again.run_id == f"{name}.3"
    assert calls == [1]


async def test_a_script_that_meets_a_limit_leaves_the_variables_as_they_were_before_it(
    backend: Backend,
) -> None:
    async with make(backend, output_bytes=1024) as executor, executor.session() as session:
        await session.run("x = put(1)")
        limit = await session.run("x = 2\nprint('a' * 5000)")
        assert limit.status == "limit"
        assert (await session.run("x")).value == 10
    assert calls == [1]


async def test_a_suspended_script_of_a_session_is_resumed_with_its_variables(
    backend: Backend, store: SqliteStore
) -> None:
    async with make(backend, store, hold_warm_s=0.0) as executor:
        async with executor.session() as session:
            await session.run("x = put(1)")
            waits = await session.run("import time\ntime.sleep(1.2)\nx + 1", wait=False)
            assert waits.status == "suspended"
        done = await executor.resume(waits.run_id)
        assert (done.status, done.value) == ("ok", 11), done.error
    assert calls == [1]


async def test_every_script_of_a_session_has_the_whole_cpu_limit_and_its_own_account(
    backend: Backend, store: SqliteStore
) -> None:
    limit_s = 0.3
    async with make(backend, store, cpu_s=limit_s) as executor, executor.session() as session:
        used_s: list[float] = []
        expected = sum(range(100_000))
        while sum(used_s) < 2 * limit_s:  # however fast the machine is
            result = await session.run("n = 0\nfor i in range(100_000):\n    n += i\nn")
            assert (result.status, result.value) == ("ok", expected), result.error
            used_s.append(result.usage.cpu_s)
        assert max(used_s[1:]) < limit_s
        endless = await session.run("while True:\n    pass")
        assert endless.error is not None
        assert endless.error.kind == "cpu_limit"
        assert (await session.run("n")).value == expected  # rebuilt, without what the endless one did
