"""Real hosts that die of a real SIGKILL at every point a run has; another process goes on with what is left.

Each must end as if nobody had died: the same result and output, effects exactly once, reads at least once.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import anyio
import msgspec
import pytest

from bascule.bridge import Decision, approve_all, ask_elsewhere
from bascule.bridge.decide import decide
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.execution import idempotency_key
from bascule.bridge.history import read_history
from bascule.bridge.journal import digest_of
from bascule.bridge.runs import decode_result, read_result, resolve_call
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.store import Answer
from bascule.sandbox import Backend, open_backend
from tests.faults.host import SCRIPT, Death, OutsideWorld, live

pytestmark = pytest.mark.anyio

EXPECTED = [2, 20, [30, 40, 10], 60]
OUTPUT = "begin\nmiddle 2 20 [30, 40, 10]\nend\n"
EFFECTS = {("put", 2), ("pay", 3), ("store", 4), ("push", 6)}
ONCE = {("put", 2), ("pay", 3), ("push", 6)}

POINTS = {
    "after RUN_STARTED": "after-run_started",
    "call issued, not journaled": "before-call_issued",
    "call journaled, not decided": "after-call_issued",
    "third act journaled": "after-call_issued:3",
    "approval requested, not written": "before-approval_requested",
    "approval requested, nobody asked": "after-approval_requested",
    "approval of a batch requested": "after-approval_requested:2",
    "approved, not dispatched": "before-dispatched:2",
    "dispatched, tool not called": "after-dispatched:2",
    "inside a tool, nothing done": "in-put",
    "inside a tool, effect done": "done-put",
    "inside a tool that can be asked, nothing done": "in-pay",
    "inside a tool that can be asked, effect done": "done-pay",
    "inside an idempotent tool, effect done": "done-store",
    "inside a read": "done-look",
    "inside the last tool, effect done": "done-push",
    "returned, not journaled": "before-completed:2",
    "journaled, not delivered": "after-completed:2",
    "delivered, not written": "before-delivered:2",
    "delivered, frame not sent": "before-frame:3",
    "mid-frame of Start": "mid-frame:1",
    "mid-frame of Done": "mid-frame:3",
    "frame sent": "after-frame:3",
    "the guest answered": "after-receive:4",
    "finished, sandbox still there": "after-receive:7",
    "finished, not recorded": "before-finished",
    "finished and recorded": "after-finished",
}


@pytest.fixture
def backend() -> Backend:
    return open_backend("process")


def die(folder: Path, point: str, *more: str) -> None:
    """Run a host that dies at a point."""
    command = [sys.executable, "-m", "tests.faults.host", str(folder), "--die", point, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, (done.returncode, done.stdout, done.stderr[-2000:])


def answer_truthfully(store: SqliteStore, run_id: str, world: OutsideWorld) -> None:
    """Play the operator who looks at the world before saying what happened."""
    row, journal = store.run(run_id), store.journal(run_id)
    assert row is not None
    assert journal is not None
    history = read_history(run_id, journal.entries)
    assert history is not None
    tools = {
        entry.facts["seq"]: str(entry.facts["tool"]) for entry in journal.entries if "tool" in entry.facts
    }
    for wait in row.waits:
        seq = int(wait.removeprefix("answer:").partition(".")[0])
        arguments = history.call(seq).arguments
        assert arguments is not None
        key = idempotency_key(run_id=run_id, seq=seq, tool=tools[seq], args_sha256=digest_of(arguments))
        found = [n for _, n, known in world.lines() if known == key]
        answer = Answer(kind="did_not_happen")
        if found:
            answer = Answer(kind="happened", value=str(found[0] * 10).encode())
        assert resolve_call(store, run_id, seq, answer)


async def go_on(folder: Path, backend: Backend, *, script: str = SCRIPT) -> None:
    """Take the run up until it ends, and compare it with one that nobody disturbed."""
    world = OutsideWorld(folder / "world.log", Death(""))
    for _ in range(4):
        store = SqliteStore(folder / "runs.db")
        rows = store.runs()
        run_id = rows[0].run_id if rows else None
        if rows and rows[0].status == "suspended":
            answer_truthfully(store, rows[0].run_id, world)
        finished = read_result(store, rows[0].run_id) if rows and rows[0].status == "finished" else None
        store.close()
        result = finished or decode_result(
            (
                await live(
                    folder,
                    script=script,
                    run_id=run_id,
                    death=Death(""),
                    backend=backend,
                    approver=approve_all,
                )
            ).encode()
        )
        if result.status != "suspended":
            break
    else:
        pytest.fail("the run is still suspended")
    assert (result.status, result.value, result.output) == ("ok", EXPECTED, OUTPUT), result.error
    executed = Counter((name, n) for name, n, _ in world.lines())
    assert {what for what in executed if what[0] != "look"} == EFFECTS
    assert all(executed[what] == 1 for what in ONCE), executed
    keys = {key for name, _, key in world.lines() if name == "store"}
    assert len(keys) == 1
    assert executed["look", 1] >= 1
    assert executed["look", 5] >= 1
    assert [(call.tool, call.state) for call in result.calls] == [
        (name, "done") for name in ("look", "put", "pay", "store", "look", "push")
    ]


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS.keys())
async def test_a_run_ends_the_same_whenever_its_host_was_killed(
    point: str, tmp_path: Path, backend: Backend
) -> None:
    await anyio.to_thread.run_sync(die, tmp_path, point)
    await go_on(tmp_path, backend)


async def test_a_host_may_be_killed_again_and_again_while_it_replays(
    tmp_path: Path, backend: Backend
) -> None:
    die(tmp_path, "done-pay")
    store = SqliteStore(tmp_path / "runs.db")
    run_id = store.runs()[0].run_id
    store.close()
    die(tmp_path, "before-frame:2", "--resume", run_id)
    die(tmp_path, "mid-frame:3", "--resume", run_id)
    die(tmp_path, "before-completed", "--resume", run_id)
    await go_on(tmp_path, backend)


async def test_a_clock_that_goes_back_a_day_changes_nothing(tmp_path: Path, backend: Backend) -> None:
    die(tmp_path, "after-completed:2")
    store = SqliteStore(tmp_path / "runs.db")
    run_id = store.runs()[0].run_id
    store.close()
    command = [
        sys.executable,
        "-m",
        "tests.faults.host",
        str(tmp_path),
        "--die",
        "clock-back",
        "--resume",
        run_id,
    ]
    done = await anyio.run_process(command, check=False)
    assert done.returncode == 0, done.stderr
    assert msgspec.json.decode(done.stdout)["value"] == EXPECTED
    await go_on(tmp_path, backend)


ASKING = "print('asks')\n[put(2), look(1)]"


@pytest.mark.parametrize(
    "point", ["after-approval_requested", "before-kill", "after-close", "before-suspended", "after-suspended"]
)
async def test_a_decision_made_while_no_host_lives_carries_the_run_on(
    point: str, tmp_path: Path, backend: Backend
) -> None:
    script = tmp_path / "script.py"
    script.write_text(ASKING)
    await anyio.to_thread.run_sync(die, tmp_path, point, "--elsewhere", "--script", str(script))
    await decide_and_go_on(tmp_path, backend)


async def test_a_host_killed_while_people_think_loses_nothing(tmp_path: Path, backend: Backend) -> None:
    script = tmp_path / "script.py"
    script.write_text(ASKING)
    command = [sys.executable, "-m", "tests.faults.host", str(tmp_path), "--elsewhere", "--warm"]
    async with await anyio.open_process([*command, "--script", str(script)]) as host:
        store = SqliteStore(tmp_path / "runs.db")
        while not store.approvals.find(states=["pending"]):
            await store.changed(1.0)
        host.kill()
        store.close()
    await decide_and_go_on(tmp_path, backend)


async def decide_and_go_on(folder: Path, backend: Backend) -> None:
    """Approve what is pending, as two people at once would, and have another process go on."""
    store = SqliteStore(folder / "runs.db")
    (record,) = store.approvals.find(states=["pending"])
    decision = Decision(verdict="approve", by="ops")

    def approve() -> bool:
        try:
            decide(store.approvals, record.id, decision, digest=record.digest, channel="test")
        except DecisionRefused:
            return False
        return True

    won: list[bool] = []
    async with anyio.create_task_group() as group:

        async def one() -> None:
            won.append(await anyio.to_thread.run_sync(approve))

        group.start_soon(one)
        group.start_soon(one)
    assert sorted(won) == [False, True]
    run_id = store.runs()[0].run_id
    store.close()
    result = decode_result(
        (
            await live(
                folder,
                script=ASKING,
                run_id=run_id,
                death=Death(""),
                backend=backend,
                approver=ask_elsewhere,
            )
        ).encode()
    )
    assert (result.status, result.value, result.output) == ("ok", [20, 2], "asks\n"), result.error
    lines = OutsideWorld(folder / "world.log", Death("")).lines()
    assert [(name, n) for name, n, _ in lines] == [("put", 2), ("look", 1)]
