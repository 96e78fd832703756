"""The executor: runs scripts against one registry under one policy, each in a fresh sandbox.

What concerns a script is a Result, whatever the script did. What concerns the host (no engine, wrong image,
invalid policy) is a BasculeError, raised; then nothing ran.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from bascule.bridge.approval import Approver, deny_all
from bascule.bridge.blocking import LoopThread
from bascule.bridge.carrying import resume_all, see_through
from bascule.bridge.errors import ExecutorClosedError
from bascule.bridge.events import Subscriber
from bascule.bridge.facilities import Facilities
from bascule.bridge.history import CommandLine
from bascule.bridge.lifecycle import rehearse_script, resume_script, run_script
from bascule.bridge.limits import Limits
from bascule.bridge.matching import User
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.offering import Offering
from bascule.bridge.operations import Operations
from bascule.bridge.order import RunOrder, Surroundings
from bascule.bridge.policy import Policy
from bascule.bridge.rehearsal import Rehearsal
from bascule.bridge.result import Result
from bascule.bridge.session import Session
from bascule.bridge.store import Store
from bascule.bridge.supply import Supply, share
from bascule.sandbox import Backend, Isolation, Reuse
from bascule.tools import Registry
from bascule.tools.source import AnySource

T = TypeVar("T")

_DEFAULT_LIMITS: Final = Limits()


class Executor(Operations):
    """Runs scripts. Use it as ``async with``; or without an event loop as ``with`` and `run_sync`.

    Many scripts may run at once; each gets its own sandbox, journal and budgets.

    Args:
        tools: functions, tools, sources of tools, or a registry; everything a script may call. A plain
            function becomes a tool with effects ``once``. Sources are opened and closed with the executor.
        policy: rules; None takes the declared effects (reads are allowed, everything else asks).
        approver: who is asked: deny_all, approve_all, ask_in_terminal, or a function (sync or async) from
            ApprovalRequest to Decision.
        isolation: ``container``, or by name the weaker ``process``.
        limits: of each run.
        store: where journals are kept; None keeps the newest ones in memory.
        user: on whose behalf: a name, or a User with the groups the host vouches for.
        secrets: values that never reach guest, model, log or journal: results and messages of tools are
            cleaned of them, calls that carry one are refused. Those with a name (a mapping) are given to
            tools that declare it.
        secret_patterns: regular expressions of further ones.
        warm: sandboxes kept ready for the next runs. None keeps one from the second run on, a number so many
            from the opening on, 0 starts each when it is needed.
        reuse: ``principal`` lets a container serve further runs of this ``user``, each in a clean child that
            is forked for it: many times faster, and weaker as docs/sandboxes.md says.
        docker_host, runtime: engine address and container runtime, None for the usual ones.
        backend: a ready backend in place of ``isolation``; it is not closed with the executor. A `WarmPool`
            may be shared by many executors; it serves their users in turn.

    Raises:
        ToolDefinitionError: a tool cannot be offered.
        PolicyError: a rule can never match these tools. With sources this is found when they are opened.
    """

    def __init__(
        self,
        tools: Registry | Iterable[AnySource],
        *,
        policy: Policy | None = None,
        approver: Approver = deny_all,
        isolation: Isolation = "container",
        limits: Limits = _DEFAULT_LIMITS,
        store: Store | None = None,
        user: str | User | None = None,
        secrets: Mapping[str, str] | Iterable[str] = (),
        secret_patterns: Iterable[str] = (),
        warm: int | None = None,
        reuse: Reuse = "never",
        docker_host: str | None = None,
        runtime: str | None = None,
        backend: Backend | None = None,
    ) -> None:
        offering = Offering(
            tools, policy=policy or Policy.default(), secrets=secrets, secret_patterns=secret_patterns
        )
        super().__init__(store or MemoryStore(), offering)
        self._approver = approver
        self._limits = limits
        self._user = User(name=user) if isinstance(user, str) else user
        self._supply = Supply(
            backend,
            isolation=isolation,
            limits=limits,
            warm=warm,
            reuse=reuse,
            principal="" if self._user is None else self._user.name,
            docker_host=docker_host,
            runtime=runtime,
        )
        self._opening: asyncio.Lock | None = None
        self._facilities = Facilities()
        self._loop_thread: LoopThread | None = None
        self._closed = False

    # ------------------------------------------------------------ with an event loop

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self._offering.close()  # the sandbox is what failed
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def run(
        self,
        script: str,
        *,
        seed: int | None = None,
        wait: bool = True,
        user: User | None = None,
        run_id: str | None = None,
        only: Collection[str] | None = None,
        labels: Collection[str] = (),
        command: CommandLine | None = None,
    ) -> Result:
        """Run one script to its end.

        Args:
            script: the model's text, untouched and untrusted.
            seed: decides random, uuid4 and secrets in the script; None draws one.
            user: on whose behalf, where one executor serves many; None takes the executor's own.
            run_id: a name of its own in the store (see `new_run_id`); None draws one.
            wait: what to do when the run only waits for people or long timers and has given its sandbox back:
                True waits on, without a sandbox, and resumes it; False returns a Result with status
                ``suspended``, to be resumed by its ``run_id``, from any process on the same store.
            only: names of the tools this script may call; None for all. The others do not exist for it.
            labels: labels the run carries from its beginning, for the policy's ``run_labels``: what the
                author of the script has read before, in earlier runs.
            command: how it is begun, where that is on a command line; kept for whoever resumes it.

        Raises:
            SandboxError: there is no sandbox to be had; the message says what to do.
            HandshakeError: the guest is not the program of this installation.
            ExecutorClosedError: the executor was closed.
            StoreError, LeaseLost: the run cannot be recorded (any more); no further tool was started. Once
                the store can be written, `resume` goes on.
        """
        backend = share(await self._open(), user)
        stubs = (
            self._offering.stubs
            if only is None
            else tuple(each for each in self._offering.stubs if each.name in only)
        )
        order = replace(
            self._order(script, seed, backend, user),
            stubs=stubs,
            labels=frozenset(labels),
            command=command,
        )
        if run_id is not None:
            order = replace(order, run_id=run_id)
        return await self._see_through(await run_script(order, self._surroundings(backend)), wait=wait)

    async def rehearse(self, script: str, *, seed: int | None = None) -> Rehearsal:
        """Find out what effects a script wants, before anything happens.

        Reads that policy allows are made, and counted by budgets and rates as in a run. Every other call is
        withheld, and using its result ends the rehearsal there. Of it all only one audit entry is kept.

        Raises:
            SandboxError, HandshakeError, ExecutorClosedError: see `run`.
        """
        backend = await self._open()
        order = replace(self._order(script, seed, backend, None), rehearsal=True)
        return await rehearse_script(order, self._surroundings(backend))

    async def resume(self, run_id: str, *, wait: bool = True) -> Result:
        """Go on with a run that was suspended, or whose host died; in any process, on the same guest image.

        Args:
            run_id: as in its Result or in ``bascule runs list``.
            wait: see `run`. With False a run that still only waits is suspended again.

        Raises:
            RunNotFound: the store does not hold it.
            RunBusy: a live worker has it, or it is finished.
            ResumeError: it was begun on another image, or its journal cannot be used.
            SandboxError, HandshakeError, StoreError, LeaseLost: see `run`.
        """
        backend = await self._open()
        row = self._store.run(run_id)
        if row is not None and row.session is not None:
            async with self.session(row.session) as session:
                return await session.resume(wait=wait)
        result = await resume_script(run_id, self._surroundings(backend))
        return await self._see_through(result, wait=wait)

    def session(self, session_id: str | None = None, *, user: User | None = None) -> Session:
        """Return a session: scripts that share their variables. Use it as ``async with``.

        Args:
            session_id: of a session in the store that is to go on; None begins a new one.
            user: on whose behalf, see `run`.
        """

        async def surround() -> Surroundings:
            return self._surroundings(await self._open())

        def make_order(script: str, session: str, ordinal: int) -> RunOrder:
            assert self._supply.backend is not None
            order = self._order(script, None, self._supply.backend, user)
            return replace(order, run_id=f"{session}.{ordinal}", session=session, ordinal=ordinal)

        return Session(session_id or f"session-{secrets.token_hex(8)}", surround, make_order)

    async def resume_due(self) -> list[Result]:
        """Go on, at once, with every run of the store that can go on and that nobody works on.

        Call it after a restart, and whenever `Store.changed` returns, to have decisions made elsewhere carry
        suspended runs on. A run that another worker takes first, or that cannot go on here, is left alone.
        """
        return await resume_all(self._store, lambda run_id: self.resume(run_id, wait=False))

    async def _see_through(self, result: Result, *, wait: bool) -> Result:
        if not wait:
            return result
        return await see_through(self._store, result, lambda run_id: self.resume(run_id, wait=False))

    async def close(self) -> None:
        """Release engine, threads and events. Runs must have ended."""
        self._closed = True
        await self._supply.close()
        await self._offering.close()
        await self._facilities.close()

    # ------------------------------------------------------------ without one

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

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run anything that uses this executor on its own event loop, and wait for it."""
        return self._thread().run(work)

    def close_sync(self) -> None:
        """See `close`."""
        thread, self._loop_thread = self._thread(), None
        thread.run(self.close())
        thread.close()

    def _thread(self) -> LoopThread:
        if self._loop_thread is None:
            self._loop_thread = LoopThread()
        return self._loop_thread

    # ------------------------------------------------------------ around runs

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` with every event, on a thread of its own; return what ends that."""
        return self._facilities.events.subscribe(subscriber)

    @property
    def user(self) -> User | None:
        """On whose behalf its runs are made."""
        return self._user

    async def _open(self) -> Backend:
        if self._closed:
            raise ExecutorClosedError
        if self._supply.backend is not None and self._offering.complete:
            return self._supply.backend
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            await self._offering.open()
            return await self._supply.open()

    def _order(self, script: str, seed: int | None, backend: Backend, user: User | None) -> RunOrder:
        user = user or self._user
        return RunOrder(
            run_id=new_run_id(),
            script=script,
            seed=secrets.randbits(63) if seed is None else seed,
            now=time.time(),
            user=None if user is None else user.name,
            groups=frozenset() if user is None else user.groups,
            tenant=None if user is None else user.tenant,
            image=backend.image_hash,
            stubs=self._offering.stubs,
            guest_limits=self._limits.for_guest(),
        )

    def _surroundings(self, backend: Backend) -> Surroundings:
        return self._facilities.surroundings(
            backend, self._offering, store=self._store, approver=self._approver, limits=self._limits
        )


def new_run_id() -> str:
    """Return a random name for a run."""
    return f"run-{secrets.token_hex(8)}"
