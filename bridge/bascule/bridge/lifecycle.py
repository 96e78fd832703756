"""The life of one run, from a fresh sandbox to the Result; whatever happens, the sandbox is gone after it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from dataclasses import dataclass
from typing import Final

import msgspec

from bascule.bridge.approval import Approver
from bascule.bridge.budget import Budget
from bascule.bridge.clock import RunClock
from bascule.bridge.errors import HandshakeError
from bascule.bridge.events import EventChannel
from bascule.bridge.gate import Gate
from bascule.bridge.journal import EventKind, Journal, Store
from bascule.bridge.lanes import Lanes, Resources
from bascule.bridge.ledger import Ledger
from bascule.bridge.limits import Limits
from bascule.bridge.narrator import Narrator
from bascule.bridge.pipeline import Crossing
from bascule.bridge.policy import Policy
from bascule.bridge.result import Result, Usage, bound_notes
from bascule.bridge.run import Conversation
from bascule.bridge.verdict import RunStopped, judge, violation
from bascule.bridge.workers import Workers
from bascule.sandbox import (
    Backend,
    Ending,
    Sandbox,
    SandboxClosed,
    SandboxError,
    SandboxLimits,
    image_mismatch,
)
from bascule.tools import Registry
from bascule.wire import PROTOCOL, Finish, FrameError, Hello, Start, ToolStub

GUEST_OWN_BYTES: Final = 64 << 20
"""Memory the idle guest and its tmpfs may take beside what the script may add."""

_log = logging.getLogger("bascule.bridge")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """What is to be run, and for whom."""

    run_id: str
    script: str
    seed: int
    now: float
    user: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all runs of one executor share."""

    backend: Backend
    registry: Registry
    stubs: tuple[ToolStub, ...]
    policy: Policy
    approver: Approver
    limits: Limits
    store: Store
    events: EventChannel
    workers: Workers
    approver_workers: Workers
    resources: Resources


async def run_script(order: RunOrder, around: Surroundings) -> Result:
    """Run one script in a fresh sandbox.

    Raises:
        SandboxError, HandshakeError: see `Executor.run`.
    """
    narrator = Narrator(order.run_id, around.events)
    journal = around.store.open_journal(order.run_id)
    journal.append(
        EventKind.RUN_STARTED,
        script_sha256=hashlib.sha256(order.script.encode("utf-8", "surrogatepass")).hexdigest(),
        script=order.script,
        seed=order.seed,
        now=order.now,
        user=order.user,
        image=around.backend.image_hash,
    )
    narrator.run("run.started")
    sandbox = await around.backend.start(sandbox_limits(around.limits), run_id=order.run_id)
    run = _Run(order, around, sandbox, journal, narrator)
    try:
        result = await run.to_end()
    finally:
        # Also when this task is cancelled: kill first, or close would wait for the guest to exit.
        await asyncio.shield(run.clean_up())
    error = None if result.error is None else result.error.kind
    journal.append(EventKind.FINISHED, status=result.status, error=error)
    await journal.commit()
    narrator.run("run.finished", text=result.status, duration_s=result.usage.wall_s)
    return result


def sandbox_limits(limits: Limits) -> SandboxLimits:
    """Return what the sandbox of a run with these limits may use."""
    return SandboxLimits(memory_bytes=limits.memory_bytes + GUEST_OWN_BYTES, start_timeout_s=limits.start_s)


class _Run:
    """One run while it lives."""

    def __init__(
        self, order: RunOrder, around: Surroundings, sandbox: Sandbox, journal: Journal, narrator: Narrator
    ) -> None:
        self._order = order
        self._around = around
        self._sandbox = sandbox
        self._ledger = Ledger()
        self._budget = Budget(around.limits)
        self._clock = RunClock(around.limits, changed=self._wake)
        gate = Gate(
            run_id=order.run_id,
            script=order.script,
            policy=around.policy,
            approver=around.approver,
            ledger=self._ledger,
            journal=journal,
            clock=self._clock,
            workers=around.approver_workers,
            announce=lambda record: narrator.call("call.waiting_approval", record),
        )
        shared = Crossing(
            run_id=order.run_id,
            registry=around.registry,
            limits=around.limits,
            gate=gate,
            budget=self._budget,
            lanes=Lanes(around.resources, in_flight=around.limits.in_flight),
            ledger=self._ledger,
            workers=around.workers,
            journal=journal,
            narrator=narrator,
        )
        self._conversation = Conversation(sandbox, shared, self._clock)
        self._ended = False

    async def to_end(self) -> Result:
        """Greet the guest, let the script run, and judge the outcome."""
        await self._check_hello()
        start = Start(
            script=self._order.script,
            tools=self._around.stubs,
            seed=self._order.seed,
            now=self._order.now,
            limits=self._around.limits.for_guest(),
        )
        finish: Finish | None = None
        stopped: RunStopped | None = None
        try:
            finish = await self._conversation.converse(start)
        except RunStopped as stop:
            stopped = stop
        except FrameError as error:
            stopped = violation(error.for_script())
        except SandboxClosed:
            pass  # how the sandbox ended tells why
        self._clock.guest_waits()
        wall_s = self._clock.wall_s
        ending = await self._end_sandbox(kill=finish is None)
        await self._conversation.end()
        self._ended = True
        return self._result(finish, stopped, ending, wall_s=wall_s)

    async def _end_sandbox(self, *, kill: bool) -> Ending:
        """End the sandbox; an engine that fails only now does not take the receipts with it."""
        try:
            if kill:
                with contextlib.suppress(SandboxError):  # close tries again, and raises it
                    await self._sandbox.kill()
            return await self._sandbox.close()
        except SandboxError as error:
            _log.error("run %s: the engine failed after the script had begun: %s", self._order.run_id, error)
            return Ending(exit_code=None, signal=None, oom_killed=False, killed=False, stderr_tail="")

    async def clean_up(self) -> None:
        """Leave nothing; does nothing after a run that came to its end."""
        if self._ended:
            return
        self._ended = True
        try:
            await self._sandbox.kill()
            await self._conversation.end()
        finally:
            await self._sandbox.close()

    async def _check_hello(self) -> None:
        limits = self._around.limits
        try:
            hello = await self._conversation.hello(limits.start_s)
        except (SandboxClosed, FrameError) as error:
            ending = await self._sandbox.close()
            raise HandshakeError(
                "guest_not_started",
                f"the guest ended before it said hello: {error} (exit {ending.exit_code});"
                f" its last words: {ending.stderr_tail[-2000:]!r}",
            ) from error
        if hello is None:
            raise HandshakeError(
                "guest_not_started", f"the guest said nothing within {limits.start_s:g} s; raise start_s"
            )
        if not isinstance(hello, Hello) or hello.protocol != PROTOCOL:
            raise HandshakeError(
                "protocol_mismatch",
                "the guest does not speak this host's protocol; run `bascule image build`",
            )
        if hello.image != self._around.backend.image_hash:
            raise image_mismatch(expected=self._around.backend.image_hash, found=hello.image)

    def _result(
        self, finish: Finish | None, stopped: RunStopped | None, ending: Ending, *, wall_s: float
    ) -> Result:
        judgement = judge(
            script=self._order.script,
            limits=self._around.limits,
            finish=finish,
            stopped=stopped,
            ending=ending,
        )
        said = finish if finish is not None and judgement.status == finish.status else None
        conversation = self._conversation
        value = None if said is None else said.value
        value_bytes = 0 if said is None else len(msgspec.json.encode(value))
        return Result(
            run_id=self._order.run_id,
            status=judgement.status,
            value=value,
            value_source="none" if said is None else said.value_source,
            output=conversation.output,
            errors=judgement.errors,
            notes=() if finish is None else bound_notes(finish.notes),
            calls=self._ledger.receipts(),
            usage=self._usage(
                finish, ending, wall_s=wall_s, returned_bytes=conversation.output_bytes + value_bytes
            ),
        )

    def _usage(self, finish: Finish | None, ending: Ending, *, wall_s: float, returned_bytes: int) -> Usage:
        claimed = None if finish is None else finish.usage
        cpu_s = ending.cpu_s if claimed is None or ending.cpu_s is not None else claimed.cpu_s
        peak = ending.peak_memory_bytes
        if claimed is not None and peak is None:
            peak = claimed.peak_memory_bytes
        return Usage(
            wall_s=wall_s,
            active_s=self._clock.active_s,
            cpu_s=cpu_s or 0.0,
            peak_memory_bytes=peak or 0,
            calls=self._budget.calls,
            result_bytes=self._budget.result_bytes,
            returned_bytes=returned_bytes,
        )

    def _wake(self) -> None:
        self._conversation.wake()
