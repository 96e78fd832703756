"""The warm pool: one run for each sandbox, bounds, fairness, health, and an end that leaves nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bascule.sandbox import PoolLimits, SandboxError, SandboxLimits, WarmPool
from bascule.sandbox.demand import Demand
from bascule.sandbox.fair import FairQueue
from bascule.wire import Hello, decode_guest_frame
from tests.unit.sandbox.pool_stage import StageBackend

pytestmark = pytest.mark.anyio

KIND = SandboxLimits()
OTHER = SandboxLimits(pids=7)


async def settle() -> None:
    """Let everything that can happen without an outside event happen."""
    for _ in range(50):
        await asyncio.sleep(0)


def pool_of(backend: StageBackend, **limits: Any) -> WarmPool:
    return WarmPool(backend, limits=PoolLimits(**limits))


async def test_the_floor_is_ready_before_anybody_asks() -> None:
    pool = pool_of(StageBackend(), floor=3)
    pool.keep_ready(KIND)
    await settle()
    assert pool.state.ready == 3
    await pool.close()


async def test_one_run_alone_has_nothing_started_ahead_of_it_or_after_it() -> None:
    backend = StageBackend()
    pool = pool_of(backend, floor=1)
    await (await pool.start(KIND, run_id="a")).close()
    await settle()
    assert len(backend.made) == 1
    await pool.close()


async def test_from_the_second_run_on_one_is_ready() -> None:
    pool = pool_of(StageBackend(), floor=1)
    for _ in range(2):
        await (await pool.start(KIND, run_id="a")).close()
    await settle()
    assert pool.state.ready >= 1
    await pool.close()


async def test_no_sandbox_serves_two_runs() -> None:
    backend = StageBackend()
    pool = pool_of(backend, floor=2)
    for _ in range(5):
        sandbox = await pool.start(KIND, run_id="a")
        await sandbox.close()
        await settle()
    assert sum(each.removed for each in backend.made) == 5
    await pool.close()
    assert all(each.removed for each in backend.made)


async def test_the_bridge_still_reads_the_hello_first_and_loses_no_frame_after_it() -> None:
    backend = StageBackend()
    pool = pool_of(backend)
    sandbox = await pool.start(KIND, run_id="a")
    backend.made[0].say(b"next")
    assert isinstance(decode_guest_frame(await sandbox.receive()), Hello)
    assert await sandbox.receive() == b"next"
    backend.made[0].say(b"last")
    assert await sandbox.receive() == b"last"
    await pool.close()


async def test_a_guest_of_another_image_is_never_handed_out() -> None:
    backend = StageBackend()
    backend.says = "2" * 64
    pool = pool_of(backend)
    with pytest.raises(SandboxError) as caught:
        await pool.start(KIND, run_id="a")
    assert caught.value.code == "image_mismatch"
    assert backend.made[0].removed
    await pool.close()


@pytest.mark.parametrize("ending", ["dies", "speaks"])
async def test_an_idle_guest_that_dies_or_speaks_is_replaced(ending: str) -> None:
    backend = StageBackend()
    pool = pool_of(backend, floor=1)
    pool.keep_ready(KIND)
    await settle()
    first = backend.made[0]
    first.die() if ending == "dies" else first.say(b"out of turn")
    await settle()
    assert first.removed
    assert pool.state.ready == 1
    assert len(backend.made) == 2
    await pool.close()


async def test_at_most_two_start_at_once() -> None:
    backend = StageBackend()
    pool = pool_of(backend, floor=6)
    pool.keep_ready(KIND)
    await settle()
    assert (backend.most_at_once, pool.state.ready) == (2, 6)
    await pool.close()


async def test_the_ceiling_counts_everything_alive() -> None:
    backend = StageBackend()
    pool = pool_of(backend, floor=0, ceiling=2)
    leased = [await pool.start(KIND, run_id="a") for _ in range(2)]
    third = asyncio.ensure_future(pool.start(KIND, run_id="a"))
    await settle()
    assert not third.done()
    await leased[0].close()
    await third
    await pool.close()


async def test_a_full_queue_refuses_with_what_to_do() -> None:
    pool = pool_of(StageBackend(), floor=0, ceiling=1, queue=1)
    await pool.start(KIND, run_id="a")
    waiting = asyncio.ensure_future(pool.start(KIND, run_id="b"))
    await settle()
    with pytest.raises(SandboxError) as caught:
        await pool.start(KIND, run_id="c")
    assert caught.value.code == "pool_exhausted"
    assert "ceiling" in caught.value.message
    waiting.cancel()
    await pool.close()


async def test_a_run_that_waited_too_long_is_refused() -> None:
    pool = pool_of(StageBackend(), floor=1, ceiling=1, wait_s=0.01)
    pool.keep_ready(KIND)
    await settle()
    await pool.start(KIND, run_id="a")
    with pytest.raises(SandboxError) as caught:
        await pool.start(KIND, run_id="b")
    assert caught.value.code == "pool_exhausted"
    assert pool.state.waiting == 0
    await pool.close()


async def test_principals_that_wait_are_served_in_turn() -> None:
    backend = StageBackend()
    pool = pool_of(backend, floor=0, ceiling=1)
    holder = await pool.start(KIND, run_id="a")
    served: list[str] = []

    async def run(principal: str) -> None:
        sandbox = await pool.for_principal(principal).start(KIND, run_id="a")
        served.append(principal)
        await sandbox.close()

    runs = [asyncio.ensure_future(run("greedy")) for _ in range(5)]
    await settle()
    runs.append(asyncio.ensure_future(run("modest")))
    await settle()
    await holder.close()
    await asyncio.gather(*runs)
    assert served.index("modest") == 1
    await pool.close()


async def test_kinds_are_kept_apart_and_a_ready_one_makes_room_for_a_run_of_another_kind() -> None:
    backend = StageBackend()
    pool = pool_of(backend, floor=2, ceiling=2)
    pool.keep_ready(KIND)
    await settle()
    await pool.start(OTHER, run_id="a")
    assert len(backend.made) == 3
    await pool.close()


async def test_a_start_that_fails_is_told_to_the_run_that_waits_and_the_pool_recovers() -> None:
    backend = StageBackend()
    backend.fail = True
    pool = pool_of(backend)
    with pytest.raises(SandboxError) as caught:
        await pool.start(KIND, run_id="a")
    assert caught.value.code == "engine_unavailable"
    backend.fail = False
    await pool.start(KIND, run_id="b")
    await pool.close()


@pytest.mark.parametrize(("stillborn", "served"), [(1, True), (2, False)])
async def test_one_guest_that_dies_before_its_hello_is_replaced_two_are_told(
    stillborn: int, served: bool
) -> None:
    backend = StageBackend()
    backend.stillborn = stillborn
    pool = pool_of(backend)
    if served:
        await pool.start(KIND, run_id="a")
    else:
        with pytest.raises(SandboxError) as caught:
            await pool.start(KIND, run_id="a")
        assert caught.value.code == "guest_not_started"
    await pool.close()
    assert all(each.removed for each in backend.made)


async def test_a_cancelled_wait_takes_no_sandbox_with_it() -> None:
    backend = StageBackend()
    backend.gate.clear()
    pool = pool_of(backend)
    waiting = asyncio.ensure_future(pool.start(KIND, run_id="a"))
    await settle()
    waiting.cancel()
    backend.gate.set()
    await settle()
    assert (pool.state.leased, pool.state.waiting) == (0, 0)
    await pool.close()
    assert all(each.removed for each in backend.made)


async def test_closing_refuses_who_waits_ends_what_is_ready_and_closes_the_backend() -> None:
    backend = StageBackend()
    pool = pool_of(backend, floor=1, ceiling=1)
    await pool.start(KIND, run_id="a")
    waiting = asyncio.ensure_future(pool.start(KIND, run_id="b"))
    await settle()
    await pool.close()
    with pytest.raises(SandboxError) as caught:
        await waiting
    assert caught.value.code == "pool_closed"
    assert all(each.removed for each in backend.made)
    assert backend.closed
    with pytest.raises(SandboxError):
        await pool.start(KIND, run_id="c")


async def test_a_command_of_ones_own_is_started_afresh() -> None:
    backend = StageBackend()
    pool = pool_of(backend, floor=1)
    pool.keep_ready(KIND)
    await settle()
    await pool.start(KIND, run_id="a", command=["python3", "-c", "pass"])
    assert backend.commands == [["python3", "-c", "pass"]]
    await pool.close()


def test_demand_is_the_largest_burst_within_one_start_time() -> None:
    demand = Demand()
    for at_s in (0.0, 5.0, 5.01, 5.02, 9.0):
        demand.note_request(at_s)
    assert demand.wanted(10.0) == 3
    assert demand.wanted(100.0) == 0


def test_a_queue_serves_lanes_in_turn_and_forgets_what_left() -> None:
    queue: FairQueue[int] = FairQueue()
    for item in (1, 2, 3):
        queue.push("a", item)
    queue.push("b", 10)
    queue.push("b", 11)
    queue.discard("b", 11)
    queue.discard("c", 5)
    found = [queue.pop() for _ in range(5)]
    assert found == [("a", 1), ("b", 10), ("a", 2), ("a", 3), None]


@pytest.mark.parametrize(
    "limits",
    [{"floor": -1}, {"floor": 5, "ceiling": 4}, {"ceiling": 0, "floor": 0}, {"starts": 0}, {"wait_s": 0.0}],
)
def test_no_limit_of_a_pool_can_be_switched_off(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        PoolLimits(**limits)
