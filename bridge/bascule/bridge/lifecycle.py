"""The life of one run: begun or taken up again, driven until it ends or only waits, and left in the store.

Whatever happens, the sandbox is gone after it; only a session keeps its guest from one script to the next.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final

from bascule.bridge.errors import LeaseLost, ResumeError, StoreError
from bascule.bridge.failure import secret_in_script
from bascule.bridge.guest import Guest, start_guest
from bascule.bridge.history import History, read_history
from bascule.bridge.journal import EventKind, Fact, Journal
from bascule.bridge.live_run import LiveRun
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.narrator import Narrator
from bascule.bridge.order import RunOrder, Surroundings, order_of
from bascule.bridge.rehearsal import Rehearsal, WantedEffects
from bascule.bridge.result import Result
from bascule.bridge.store import LEASE_S, Store
from bascule.bridge.verdict import RunStopped
from bascule.wire import ScriptError

MAX_LOST_GUESTS: Final = 2
"""How often a run whose sandbox was killed from outside is replayed in a new one."""


async def run_script(order: RunOrder, around: Surroundings, guest: Guest | None = None) -> Result:
    """Run one script, in a fresh sandbox unless a session gives its own.

    Raises:
        SandboxError, HandshakeError, StoreError: see `Executor.run`.
    """
    secret_at = around.redactor.find(order.script)
    if secret_at is not None:
        line = order.script.count("\n", 0, secret_at) + 1
        order = replace(order, script=around.redactor.text(order.script))
        return await _refuse(order, around, secret_in_script(line))
    journal = around.store.open_journal(order.record("running"))
    order.begin(journal)
    await journal.flush()
    return await _drive(order, around, journal, None, guest)


async def rehearse_script(order: RunOrder, around: Surroundings) -> Rehearsal:
    """Rehearse one script: see `Executor.rehearse`.

    Raises:
        SandboxError, HandshakeError: see `Executor.rehearse`.
    """
    wanted = WantedEffects()
    kept = around.store
    alone = replace(around, rehearsal=wanted, store=MemoryStore(counted_by=kept))
    result = await run_script(order, alone)
    reads = Counter(call.tool for call in result.calls if call.state in ("running", "done", "failed"))
    facts: dict[str, Fact] = {
        "user": order.user,
        "tenant": order.tenant,
        "script_sha256": order.script_sha256,
        "status": result.status,
        "read": dict(sorted(reads.items())),
        "withheld": dict(sorted(Counter(effect.tool for effect in wanted.found).items())),
    }
    await asyncio.to_thread(kept.append_audit, "run.rehearsed", facts, run_id=order.run_id)
    return Rehearsal(effects=tuple(wanted.found), complete=result.status == "ok", result=result)


async def resume_script(run_id: str, around: Surroundings, guest: Guest | None = None) -> Result:
    """Take up a run that was suspended, or that a dead worker left.

    Raises:
        RunNotFound, RunBusy, ResumeError, SandboxError, HandshakeError, StoreError: see `Executor.resume`.
    """
    journal = await asyncio.to_thread(around.store.take_lease, run_id)
    row = around.store.run(run_id)
    assert row is not None
    try:
        history = await asyncio.to_thread(lambda: read_history(run_id, journal.entries))
        assert history is not None  # the row and RUN_STARTED are written together
        order = order_of(run_id, history)
        if order.image != around.backend.image_hash:
            raise ResumeError(
                "image_gone",
                f"{run_id} was begun on guest image {order.image[:12]}, here is"
                f" {around.backend.image_hash[:12]}: resume it with the bascule version that began it",
            )
    except BaseException:
        with contextlib.suppress(StoreError, LeaseLost):
            await _finish(around.store.release(journal, row.left_as("suspended")))
        raise
    journal.append(EventKind.RESUMED)
    journal.audit("run.resumed")
    return await _drive(order, around, journal, history, guest)


async def _drive(
    order: RunOrder, around: Surroundings, journal: Journal, history: History | None, guest: Guest | None
) -> Result:
    narrator = Narrator(order.run_id, around.events)
    narrator.run("run.started")
    keeper: asyncio.Task[None] | None = None
    run: LiveRun | None = None
    try:
        guest = guest or await start_guest(around.backend, around.limits, order.run_id)
        run = LiveRun(order, around, guest, journal, narrator, history)
        keeper = asyncio.create_task(_keep_lease(around.store, journal, lambda: run))
        result = await run.to_end()
        for _ in range(MAX_LOST_GUESTS if order.session is None else 0):
            if not run.guest_lost:
                break
            journal.append(EventKind.RESUMED)
            journal.audit("run.resumed", reason="its sandbox was killed")
            await journal.flush()
            history = read_history(order.run_id, journal.entries)
            if history is not None:
                history.used_s = max(history.used_s, run.used_s)
            guest = await start_guest(around.backend, around.limits, order.run_id)
            run = LiveRun(order, around, guest, journal, narrator, history)
            result = await run.to_end()
        await _leave(order, around.store, journal, run, result)
    except BaseException:
        # Also when this task is cancelled. The run can be resumed, whatever broke.
        await _finish(_abandon(order, around.store, journal, run))
        raise
    finally:
        if keeper is not None:
            keeper.cancel()
    narrator.run("run.finished", text=result.status, duration_s=result.usage.wall_s)
    return result


async def _abandon(order: RunOrder, store: Store, journal: Journal, run: LiveRun | None) -> None:
    """Leave a run that broke off so that it can be resumed; a store that fails hides no first cause."""
    if run is not None:
        await run.clean_up()
    with contextlib.suppress(StoreError, LeaseLost):
        record = order.record("suspended", reason="its host stopped working on it")
        await store.release(journal, record)


async def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Wait for work that no cancellation may cut short, however often it comes; raise the last one after it.

    A cancel scope of anyio, which web and MCP servers use, cancels its task again at every turn of the event
    loop: `asyncio.shield` would let go of the work, and the loop would end before it.
    """
    task = asyncio.ensure_future(work)
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as cancelled:
            interrupted = cancelled
    task.result()
    if interrupted is not None:
        raise interrupted


async def _refuse(order: RunOrder, around: Surroundings, error: ScriptError) -> Result:
    """Record a script that is not run at all."""
    journal = around.store.open_journal(order.record("running"))
    order.begin(journal)
    result = Result(run_id=order.run_id, status="refused", errors=(error,))
    _note_end(journal, result)
    await around.store.release(journal, order.record("finished", outcome=result.status))
    Narrator(order.run_id, around.events).run("run.finished", text=result.status)
    return result


def _note_end(journal: Journal, result: Result) -> None:
    error = None if result.error is None else result.error.kind
    journal.append(EventKind.FINISHED, result.to_json(), status=result.status, error=error)
    journal.audit(
        "run.finished", status=result.status, error=error, calls=len(result.calls),
        duration_s=result.usage.wall_s,
    )  # fmt: skip


async def _leave(order: RunOrder, store: Store, journal: Journal, run: LiveRun, result: Result) -> None:
    suspended = run.suspended
    if suspended is not None:
        journal.append(
            EventKind.SUSPENDED, reason=suspended.message, wake_at=suspended.wake_at, waits=suspended.waits,
            used_s=run.used_s,
        )  # fmt: skip
        journal.audit("run.suspended", reason=suspended.message)
        record = order.record(
            "suspended", reason=suspended.message, wake_at=suspended.wake_at, waits=suspended.waits
        )
    else:
        _note_end(journal, result)
        record = order.record("finished", outcome=result.status)
    await store.release(journal, record)


async def _keep_lease(store: Store, journal: Journal, live: Callable[[], LiveRun | None]) -> None:
    """Renew the lease in time, and end the run when that fails or somebody asks for it."""
    loop = asyncio.get_running_loop()
    renewed = loop.time()
    try:
        while True:
            await store.changed(LEASE_S / 3)
            row = store.run(journal.run_id)
            if row is not None and row.cancel_requested:
                _stop(live(), RunStopped("cancelled", "cancelled", "cancelled: somebody ended this run"))
            if loop.time() - renewed >= LEASE_S / 3 or row is None:
                await asyncio.to_thread(store.renew, journal)
                renewed = loop.time()
    except (StoreError, LeaseLost) as lost:
        _stop(live(), lost)


def _stop(run: LiveRun | None, reason: BaseException) -> None:
    if run is not None:
        run.stop(reason)
