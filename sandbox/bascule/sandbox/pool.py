"""The warm pool: sandboxes started ahead of their runs, each for one run, or for one principal's.

Decides who gets the next sandbox and when to say no; ``stock`` decides how many there are. Trusts its
backend; an idle guest is watched and thrown away when it dies or speaks. One pool has one backend, that is
one image and one runtime; within it sandboxes are kept apart by their limits. Runs on one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Literal

from bascule.sandbox.errors import SandboxError
from bascule.sandbox.lease import WarmSandbox
from bascule.sandbox.limits import PoolLimits, SandboxLimits
from bascule.sandbox.reuse import Reusing
from bascule.sandbox.sandbox import Backend, Sandbox
from bascule.sandbox.shelf import PoolState, Shelf, Waiter
from bascule.sandbox.stock import Stock

Reuse = Literal["never", "principal"]


class WarmPool:
    """Hands out warm sandboxes; is a ``Backend`` itself.

    Args:
        backend: owned from here on; closed with the pool.
        limits: how many, and who waits.
        reuse: ``never`` removes a container behind each run. ``principal`` lets it serve further runs of the
            same principal, each in a clean child forked for it; runs of nobody in particular share nothing.
        principal: on whose behalf those are who come to the pool itself, not through ``for_principal``.

    Raises:
        SandboxError: ``isolation_unsupported``: this backend cannot give what ``reuse`` asks for.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        limits: PoolLimits | None = None,
        reuse: Reuse = "never",
        principal: str = "",
    ) -> None:
        self._backend = backend
        self._limits = limits or PoolLimits()
        self._principal = principal
        reusing = backend if reuse == "principal" and isinstance(backend, Reusing) else None
        if reuse == "principal" and reusing is None:
            raise SandboxError(
                "isolation_unsupported",
                f'isolation {backend.name} has nothing to reuse; reuse="principal" is for containers',
            )
        self._stock = Stock(backend, self._limits, reuse=reusing)
        self._closed = False

    @property
    def name(self) -> str:
        """See ``Backend.name``."""
        return self._backend.name

    @property
    def image_hash(self) -> str:
        """See ``Backend.image_hash``."""
        return self._backend.image_hash

    @property
    def state(self) -> PoolState:
        """What the pool holds at this moment."""
        return self._stock.state

    def keep_ready(self, limits: SandboxLimits) -> None:
        """Have ``PoolLimits.floor`` sandboxes of this kind ready from now on, before anybody asks."""
        self._stock.shelf(limits).kept = True
        self._stock.refill()

    def for_principal(self, principal: str) -> Backend:
        """Return this pool as the backend of one principal; principals that wait are served in turn."""
        return _Share(self, principal)

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> Sandbox:
        """See ``Backend.start``; a ``command`` of one's own is always started afresh."""
        return await self.lease(limits, run_id=run_id, command=command, principal=self._principal)

    async def lease(
        self,
        limits: SandboxLimits,
        *,
        run_id: str,
        command: Sequence[str] | None = None,
        principal: str = "",
    ) -> Sandbox:
        """Give a sandbox of this kind to one run, at once when one is ready.

        Args:
            run_id: labels a sandbox with a ``command``; a warm one has a name of its own.
            principal: on whose behalf; decides the order among those who wait.

        Raises:
            SandboxError: ``pool_exhausted``: send fewer runs at once or raise ceiling or queue;
                ``pool_closed``; or why none can be started.
        """
        if self._closed:
            raise _closed()
        if command is not None:
            return await self._backend.start(limits, run_id=run_id, command=command)
        shelf = self._stock.shelf(limits)
        shelf.demand.note_request(time.monotonic())
        sandbox = self._stock.take(shelf, principal)
        if sandbox is not None:
            return sandbox
        return await self._wait(shelf, principal)

    async def sweep(self) -> int:
        """See ``Backend.sweep``."""
        return await self._backend.sweep()

    async def close(self) -> None:
        """End every sandbox, wait for every removal, close the backend. Those who wait are refused."""
        if self._closed:
            return
        self._closed = True
        await self._stock.drain(_closed())
        await self._backend.close()

    async def _wait(self, shelf: Shelf, principal: str) -> WarmSandbox:
        waiting = self.state.waiting
        if waiting >= self._limits.queue and self._stock.room <= 0:
            raise _exhausted(f"{waiting} runs wait for a sandbox already")
        waiter: Waiter = asyncio.get_running_loop().create_future()
        shelf.waiting.push(principal, waiter)
        self._stock.refill()
        try:
            await asyncio.wait({waiter}, timeout=self._limits.wait_s)
        except asyncio.CancelledError:
            if waiter.done() and waiter.exception() is None:
                self._stock.discard(waiter.result())  # given in the very moment of the cancellation
            waiter.cancel()
            raise
        finally:
            shelf.waiting.discard(principal, waiter)
        if not waiter.done():
            waiter.cancel()
            raise _exhausted(f"no sandbox came free within {self._limits.wait_s:g} s")
        return waiter.result()


class _Share:
    """A pool as one principal sees it."""

    def __init__(self, pool: WarmPool, principal: str) -> None:
        self._pool = pool
        self._principal = principal
        self.name = pool.name
        self.image_hash = pool.image_hash

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> Sandbox:
        """See ``Backend.start``."""
        return await self._pool.lease(limits, run_id=run_id, command=command, principal=self._principal)

    async def sweep(self) -> int:
        """See ``Backend.sweep``."""
        return await self._pool.sweep()

    async def close(self) -> None:
        """Do nothing: whoever opened the pool closes it."""


def _closed() -> SandboxError:
    return SandboxError("pool_closed", "the pool is shutting down; no further run can start")


def _exhausted(why: str) -> SandboxError:
    return SandboxError(
        "pool_exhausted",
        f"{why}; send fewer runs at once, try again later, or raise the pool's ceiling or queue",
    )
