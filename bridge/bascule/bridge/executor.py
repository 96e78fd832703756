"""The executor: runs scripts against one registry under one policy, each in a fresh sandbox.

What concerns a script is a Result, whatever the script did. What concerns the host (no engine, wrong image,
invalid policy) is a BasculeError, raised; then nothing ran.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Final, Self

from bascule.bridge.approval import Approver, deny_all
from bascule.bridge.blocking import LoopThread
from bascule.bridge.errors import ExecutorClosedError
from bascule.bridge.events import EventChannel, Subscriber
from bascule.bridge.journal import Journal, MemoryStore, Store
from bascule.bridge.lanes import Resources
from bascule.bridge.lifecycle import RunOrder, Surroundings, run_script, sandbox_limits
from bascule.bridge.limits import Limits
from bascule.bridge.policy import Policy
from bascule.bridge.result import Result
from bascule.bridge.workers import Workers
from bascule.sandbox import Backend, Isolation, PoolLimits, WarmPool, open_backend
from bascule.tools import AnyTool, Registry

TOOL_THREADS: Final = 128
"""Threads for synchronous tools, shared by all runs of an executor."""

POOL_CEILING: Final = 64
"""Sandboxes of one executor alive at once; further runs wait their turn."""

APPROVER_THREADS: Final = 128
"""Threads for a synchronous approver: their own, for people who are waited for must not hold up tools."""

_DEFAULT_LIMITS: Final = Limits()


class Executor:
    """Runs scripts. Use it as ``async with``; or without an event loop as ``with`` and `run_sync`.

    Many scripts may run at once; each gets its own sandbox, journal and budgets.

    Args:
        tools: functions, tools, or a registry; everything a script may call. A plain function becomes a tool
            with effects ``once``.
        policy: rules; None takes the declared effects (reads are allowed, everything else asks).
        approver: who is asked: deny_all, approve_all, ask_in_terminal, or a function (sync or async) from
            ApprovalRequest to Decision.
        isolation: ``container``, or by name the weaker ``process``.
        limits: of each run.
        store: where journals are kept; None keeps the newest ones in memory.
        user: on whose behalf; noted in journals.
        warm: sandboxes kept ready for the next runs. None keeps one from the second run on, a number so many
            from the opening on, 0 starts each when it is needed.
        docker_host, runtime: engine address and container runtime, None for the usual ones.
        backend: a ready backend in place of ``isolation``; it is not closed with the executor. A `WarmPool`
            may be shared by many executors; it serves their users in turn.

    Raises:
        ToolDefinitionError: a tool cannot be offered.
        PolicyError: a rule can never match these tools.
    """

    def __init__(
        self,
        tools: Registry | Iterable[AnyTool | Callable[..., Any]],
        *,
        policy: Policy | None = None,
        approver: Approver = deny_all,
        isolation: Isolation = "container",
        limits: Limits = _DEFAULT_LIMITS,
        store: Store | None = None,
        user: str | None = None,
        warm: int | None = None,
        docker_host: str | None = None,
        runtime: str | None = None,
        backend: Backend | None = None,
    ) -> None:
        self._registry = tools if isinstance(tools, Registry) else Registry(tools)
        self._policy = policy or Policy.default()
        self._policy.check(self._registry)
        self._approver = approver
        self._isolation: Isolation = isolation
        self._limits = limits
        self._store: Store = store or MemoryStore()
        self._user = user
        self._warm = warm
        self._docker_host = docker_host
        self._runtime = runtime
        self._backend = backend.for_principal(user or "") if isinstance(backend, WarmPool) else backend
        self._owns_backend = backend is None
        self._opening: asyncio.Lock | None = None
        self._stubs = self._registry.stubs()
        self._events = EventChannel()
        self._workers = Workers(size=TOOL_THREADS)
        self._approver_workers = Workers(size=APPROVER_THREADS)
        self._resources = Resources()
        self._loop_thread: LoopThread | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def run(self, script: str, *, seed: int | None = None) -> Result:
        """Run one script to its end.

        Args:
            script: the model's text, untouched and untrusted.
            seed: decides random, uuid4 and secrets in the script; None draws one.

        Raises:
            SandboxError: there is no sandbox to be had; the message says what to do.
            HandshakeError: the guest is not the program of this installation.
            ExecutorClosedError: the executor was closed.
        """
        backend = await self._open()
        order = RunOrder(
            run_id=f"run-{secrets.token_hex(8)}",
            script=script,
            seed=secrets.randbits(63) if seed is None else seed,
            now=time.time(),
            user=self._user,
        )
        return await run_script(order, self._surroundings(backend))

    async def close(self) -> None:
        """Release engine, threads and events. Runs must have ended."""
        self._closed = True
        backend, self._backend = self._backend, None
        if backend is not None and self._owns_backend:
            await backend.close()
        self._workers.close()
        self._approver_workers.close()
        await asyncio.get_running_loop().run_in_executor(None, self._events.close)

    def __enter__(self) -> Self:
        self._thread().run(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_sync()

    def run_sync(self, script: str, *, seed: int | None = None) -> Result:
        """Run one script and wait for it; see `run`. May be called from several threads."""
        return self._thread().run(self.run(script, seed=seed))

    def close_sync(self) -> None:
        """See `close`."""
        thread, self._loop_thread = self._thread(), None
        thread.run(self.close())
        thread.close()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` with every event, on a thread of its own; return what ends that."""
        return self._events.subscribe(subscriber)

    def journal(self, run_id: str) -> Journal | None:
        """Return the journal of a run, or None when the store does not hold it any more."""
        return self._store.journal(run_id)

    @property
    def registry(self) -> Registry:
        """Everything a script may call."""
        return self._registry

    def _thread(self) -> LoopThread:
        if self._loop_thread is None:
            self._loop_thread = LoopThread()
        return self._loop_thread

    async def _open(self) -> Backend:
        if self._closed:
            raise ExecutorClosedError
        if self._backend is not None:
            return self._backend
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._backend is None:
                backend = await asyncio.to_thread(
                    open_backend, self._isolation, docker_host=self._docker_host, runtime=self._runtime
                )
                await backend.sweep()
                self._backend = self._pooled(backend)
            return self._backend

    def _pooled(self, backend: Backend) -> Backend:
        floor = 1 if self._warm is None else self._warm
        pool = WarmPool(backend, limits=PoolLimits(floor=floor, ceiling=max(POOL_CEILING, floor)))
        if self._warm:
            pool.keep_ready(sandbox_limits(self._limits))
        return pool

    def _surroundings(self, backend: Backend) -> Surroundings:
        return Surroundings(
            backend=backend,
            registry=self._registry,
            stubs=self._stubs,
            policy=self._policy,
            approver=self._approver,
            limits=self._limits,
            store=self._store,
            events=self._events,
            workers=self._workers,
            approver_workers=self._approver_workers,
            resources=self._resources,
        )
