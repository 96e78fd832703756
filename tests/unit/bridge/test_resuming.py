"""Runs that are suspended, taken up again, cancelled, resolved; guests that do something else than before."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from bascule.bridge import ApprovalRequest, Decision, Executor, Limits, approve_all, ask_elsewhere
from bascule.bridge.errors import DecisionRefused, LeaseLost, ResumeError, RunBusy, RunNotFound, StoreError
from bascule.bridge.journal import EventKind
from bascule.bridge.runs import read_result
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.store import Answer, Store
from bascule.tools import AnyTool, Pending, ToolContext, tool
from bascule.wire import Call, Output, Sleep
from tests.unit.bridge.guests import Guest, GuestBackend, Line
from tests.unit.bridge.runs import SCRIPT, echo

pytestmark = pytest.mark.anyio

COLD = Limits(hold_warm_s=0.0)

T = TypeVar("T")


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "runs.db")
    yield made
    made.close()


def make(guest: Guest, store: Store, *tools: AnyTool, **more: Any) -> Executor:
    more.setdefault("approver", approve_all)
    return Executor(tools or (echo,), backend=GuestBackend(guest), store=store, limits=COLD, **more)


def sleeper(*, extra: Callable[[Line], list[Any]] = lambda line: []) -> Guest:
    """Return a guest that calls, prints, sleeps long, calls again."""

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([Output(text="one\n"), line.call("echo", text="a"), *extra(line)])
        await line.done()
        line.last_seq += 1
        line.act([Output(text="two\n"), Sleep(seq=line.last_seq, seconds=1.1)])
        await line.done()
        line.act([line.call("echo", text="b")])
        await line.done()
        line.finish("end", Output(text="three\n"))

    return guest


async def test_a_long_sleep_suspends_the_run_and_a_timer_wakes_it(store: Store) -> None:
    executor = make(sleeper(), store)
    waits = await executor.run(SCRIPT, wait=False)
    assert waits.status == "suspended"
    assert waits.error is not None
    assert "sleep" in waits.error.message
    row = store.run(waits.run_id)
    assert row is not None
    assert (row.status, row.owner) == ("suspended", "")
    assert row.wake_at is not None
    backend = executor._supply.backend  # pyright: ignore[reportPrivateUsage]
    assert isinstance(backend, GuestBackend)
    assert all(sandbox.closed for sandbox in backend.sandboxes)
    done = await executor.resume(waits.run_id)
    assert (done.status, done.value, done.output) == ("ok", "end", "one\ntwo\nthree\n")
    assert [call.state for call in done.calls] == ["done", "done"]
    await executor.close()


async def test_run_waits_without_a_sandbox_when_it_is_asked_to(store: Store) -> None:
    executor = make(sleeper(), store)
    done = await executor.run(SCRIPT)
    assert (done.status, done.output) == ("ok", "one\ntwo\nthree\n")
    backend = executor._supply.backend  # pyright: ignore[reportPrivateUsage]
    assert isinstance(backend, GuestBackend)
    assert len(backend.sandboxes) == 2
    await executor.close()


class RefusingStore(SqliteStore):
    """A store that does not take the next decision."""

    refuses = False

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self.refuses:
            self.refuses = False
            raise StoreError("store_unavailable", "the disk is full")
        return super().write(work)


async def test_a_run_whose_decision_could_not_be_written_ends_and_asks_again_when_it_is_resumed(
    tmp_path: Path,
) -> None:
    store = RefusingStore(tmp_path / "runs.db")
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> Decision:
        store.refuses = not asked
        asked.append(request.id)
        return Decision(verdict="approve")

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("put", name="a")])
        await line.done()
        line.finish("end")

    done: list[str] = []
    executor = make(guest, store, putter(done), approver=approve)
    async with executor, asyncio.timeout(60):
        with pytest.raises(StoreError, match="the disk is full"):
            await executor.run(SCRIPT)
        assert done == []
        (row,) = store.runs(status="suspended")
        result = await executor.resume(row.run_id)
    assert (result.status, done) == ("ok", ["a"])
    assert asked == [asked[0], asked[0]]
    store.close()


async def test_output_is_journaled_once(file_store: SqliteStore) -> None:
    executor = make(sleeper(), file_store)
    done = await executor.run(SCRIPT)
    journal = file_store.journal(done.run_id)
    assert journal is not None
    texts = [entry.payload for entry in journal.entries if entry.kind is EventKind.OUTPUT]
    assert texts == [b"one\n", b"two\n", b"three\n"]
    assert read_result(file_store, done.run_id) == done
    await executor.close()


OTHERS: dict[str, Callable[[Line], list[Any]]] = {
    "an extra call": lambda line: [line.call("echo", text="more")],
    "an extra sleep": lambda line: [Sleep(seq=2, seconds=0.0)],
    "extra output": lambda line: [Output(text="more")],
}


def changed(text: str = "a", tool_name: str = "echo", *, printed: str = "one\n", calls: int = 1) -> Guest:
    async def guest(line: Line) -> None:
        await line.greet()
        wanted = [Call(seq=1, tool=tool_name, args={"text": text}, line=1)] if calls else []
        line.act([Output(text=printed), *wanted, Sleep(seq=9, seconds=0.0)])
        await line.done()
        line.finish()

    return guest


@pytest.mark.parametrize(
    ("other", "evidence"),
    [
        (changed(text="z"), "recorded was call 1 echo"),
        (changed(tool_name="other"), "now came call 1 other"),
        (changed(printed="ONE\n"), "the output"),
        (changed(calls=0), "now came sleep 9"),
        (sleeper(extra=OTHERS["an extra call"]), "recorded was nothing more, now came call 2"),
        (sleeper(extra=OTHERS["an extra sleep"]), "now came sleep 2"),
        (sleeper(extra=OTHERS["extra output"]), "the output"),
    ],
)
async def test_a_guest_that_does_something_else_has_diverged_and_no_tool_runs(
    other: Guest, evidence: str, store: Store
) -> None:
    executor = make(sleeper(), store)
    waits = await executor.run(SCRIPT, wait=False)
    await executor.close()
    ran: list[str] = []

    @tool(name="echo", effects="read")
    async def watched(text: str = "x") -> str:
        """Echo."""
        ran.append(text)
        return text

    executor = make(other, store, watched)
    result = await executor.resume(waits.run_id)
    assert result.status == "diverged"
    assert result.error is not None
    assert evidence in result.error.message
    assert ran == []
    row = store.run(waits.run_id)
    assert row is not None
    assert (row.status, row.outcome) == ("finished", "diverged")
    await executor.close()


async def test_a_guest_that_ends_early_has_diverged(store: Store) -> None:
    executor = make(sleeper(), store)
    waits = await executor.run(SCRIPT, wait=False)
    await executor.close()

    async def hasty(line: Line) -> None:
        await line.greet()
        line.finish(None, Output(text="one\n"), line.call("echo", text="a"))

    executor = make(hasty, store)
    result = await executor.resume(waits.run_id)
    assert result.status == "diverged"
    await executor.close()


# ---------------------------------------------------------------- decisions


def asks(*names: str) -> Guest:
    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("put", name=name) for name in names])
        outcomes: dict[int, str] = {}
        while len(outcomes) < len(names):
            done = await line.done()
            for delivery in done.deliveries:
                failure = delivery.failure
                outcomes[delivery.seq] = bytes(delivery.value).decode() if failure is None else failure.kind
            if len(outcomes) < len(names):
                line.act_for(done)
        line.finish([outcomes[seq] for seq in sorted(outcomes)])

    return guest


def putter(done: list[str]) -> AnyTool:
    @tool(effects="once")
    async def put(name: str) -> str:
        """Put."""
        done.append(name)
        return name

    return put


def decide_all(executor: Executor, store: Store, run_id: str, **verdicts: str) -> None:
    for record in store.approvals.find(run_id=run_id, states=["pending"]):
        from bascule.bridge.requests import describe_record

        name = describe_record(record).arguments.decode().split('"')[3]
        decision = Decision(verdict=verdicts.get(name, "approve"), by="ops")  # type: ignore[arg-type]
        executor.decide(record.id, decision, digest=record.digest)


async def test_ten_calls_with_mixed_decisions_made_while_nobody_ran(store: Store) -> None:
    done: list[str] = []
    names = [f"n{number}" for number in range(10)]
    executor = make(asks(*names), store, putter(done), approver=ask_elsewhere)
    waits = await executor.run(SCRIPT, wait=False)
    assert (waits.status, done) == ("suspended", [])
    decide_all(executor, store, waits.run_id, n3="reject", n7="reject")
    (result,) = await executor.resume_due()
    assert result.value == [f'"{n}"' if n not in ("n3", "n7") else "denied" for n in names]
    assert done == [name for name in names if name not in ("n3", "n7")]
    await executor.close()


async def test_nothing_is_due_before_somebody_decides(store: Store) -> None:
    executor = make(asks("a"), store, putter([]), approver=ask_elsewhere)
    waits = await executor.run(SCRIPT, wait=False)
    assert await executor.resume_due() == []
    again = await executor.resume(waits.run_id, wait=False)
    assert again.status == "suspended"
    assert len(store.approvals.find(run_id=waits.run_id)) == 1
    await executor.close()


async def test_a_tool_that_changed_meanwhile_is_asked_about_anew(store: Store) -> None:
    done: list[str] = []
    executor = make(asks("a"), store, putter(done), approver=ask_elsewhere)
    waits = await executor.run(SCRIPT, wait=False)
    decide_all(executor, store, waits.run_id)
    await executor.close()

    @tool(effects="once", name="put")
    async def other(name: str, more: int = 0) -> str:
        """Put something else."""
        done.append(name)
        return name

    executor = make(asks("a"), store, other, approver=ask_elsewhere)
    again = await executor.resume(waits.run_id, wait=False)
    assert (again.status, done) == ("suspended", [])
    states = sorted(record.state for record in store.approvals.find(run_id=waits.run_id))
    assert states == ["invalidated", "pending"]
    decide_all(executor, store, waits.run_id)
    result = await executor.resume(waits.run_id)
    assert (result.status, done) == ("ok", ["a"])
    await executor.close()


async def test_a_suspended_run_can_be_cancelled(store: Store) -> None:
    done: list[str] = []
    executor = make(asks("a"), store, putter(done), approver=ask_elsewhere)
    waits = await executor.run(SCRIPT, wait=False)
    assert await executor.cancel(waits.run_id)
    assert not await executor.cancel(waits.run_id)
    with pytest.raises(RunBusy, match="finished"):
        await executor.resume(waits.run_id)
    assert done == []
    await executor.close()


async def test_what_is_approved_after_its_run_was_ended_never_starts(store: Store) -> None:
    """The end is asked for first; whoever works on the run has not yet heard of it."""
    done: list[str] = []

    async def approver(request: ApprovalRequest) -> Decision:
        assert store.request_cancel(request.run_id)
        return Decision(verdict="approve", by="olga")

    executor = make(asks("a"), store, putter(done), approver=approver)
    assert (await executor.run(SCRIPT)).status == "cancelled"
    assert done == []
    await executor.close()


async def test_nothing_is_decided_of_a_run_that_is_being_ended(store: Store) -> None:
    executor = make(asks("a"), store, putter([]), approver=ask_elsewhere)
    waits = await executor.run(SCRIPT, wait=False)
    (approval,) = store.approvals.find(run_id=waits.run_id)
    assert store.request_cancel(waits.run_id)
    with pytest.raises(DecisionRefused, match="is being ended"):
        executor.decide(approval.id, Decision(verdict="approve", by="olga"), digest=approval.digest)
    await executor.close()


async def test_a_running_run_can_be_cancelled(store: Store) -> None:
    begun = asyncio.Event()

    @tool(effects="read")
    async def stuck() -> None:
        """Never end."""
        begun.set()
        await asyncio.get_running_loop().create_future()

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("stuck")])
        await line.done()

    executor = make(guest, store, stuck)
    running = asyncio.create_task(executor.run(SCRIPT))
    await begun.wait()
    (row,) = store.runs()
    assert await executor.cancel(row.run_id)
    result = await running
    assert result.status == "cancelled"
    await executor.close()


async def test_a_run_whose_task_is_cancelled_again_and_again_can_be_resumed(store: Store) -> None:
    """A cancel scope of anyio, which web and MCP servers use, cancels its task at every turn of the loop."""
    begun, calm = asyncio.Event(), asyncio.Event()

    @tool(effects="read")
    async def stuck() -> str:
        """End when the test lets it."""
        begun.set()
        await calm.wait()
        return "done"

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("stuck")])
        await line.done()
        line.finish("end")

    executor = make(guest, store, stuck)
    async with anyio.create_task_group() as group:
        group.start_soon(executor.run, SCRIPT)
        await begun.wait()
        group.cancel_scope.cancel()
    (row,) = store.runs()
    assert row.status == "suspended"
    calm.set()
    assert (await executor.resume(row.run_id)).status == "ok"
    await executor.close()


# ---------------------------------------------------------------- jobs elsewhere


async def test_an_hours_long_job_suspends_the_run_and_is_asked_for_later(store: Store) -> None:
    started: list[str] = []
    asked: list[Any] = []

    def check(token: Any) -> Pending | str:
        asked.append(token)
        return "result" if len(asked) > 1 else Pending(check_after_s=1.2, token={"job": 2})

    @tool(effects="once", check_back=check)
    def train(context: ToolContext) -> str | Pending:
        """Begin."""
        started.append(context.idempotency_key)
        return Pending(check_after_s=1.2, token={"job": 1})

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("train")])
        delivery = (await line.done()).deliveries[0]
        line.finish(bytes(delivery.value).decode())

    executor = make(guest, store, train)
    waits = await executor.run(SCRIPT, wait=False)
    assert waits.status == "suspended"
    assert waits.error is not None
    assert "job elsewhere" in waits.error.message
    result = await executor.resume(waits.run_id)
    assert (result.status, result.value) == ("ok", '"result"'), result.error
    assert asked == [{"job": 1}, {"job": 2}]
    assert len(started) == 1
    await executor.close()


# ---------------------------------------------------------------- what cannot go on


async def test_what_cannot_be_resumed_says_why(file_store: SqliteStore) -> None:
    executor = make(sleeper(), file_store)
    with pytest.raises(RunNotFound):
        await executor.resume("run-none")
    waits = await executor.run(SCRIPT, wait=False)
    await executor.close()
    other = GuestBackend(sleeper())
    other.image_hash = "1" * 64
    executor = Executor([echo], backend=other, store=file_store)
    with pytest.raises(ResumeError, match="guest image") as refused:
        await executor.resume(waits.run_id)
    assert refused.value.code == "image_gone"
    row = file_store.run(waits.run_id)
    assert row is not None
    assert row.status == "suspended"
    await executor.close()


async def test_nothing_is_unknown_about_a_call_that_ended(store: Store) -> None:
    executor = make(sleeper(), store)
    waits = await executor.run(SCRIPT, wait=False)
    with pytest.raises(ResumeError, match="nothing is unknown"):
        executor.resolve(waits.run_id, 1, Answer(kind="tell_script"))
    await executor.close()


async def test_a_worker_whose_lease_was_taken_starts_no_further_tool(file_store: SqliteStore) -> None:
    done: list[str] = []
    stolen = asyncio.Event()

    @tool(effects="once")
    async def put(name: str) -> str:
        """Put."""
        done.append(name)
        if name == "a":
            connection = sqlite3.connect(file_store.path)
            with connection:
                connection.execute("UPDATE runs SET epoch = epoch + 1")
            connection.close()
            stolen.set()
        return name

    executor = make(asks("a", "b"), file_store, put)
    with pytest.raises(LeaseLost):
        await executor.run(SCRIPT)
    assert stolen.is_set()
    assert done == ["a"]
    await executor.close()


async def test_no_tool_runs_when_the_store_cannot_be_written(file_store: SqliteStore) -> None:
    done: list[str] = []
    executor = make(asks("a"), file_store, putter(done))
    file_store.writer.run_now(lambda connection: connection.execute("PRAGMA query_only=ON"), False)
    with pytest.raises(StoreError, match="cannot be used") as refused:
        await executor.run(SCRIPT)
    assert refused.value.code == "store_unavailable"
    assert done == []
    await executor.close()


async def test_a_store_that_turns_read_only_stops_the_run_and_lets_it_go_on_later(
    file_store: SqliteStore,
) -> None:
    done: list[str] = []

    def make_read_only(on: str) -> None:
        file_store.writer._connection.execute(f"PRAGMA query_only={on}")  # pyright: ignore[reportPrivateUsage]

    @tool(effects="once")
    async def put(name: str) -> str:
        """Put, and turn the store read-only."""
        done.append(name)
        if name == "a":
            make_read_only("ON")
        return name

    executor = make(asks("a", "b"), file_store, put)
    with pytest.raises(StoreError, match="cannot be used"):
        await executor.run(SCRIPT)
    assert done == ["a"]
    make_read_only("OFF")
    (row,) = file_store.runs()
    # This process lives, and so does its lease: the run could not be handed back while nothing was writable.
    connection = sqlite3.connect(file_store.path)
    with connection:
        connection.execute("UPDATE runs SET lease_until = 0")
    connection.close()
    waits = await executor.resume(row.run_id, wait=False)
    assert waits.status == "suspended"
    assert executor.resolve(row.run_id, 1, Answer(kind="happened", value=b'"a"', by="ops"))
    result = await executor.resume(row.run_id)
    assert result.status == "ok"
    assert done == ["a", "b"]
    await executor.close()


# ---------------------------------------------------------------- many


async def test_a_hundred_suspended_runs_hold_no_sandbox_and_go_on_after_a_restart(tmp_path: Path) -> None:
    done: list[str] = []
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    backend = GuestBackend(asks("a", "b"))
    executor = Executor([putter(done)], backend=backend, store=store, limits=COLD, approver=ask_elsewhere)
    results = await asyncio.gather(*(executor.run(SCRIPT, wait=False) for _ in range(100)))
    assert {result.status for result in results} == {"suspended"}
    assert all(sandbox.closed for sandbox in backend.sandboxes)
    await executor.close()
    store.close()
    assert path.stat().st_size / 100 < 64 << 10
    store = SqliteStore(path)
    executor = Executor([putter(done)], backend=backend, store=store, limits=COLD, approver=ask_elsewhere)
    for result in results:
        decide_all(executor, store, result.run_id)
    finished = await executor.resume_due()
    assert [result.status for result in finished] == ["ok"] * 100
    assert sorted(done) == ["a"] * 100 + ["b"] * 100
    await executor.close()
    store.close()
