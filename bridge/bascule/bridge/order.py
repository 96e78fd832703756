"""What is to be run and for whom, and what all runs of one executor share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from bascule.bridge.approval import Approver
from bascule.bridge.circuits import Circuits
from bascule.bridge.events import EventChannel
from bascule.bridge.history import CommandLine, History, StartedRun
from bascule.bridge.journal import JOURNAL_VERSION, EventKind, Journal
from bascule.bridge.lanes import Resources
from bascule.bridge.limits import Limits
from bascule.bridge.policy import Policy
from bascule.bridge.redaction import Redactor
from bascule.bridge.rehearsal import WantedEffects
from bascule.bridge.store import RunRecord, RunStatus, Store
from bascule.bridge.workers import Workers
from bascule.sandbox import Backend
from bascule.tools import Registry
from bascule.wire import GuestLimits, Start, ToolStub


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all runs of one executor share."""

    backend: Backend
    registry: Registry
    stubs: tuple[ToolStub, ...]
    policy: Callable[[], Policy]
    approver: Approver
    limits: Limits
    store: Store
    events: EventChannel
    workers: Workers
    approver_workers: Workers
    resources: Resources
    redactor: Redactor
    circuits: Circuits
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    rehearsal: WantedEffects | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """One run.

    Attributes:
        stubs, guest_limits: what the guest is told; a resumed one is told the same as before.
        session, ordinal: the session it belongs to, and its place in it.
        labels: what the run is taken to have read already, before its first call.
        command: how it is begun, where that is on a command line.
        rehearsal: results of its calls are withheld.
    """

    run_id: str
    script: str
    seed: int
    now: float
    user: str | None
    image: str
    stubs: tuple[ToolStub, ...]
    guest_limits: GuestLimits
    groups: frozenset[str] = frozenset()
    tenant: str | None = None
    session: str | None = None
    ordinal: int = 0
    labels: frozenset[str] = frozenset()
    command: CommandLine | None = None
    rehearsal: bool = False

    @property
    def script_sha256(self) -> str:
        """SHA-256 of the script, in hex."""
        return hashlib.sha256(self.script.encode("utf-8", "surrogatepass")).hexdigest()

    def start(self) -> Start:
        """Return the frame that begins it."""
        return Start(
            script=self.script,
            tools=self.stubs,
            seed=self.seed,
            now=self.now,
            limits=self.guest_limits,
            session=self.session is not None,
            rehearsal=self.rehearsal,
        )

    def record(
        self,
        status: RunStatus,
        *,
        outcome: str | None = None,
        reason: str = "",
        wake_at: float | None = None,
        waits: tuple[str, ...] = (),
    ) -> RunRecord:
        """Return the row of the run as it is now."""
        return RunRecord(
            run_id=self.run_id,
            status=status,
            created_at=self.now,
            updated_at=self.now,
            user=self.user,
            image=self.image,
            script_sha256=self.script_sha256,
            outcome=outcome,
            owner="here" if status == "running" else "",
            reason=reason,
            wake_at=wake_at,
            waits=waits,
            session=self.session,
            ordinal=self.ordinal,
        )

    def begin(self, journal: Journal) -> None:
        """Note RUN_STARTED."""
        script = self.script.encode("utf-8", "replace").decode()  # the guest refuses what this changes
        started = StartedRun(script=script, tools=self.stubs, limits=self.guest_limits, command=self.command)
        journal.append(
            EventKind.RUN_STARTED,
            msgspec.json.encode(started),
            version=JOURNAL_VERSION,
            script_sha256=self.script_sha256,
            seed=self.seed,
            now=self.now,
            user=self.user,
            groups=sorted(self.groups),
            tenant=self.tenant,
            image=self.image,
            session=self.session,
            ordinal=self.ordinal,
            labels=sorted(self.labels),
        )
        journal.audit(
            "run.started",
            user=self.user,
            tenant=self.tenant,
            script_sha256=self.script_sha256,
            image=self.image,
            seed=self.seed,
        )


def order_of(run_id: str, history: History) -> RunOrder:
    """Return the order that began a recorded run."""
    facts = cast("dict[str, Any]", history.facts)
    return RunOrder(
        run_id=run_id,
        script=history.started.script,
        seed=facts["seed"],
        now=facts["now"],
        user=facts["user"],
        groups=frozenset(facts["groups"]),
        tenant=facts.get("tenant"),  # newer than the first journals
        image=facts["image"],
        stubs=history.started.tools,
        guest_limits=history.started.limits,
        session=facts["session"],
        ordinal=facts["ordinal"],
        labels=frozenset(facts.get("labels", ())),
        command=history.started.command,
    )
