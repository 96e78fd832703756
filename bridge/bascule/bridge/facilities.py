"""What all runs of one executor use together: events, threads, locks of resources, circuits."""

from __future__ import annotations

import asyncio
from typing import Final

from bascule.bridge.approval import Approver
from bascule.bridge.circuits import Circuits
from bascule.bridge.events import EventChannel
from bascule.bridge.lanes import Resources
from bascule.bridge.limits import Limits
from bascule.bridge.offering import Offering
from bascule.bridge.order import Surroundings
from bascule.bridge.redaction import keep_log_clean
from bascule.bridge.store import Store
from bascule.bridge.workers import Workers
from bascule.sandbox import Backend

TOOL_THREADS: Final = 128
"""Threads for synchronous tools, shared by all runs of an executor."""

APPROVER_THREADS: Final = 128
"""Threads for a synchronous approver, their own: waiting for people never keeps a tool from running."""


class Facilities:
    """Made with an executor, closed with it."""

    def __init__(self) -> None:
        self.events = EventChannel()
        self._workers = Workers(size=TOOL_THREADS)
        self._approver_workers = Workers(size=APPROVER_THREADS)
        self._resources = Resources()
        self._circuits = Circuits()
        keep_log_clean()

    def surroundings(
        self, backend: Backend, offering: Offering, *, store: Store, approver: Approver, limits: Limits
    ) -> Surroundings:
        """Return what a run is made in; the policy it asks is the one that is offered at that moment."""
        return Surroundings(
            backend=backend,
            registry=offering.registry,
            stubs=offering.stubs,
            policy=lambda: offering.policy,
            approver=approver,
            limits=limits,
            store=store,
            events=self.events,
            workers=self._workers,
            approver_workers=self._approver_workers,
            resources=self._resources,
            redactor=offering.redactor,
            circuits=self._circuits,
            secrets=offering.secrets,
        )

    async def close(self) -> None:
        """End the threads; what is left of the events is delivered first."""
        self._workers.close()
        self._approver_workers.close()
        await asyncio.get_running_loop().run_in_executor(None, self.events.close)
