"""The stock of warm sandboxes behind the pool: what is started, kept, thrown away and removed.

Decides by demand, floor and ceiling; at most ``PoolLimits.starts`` start at once. Trusts the backend only.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Coroutine
from typing import Final

from bascule.sandbox.errors import SandboxError
from bascule.sandbox.greeting import await_hello
from bascule.sandbox.lease import WarmSandbox
from bascule.sandbox.limits import PoolLimits, SandboxLimits
from bascule.sandbox.reuse import ChildSandbox, Nursery, Reusing
from bascule.sandbox.sandbox import Backend, Sandbox
from bascule.sandbox.shelf import PoolState, Shelf

_TICK_S: Final = 1.0

_RUN_FIRST_S: Final = 0.03
"""A sandbox that was taken is replaced that much later, or at once when a run waits: a short run need not
share the machine with the start of the next sandbox."""

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0


class Stock:
    """All sandboxes of one pool, on one event loop."""

    def __init__(self, backend: Backend, limits: PoolLimits, *, reuse: Reusing | None = None) -> None:
        self._backend = backend
        self._reuse = reuse
        self._limits = limits
        self._shelves: dict[SandboxLimits, Shelf] = {}
        self._leased: set[WarmSandbox] = set()
        self._ending = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._starts: set[asyncio.Task[None]] = set()
        self._housekeeper: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def state(self) -> PoolState:
        """What there is at this moment."""
        shelves = self._shelves.values()
        return PoolState(
            ready=sum(len(shelf.ready) + len(shelf.all_kept) for shelf in shelves),
            starting=sum(shelf.starting for shelf in shelves),
            leased=len(self._leased),
            ending=self._ending,
            waiting=sum(len(shelf.waiting) for shelf in shelves),
        )

    @property
    def room(self) -> int:
        """How many more sandboxes the ceiling allows."""
        state = self.state
        return self._limits.ceiling - state.ready - state.starting - state.leased - state.ending

    def shelf(self, limits: SandboxLimits) -> Shelf:
        """Return the shelf of a kind, made when missing."""
        shelf = self._shelves.get(limits)
        if shelf is None:
            shelf = self._shelves[limits] = Shelf(limits)
        return shelf

    def take(self, shelf: Shelf, principal: str) -> WarmSandbox | None:
        """Lease one that served this principal before, else, when nobody waits, the one ready longest."""
        while (sandbox := shelf.pop(principal)) is not None:
            if sandbox.is_alive:
                self._lease(sandbox, principal)
                asyncio.get_running_loop().call_later(_RUN_FIRST_S, self.refill)
                return sandbox
            self.discard(sandbox)
        return None

    def _lease(self, sandbox: WarmSandbox, principal: str) -> None:
        sandbox.lease(principal)
        self._leased.add(sandbox)

    def discard(self, sandbox: WarmSandbox) -> None:
        """Kill and remove a sandbox that no run will use."""
        self._leased.discard(sandbox)
        self._ending += 1
        self._spawn(self._remove(sandbox, kill=True))

    async def drain(self, refusal: SandboxError) -> None:
        """Refuse those who wait, end everything, and return when nothing is left."""
        self._closed = True
        if self._housekeeper is not None:
            self._housekeeper.cancel()
        for shelf in self._shelves.values():
            while (found := shelf.next_waiter()) is not None:
                found[1].set_exception(refusal)
        for start in self._starts:
            start.cancel()
        if self._starts:
            await asyncio.wait(self._starts)
        for shelf in self._shelves.values():
            while shelf.ready:
                self.discard(shelf.ready.popleft())
            for sandbox in shelf.all_kept:
                self.discard(shelf.forget(sandbox))
        for sandbox in list(self._leased):
            with contextlib.suppress(SandboxError):
                await sandbox.kill()
                await sandbox.close()
        while self._tasks:
            await asyncio.wait(self._tasks)

    # ------------------------------------------------------------ filling

    def refill(self) -> None:
        """Start what is needed, within bounds."""
        if self._closed:
            return
        if self._housekeeper is None:
            self._housekeeper = asyncio.ensure_future(self._keep_house())
        while len(self._starts) < self._limits.starts:
            shelf = self._neediest()
            if shelf is None:
                return
            if self.room <= 0:
                self._make_room(shelf)
                return
            shelf.starting += 1
            task = asyncio.ensure_future(self._start_one(shelf))
            self._starts.add(task)
            task.add_done_callback(self._starts.discard)

    def _neediest(self) -> Shelf | None:
        """Return a shelf with waiting runs, each in turn, else one below its target."""
        for shelf in self._shelves.values():
            if len(shelf.waiting) > shelf.starting:
                self._shelves[shelf.limits] = self._shelves.pop(shelf.limits)
                return shelf
        now_s = time.monotonic()
        for shelf in self._shelves.values():
            held = len(shelf.ready) + shelf.starting
            if held < self._target(shelf, now_s) and shelf.pause_until_s <= now_s and self.room > 0:
                return shelf
        return None

    def _target(self, shelf: Shelf, now_s: float) -> int:
        """Return how many of a kind should be ready: nothing is kept for a kind asked for only once."""
        floor = self._limits.floor
        used = shelf.demand.leases > 1 and shelf.demand.idle_s(now_s) < self._limits.keep_s
        if floor == 0 or not (shelf.kept or used):
            return 0
        return min(max(floor, shelf.demand.wanted(now_s)), self._limits.ceiling)

    def _make_room(self, shelf: Shelf) -> None:
        """Throw away an idle sandbox of no use here; its place is free once it is gone."""
        if self._ending:
            return
        kept = [(each.since_s, other, each) for other in self._shelves.values() for each in other.all_kept]
        if kept:
            _, other, sandbox = min(kept, key=lambda each: each[0])
            self.discard(other.forget(sandbox))
            return
        others = [other for other in self._shelves.values() if other is not shelf and other.ready]
        if others:
            self.discard(max(others, key=lambda other: len(other.ready)).ready.popleft())

    async def _start_one(self, shelf: Shelf) -> None:
        began_s = time.monotonic()
        try:
            sandbox = await self._start_warm(shelf)
        except asyncio.CancelledError:
            shelf.starting -= 1
            raise
        except Exception as error:  # whatever it is, the run that waits must hear of it
            shelf.starting -= 1
            self._note_failure(shelf, error)
        else:
            shelf.starting -= 1
            shelf.failures = 0
            shelf.demand.note_start(time.monotonic() - began_s)
            self._put(shelf, sandbox)
        asyncio.get_running_loop().call_soon(self.refill)

    async def _start_warm(self, shelf: Shelf) -> WarmSandbox:
        limits = shelf.limits
        run_id = f"pool-{secrets.token_hex(6)}"
        if self._reuse is not None:
            return await self._greet(shelf, await self._reuse.start_reusable(limits, run_id=run_id))
        return await self._greet(shelf, await self._backend.start(limits, run_id=run_id))

    async def _greet(self, shelf: Shelf, inner: Sandbox) -> WarmSandbox:
        try:
            hello = await await_hello(
                inner, image_hash=self._backend.image_hash, timeout_s=shelf.limits.start_timeout_s
            )
        except BaseException:
            await asyncio.shield(_end(inner))
            raise
        return WarmSandbox(
            inner,
            hello,
            stirred=lambda each: self._lose(shelf, each),
            returned=lambda each: self._return(shelf, each),
        )

    def _put(self, shelf: Shelf, sandbox: WarmSandbox) -> None:
        found = shelf.next_waiter()
        if found is not None:
            principal, waiter = found
            self._lease(sandbox, principal)
            waiter.set_result(sandbox)
        elif self._closed:
            self.discard(sandbox)
        else:
            shelf.ready.append(sandbox)

    def _note_failure(self, shelf: Shelf, error: Exception) -> None:
        """Tell one waiting run, and leave the backend alone for a while where nobody waits."""
        shelf.failures += 1
        pause_s = min(_FIRST_PAUSE_S * 2 ** min(shelf.failures - 1, 10), _LONGEST_PAUSE_S)
        shelf.pause_until_s = time.monotonic() + pause_s
        if shelf.failures == 1 and isinstance(error, SandboxError) and error.code == "guest_not_started":
            return  # one guest died young; the run that waits gets the next one
        found = shelf.next_waiter()
        if found is not None:
            found[1].set_exception(error)

    # ------------------------------------------------------------ keeping house

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            now_s = time.monotonic()
            for shelf in list(self._shelves.values()):
                while len(shelf.ready) > self._target(shelf, now_s):
                    self.discard(shelf.ready.popleft())
                for sandbox in shelf.all_kept:
                    if sandbox.since_s < now_s - self._limits.keep_s:
                        self.discard(shelf.forget(sandbox))
                idle = not (shelf.ready or shelf.kept_for or shelf.starting or shelf.waiting or shelf.kept)
                if idle and shelf.demand.idle_s(now_s) > self._limits.keep_s:
                    del self._shelves[shelf.limits]
            self.refill()

    def _lose(self, shelf: Shelf, sandbox: WarmSandbox) -> None:
        """An idle guest died or spoke: replace it."""
        if sandbox in shelf.ready:
            shelf.ready.remove(sandbox)
            self.discard(sandbox)
            self.refill()
        elif sandbox in shelf.all_kept:
            self.discard(shelf.forget(sandbox))

    def _return(self, shelf: Shelf, sandbox: WarmSandbox) -> None:
        """A run is over: remove its sandbox, or have it ready for the same principal, off its path."""
        self._leased.discard(sandbox)
        self._ending += 1
        inner = sandbox.inner
        if (
            isinstance(inner, ChildSandbox)
            and inner.may_be_followed
            and sandbox.principal
            and not self._closed
        ):
            self._spawn(self._renew(shelf, inner.nursery, sandbox.principal))
        else:
            self._spawn(self._remove(sandbox, kill=False))

    async def _renew(self, shelf: Shelf, nursery: Nursery, principal: str) -> None:
        """Get the next child of a container, and keep it for its principal; else remove the container."""
        try:
            try:
                sandbox = await self._greet(shelf, await nursery.bear())
            except SandboxError:
                with contextlib.suppress(SandboxError):
                    await nursery.container.kill()
                    await nursery.remove()
                return
            sandbox.principal = principal
            self._keep(shelf, sandbox)
        finally:
            self._ending -= 1
            self.refill()

    def _keep(self, shelf: Shelf, sandbox: WarmSandbox) -> None:
        while (waiter := shelf.waiting.pop_of(sandbox.principal)) is not None:
            if not waiter.done():
                self._lease(sandbox, sandbox.principal)
                waiter.set_result(sandbox)
                return
        if self._closed:
            self.discard(sandbox)
        else:
            shelf.keep(sandbox)

    async def _remove(self, sandbox: WarmSandbox, *, kill: bool) -> None:
        try:
            # What the engine does not remove now, the sweep of the next start does.
            with contextlib.suppress(SandboxError):
                if kill:
                    await sandbox.kill()
                await sandbox.remove()
        finally:
            self._ending -= 1
            self.refill()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _end(sandbox: Sandbox) -> None:
    with contextlib.suppress(SandboxError):
        await sandbox.kill()
        await sandbox.close()
