"""One run while it lives: the parts that serve it, from the guest's hello to the Result."""

from __future__ import annotations

import signal
from typing import Final

import msgspec

from bascule.bridge.asking import Asking
from bascule.bridge.budget import Budget
from bascule.bridge.clock import RunClock
from bascule.bridge.crossing import Crossing
from bascule.bridge.gate import Gate
from bascule.bridge.guest import ALIVE, Guest
from bascule.bridge.history import History
from bascule.bridge.jobs import Jobs
from bascule.bridge.journal import Journal
from bascule.bridge.lanes import Lanes
from bascule.bridge.ledger import Ledger
from bascule.bridge.matching import User
from bascule.bridge.narrator import Narrator
from bascule.bridge.order import RunOrder, Surroundings
from bascule.bridge.parking import Parking
from bascule.bridge.recovery import Recovery
from bascule.bridge.replay import Replay
from bascule.bridge.result import Result, Usage, bound_notes
from bascule.bridge.run import Conversation
from bascule.bridge.verdict import RunStopped, RunSuspended, judge, violation
from bascule.sandbox import Ending, SandboxClosed
from bascule.wire import Finish, FrameError

_FROM_OUTSIDE: Final = (signal.SIGKILL, signal.SIGTERM)
"""Signals by which operators and stopping engines end a guest."""


class LiveRun:
    """One run while it lives; `to_end` it, and `clean_up` always."""

    def __init__(
        self,
        order: RunOrder,
        around: Surroundings,
        guest: Guest,
        journal: Journal,
        narrator: Narrator,
        history: History | None = None,
    ) -> None:
        self._order = order
        self._around = around
        self._guest = guest
        self._ledger = Ledger()
        self._budget = Budget(around.limits)
        used_s = 0.0 if history is None else history.used_s
        self._clock = RunClock(around.limits, changed=self._wake, used_s=used_s)
        parking = Parking(self._wake)
        user = None if order.user is None else User(name=order.user, groups=order.groups, tenant=order.tenant)
        asking = Asking(
            run_id=order.run_id,
            script=order.script,
            registry=around.registry,
            policy=around.policy,
            user=user,
            approver=around.approver,
            ledger=self._ledger,
            journal=journal,
            store=around.store,
            clock=self._clock,
            parking=parking,
            workers=around.approver_workers,
            redactor=around.redactor,
            announce=lambda record: narrator.call("call.waiting_approval", record),
            remind=narrator.remind,
        )
        self._gate = gate = Gate(
            run_id=order.run_id,
            policy=around.policy,
            user=user,
            ledger=self._ledger,
            journal=journal,
            store=around.store,
            asking=asking,
            labels=guest.labels | order.labels,
        )
        shared = Crossing(
            run_id=order.run_id,
            registry=around.registry,
            offered=frozenset(stub.name for stub in order.stubs),
            limits=around.limits,
            gate=gate,
            budget=self._budget,
            lanes=Lanes(around.resources, in_flight=around.limits.in_flight),
            ledger=self._ledger,
            workers=around.workers,
            journal=journal,
            narrator=narrator,
            parking=parking,
            recovery=Recovery(
                run_id=order.run_id,
                store=around.store,
                clock=self._clock,
                parking=parking,
                jobs=Jobs(
                    run_id=order.run_id,
                    journal=journal,
                    clock=self._clock,
                    parking=parking,
                    workers=around.workers,
                ),
            ),
            store=around.store,
            redactor=around.redactor,
            circuits=around.circuits,
            secrets=around.secrets,
            rehearsal=around.rehearsal,
        )
        replay = None if history is None else Replay(history)
        self._conversation = Conversation(guest.sandbox, guest.inbox, shared, self._clock, replay)
        self._ended = False
        self.suspended: RunSuspended | None = None
        self.guest_lost = False

    async def to_end(self) -> Result:
        """Let the script run, and judge the outcome.

        Raises:
            HandshakeError, SandboxError: the guest is not ours; the script did not run.
            StoreError, LeaseLost: the journal cannot be written; no further tool was started.
        """
        await self._guest.greet(self._around.limits)
        self._clock.begin()
        finish: Finish | None = None
        stopped: RunStopped | None = None
        vanished = False
        try:
            finish = await self._conversation.converse(self._order.start())
        except RunStopped as stop:
            stopped = stop
        except FrameError as error:
            stopped = violation(error.for_script())
        except SandboxClosed:
            vanished = True  # how the sandbox ended tells why
        self._clock.guest_waits()
        wall_s = self._clock.wall_s
        if finish is not None and self._order.session is not None and finish.status != "limit":
            ending = ALIVE
        else:
            ending = await self._guest.end(kill=stopped is not None)
        await self._conversation.end()
        self._guest.labels = self._gate.labels
        self.suspended = stopped if isinstance(stopped, RunSuspended) else None
        self.guest_lost = vanished and self._was_killed(ending)
        await self._gate.close(keep=self.suspended is not None or self.guest_lost)
        self._ended = True
        return self._result(finish, stopped, ending, wall_s=wall_s)

    def _was_killed(self, ending: Ending) -> bool:
        """Tell whether somebody else ended the guest: neither the host, nor the kernel for what it used."""
        used_up = ending.oom_killed or self._clock.active_s >= self._around.limits.cpu_s
        if ending.killed or used_up:
            return False
        # Whoever built the sandbox and cannot say how it ended was restarted or is gone, and took it along.
        return ending.exit_code is None or ending.signal in _FROM_OUTSIDE

    @property
    def used_s(self) -> float:
        """Seconds used of the limit ``run_s``, by earlier workers too."""
        return self._clock.used_s

    def stop(self, reason: BaseException) -> None:
        """End the run soon: a `RunStopped` gives a Result, anything else is raised."""
        self._guest.inbox.stop_with(reason)

    async def clean_up(self) -> None:
        """Leave nothing running; does nothing after a run that came to its end. Questions stay open."""
        if self._ended:
            return
        self._ended = True
        try:
            await self._guest.sandbox.kill()
            await self._conversation.end()
            await self._gate.close(keep=True)
        finally:
            await self._guest.end(kill=True)

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
        notes = () if finish is None else bound_notes(finish.notes)
        value = None if said is None else said.value
        valued = said is not None and said.value_source != "none"
        value_bytes = len(msgspec.json.encode(value)) if valued else 0
        return Result(
            run_id=self._order.run_id,
            status=judgement.status,
            value=self._around.redactor.plain(value),
            value_source="none" if said is None else said.value_source,
            # Once more: a secret may have been printed in pieces.
            output=self._around.redactor.text(conversation.output),
            errors=self._around.redactor.errors(judgement.errors),
            notes=(*self._gate.notes, *self._around.redactor.notes(notes)),
            calls=self._ledger.receipts(),
            usage=self._usage(
                finish, ending, wall_s=wall_s, returned_bytes=conversation.output_bytes + value_bytes
            ),
        )

    def _usage(self, finish: Finish | None, ending: Ending, *, wall_s: float, returned_bytes: int) -> Usage:
        claimed = None if finish is None else finish.usage
        # What the sandbox measured is that of all scripts of a session.
        measured = ending.cpu_s is not None and self._order.session is None
        cpu_s = ending.cpu_s if claimed is None or measured else claimed.cpu_s
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
