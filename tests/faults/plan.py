"""When a host dies: a plan counts steps of store, tools and transport, and at one of them everything is over.

Death in process is simulated: from that step on the store writes nothing more, tools do nothing more, and no
frame moves. What a real host would have left behind is what is left behind here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from bascule.bridge.errors import StoreError
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.sqlite_writer import SqliteWriter
from bascule.sandbox import Backend, Ending, Sandbox, SandboxLimits

T = TypeVar("T")


class Died(StoreError):
    """Raised wherever a dead host tries to do something."""

    def __init__(self) -> None:
        super().__init__("store_unavailable", "the host is dead")


class Plan:
    """Dies at step ``at`` (from 1), or never.

    Attributes:
        steps: how many there were so far.
    """

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.steps = 0
        self.dead = False

    def step(self) -> None:
        """Take one step.

        Raises:
            Died: at the planned step and ever after.
        """
        self.steps += 1
        if self.dead or self.steps == self.at:
            self.dead = True
            raise Died


class MortalWriter(SqliteWriter):
    """Dies before a transaction, or after it and before its caller knows."""

    def __init__(self, path: Path, plan: Plan) -> None:
        super().__init__(path)
        self.plan = plan

    def _transact(self, work: Callable[[sqlite3.Connection], T], *, durable: bool) -> T:
        self.plan.step()
        # No machine loses its power here, so flushing to disk would prove nothing.
        outcome = super()._transact(work, durable=False)
        self.plan.step()
        return outcome


class MortalStore(SqliteStore):
    """A store whose process is thought to be gone as soon as anybody else looks."""

    def __init__(self, path: Path, plan: Plan) -> None:
        super().__init__(path)
        self.writer.close()
        self.writer = MortalWriter(path, plan)
        self.owner = f"{self.owner.partition(':')[0]}:4194304:1"


class MortalSandbox:
    """Dies before or after a frame is sent or taken."""

    def __init__(self, inner: Sandbox, plan: Plan) -> None:
        self._inner = inner
        self._plan = plan

    async def send(self, frame: bytes) -> None:
        """See `Sandbox.send`."""
        self._plan.step()
        await self._inner.send(frame)
        self._plan.step()

    async def receive(self) -> bytes:
        """See `Sandbox.receive`."""
        payload = await self._inner.receive()
        self._plan.step()
        return payload

    async def kill(self) -> None:
        """See `Sandbox.kill`."""
        await self._inner.kill()

    async def close(self) -> Ending:
        """See `Sandbox.close`."""
        return await self._inner.close()


class MortalBackend:
    """Wraps the sandboxes of another backend, which it does not close."""

    name = "mortal"

    def __init__(self, inner: Backend, plan: Plan) -> None:
        self._inner = inner
        self._plan = plan
        self.image_hash = inner.image_hash

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> MortalSandbox:
        """See `Backend.start`."""
        return MortalSandbox(await self._inner.start(limits, run_id=run_id), self._plan)

    async def sweep(self) -> int:
        """See `Backend.sweep`."""
        return 0

    async def close(self) -> None:
        """See `Backend.close`."""
