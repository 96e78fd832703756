"""The sandboxes of one kind that stand ready, and the runs that wait for one. Counted data, no decisions."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from bascule.sandbox.demand import Demand
from bascule.sandbox.fair import FairQueue
from bascule.sandbox.lease import WarmSandbox
from bascule.sandbox.limits import SandboxLimits

Waiter = asyncio.Future[WarmSandbox]


@dataclass(slots=True)
class Shelf:
    """All that concerns the sandboxes of one kind."""

    limits: SandboxLimits
    ready: deque[WarmSandbox] = field(default_factory=deque[WarmSandbox])
    kept_for: dict[str, deque[WarmSandbox]] = field(default_factory=dict[str, deque[WarmSandbox]])
    waiting: FairQueue[Waiter] = field(default_factory=FairQueue[Waiter])
    demand: Demand = field(default_factory=Demand)
    starting: int = 0
    kept: bool = False
    failures: int = 0
    pause_until_s: float = 0.0

    @property
    def all_kept(self) -> list[WarmSandbox]:
        """Idle sandboxes that served a principal before, and may serve nobody else."""
        return [each for kept in self.kept_for.values() for each in kept]

    def keep(self, sandbox: WarmSandbox) -> None:
        """Have a sandbox ready for its principal."""
        self.kept_for.setdefault(sandbox.principal, deque()).append(sandbox)

    def forget(self, sandbox: WarmSandbox) -> WarmSandbox:
        """Take a kept sandbox out and return it."""
        kept = self.kept_for[sandbox.principal]
        kept.remove(sandbox)
        if not kept:
            del self.kept_for[sandbox.principal]
        return sandbox

    def pop(self, principal: str) -> WarmSandbox | None:
        """Take one that served this principal before, else, when nobody waits, the one ready longest."""
        kept = self.kept_for.get(principal)
        if kept:
            return self.forget(kept[0])
        if self.ready and not self.waiting:
            return self.ready.popleft()
        return None

    def next_waiter(self) -> tuple[str, Waiter] | None:
        """Take the next run that still waits, with whose it is."""
        while (found := self.waiting.pop()) is not None:
            if not found[1].done():
                return found
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """Numbers for health checks and metrics."""

    ready: int
    starting: int
    leased: int
    ending: int
    waiting: int
