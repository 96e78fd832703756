"""The runs this process works on: submitted here, or taken up when they can go on, left tidily at the end.

A submission is answered as soon as its run is in the store; from there on the store is the truth. When the
process ends, runs are left suspended, and the next process goes on with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from bascule.bridge.executor import Executor, new_run_id
from bascule.bridge.result import Result
from bascule.bridge.session import Session
from bascule.bridge.store import RunRecord, Store
from bascule.bridge.waking import due_runs
from bascule.console.database import Database
from bascule.console.principal import Principal
from bascule.console.problems import Problem
from bascule.wire import BasculeError

SETTLE_S: Final = 0.2
"""Changes of the store within this time are looked at together."""

LOOK_S: Final = 2.0
"""Longest time until a timer that is due is seen."""

SESSIONS_KEPT: Final = 32
"""Sessions whose guest is kept between scripts; the one unused for longest gives its guest back first."""

SESSION_IDLE_S: Final = 600.0
KEY_KEPT_S: Final = 7 * 86_400.0
"""How long a key of a submission is remembered."""

Note = Callable[[str], None]
"""Called with the id of a run before it begins."""

_FIRST_RETRY_S: Final = 2.0
_LONGEST_RETRY_S: Final = 300.0
_log = logging.getLogger("bascule.console")


@dataclass(slots=True)
class _OpenSession:
    session: Session
    owner: str
    used_at: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Retry:
    wait_s: float
    at: float


class Desk:
    """Works on runs.

    Args:
        at_once: runs worked on at the same time.
        grace_s: seconds for running calls at the end.
    """

    def __init__(self, executor: Executor, database: Database, *, at_once: int, grace_s: float) -> None:
        self._executor = executor
        self._store: Store = executor.store
        self._database = database
        self._at_once = at_once
        self._grace_s = grace_s
        self._tasks: dict[str, asyncio.Task[Result]] = {}
        self._sessions: dict[str, _OpenSession] = {}
        self._retries: dict[str, _Retry] = {}
        self._keys = asyncio.Lock()
        self._closed = False

    @property
    def working(self) -> int:
        """How many runs are being worked on."""
        return len(self._tasks)

    # ------------------------------------------------------------ submissions

    async def submit(
        self,
        principal: Principal,
        script: str,
        *,
        seed: int | None,
        session: str | None,
        key: str | None,
        body_sha256: str,
    ) -> tuple[str, bool]:
        """Begin a run and return its id once it is in the store, and whether it was begun by this request.

        Args:
            key: of an earlier submission of the same principal: then its run is returned.

        Raises:
            Problem: the key was used for another body; the session is unknown or busy; too much is running.
            BasculeError: there is no sandbox, or the store cannot be written.
        """
        if key is None:
            return await self._begin(principal, script, seed, session), True
        async with self._keys:
            rows = self._database.read(
                "SELECT run_id, body_sha256 FROM submissions WHERE name = ? AND key = ?", principal.name, key
            )
            if rows and rows[0][1] != body_sha256:
                raise Problem(422, "key_reused", "this Idempotency-Key was used for another submission")
            if rows and self._store.run(rows[0][0]) is not None:
                return rows[0][0], False
            run_id = await self._begin(principal, script, seed, session, note=lambda run_id: self._remember(
                principal.name, key, run_id, body_sha256
            ))  # fmt: skip
            return run_id, True

    def _remember(self, name: str, key: str, run_id: str, body_sha256: str) -> None:
        now = time.time()
        self._database.write("DELETE FROM submissions WHERE at < ?", now - KEY_KEPT_S)
        self._database.write(
            "INSERT OR REPLACE INTO submissions VALUES (?, ?, ?, ?, ?)", name, key, run_id, body_sha256, now
        )

    async def _begin(
        self,
        principal: Principal,
        script: str,
        seed: int | None,
        session: str | None,
        note: Note | None = None,
    ) -> str:
        if self._closed:
            raise Problem(
                503, "closing", "the console is closing; send it again", headers={"Retry-After": "10"}
            )
        if len(self._tasks) >= self._at_once:
            raise Problem(
                503, "too_many_runs", "too many runs are being worked on", headers={"Retry-After": "5"}
            )
        if session is not None:
            return await self._begin_in_session(principal, script, session, note)
        run_id = new_run_id()
        if note is not None:
            note(run_id)
        running = self._executor.run(script, seed=seed, wait=False, user=principal.user, run_id=run_id)
        await self._until_stored(run_id, self._work_on(run_id, running))
        return run_id

    async def _begin_in_session(
        self, principal: Principal, script: str, session_id: str, note: Note | None
    ) -> str:
        opened = self.find_session(principal, session_id)
        async with opened.lock:
            rows = self._store.runs(session=session_id)
            if rows and rows[-1].status != "finished":
                raise Problem(409, "run_busy", f"{rows[-1].run_id} of this session is not finished")
            run_id = f"{session_id}.{rows[-1].ordinal + 1 if rows else 1}"
            if run_id in self._tasks:
                raise Problem(409, "run_busy", f"{run_id} of this session is not finished")
            if note is not None:
                note(run_id)
            opened.used_at = time.monotonic()
            await opened.session.__aenter__()
            await self._until_stored(run_id, self._work_on(run_id, opened.session.run(script, wait=False)))
        return run_id

    async def _until_stored(self, run_id: str, task: asyncio.Task[Result]) -> None:
        while self._store.run(run_id) is None:
            await asyncio.wait((task,), timeout=0.01)
            if task.done():
                await asyncio.shield(task)  # raises why there is no run
                return

    def _work_on(self, run_id: str, running: Awaitable[Result]) -> asyncio.Task[Result]:
        async def work() -> Result:
            return await running

        task = asyncio.create_task(work(), name=run_id)
        self._tasks[run_id] = task
        task.add_done_callback(lambda done: self._note_end(run_id, done))
        return task

    def _note_end(self, run_id: str, task: asyncio.Task[Result]) -> None:
        self._tasks.pop(run_id, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._retries.pop(run_id, None)
            return
        last = self._retries.get(run_id)
        wait_s = _FIRST_RETRY_S if last is None else min(last.wait_s * 2, _LONGEST_RETRY_S)
        self._retries[run_id] = _Retry(wait_s, time.monotonic() + wait_s)
        if isinstance(error, BasculeError):
            _log.error("%s stopped: %s", run_id, error)
        else:
            _log.error("%s stopped", run_id, exc_info=error)

    # ------------------------------------------------------------ sessions

    def open_session(self, principal: Principal) -> str:
        """Begin a session for somebody and return its id."""
        session = self._executor.session(user=principal.user)
        self._sessions[session.id] = _OpenSession(session, principal.name, time.monotonic())
        return session.id

    def find_session(self, principal: Principal, session_id: str) -> _OpenSession:
        """Return a session of somebody, one of an earlier process included.

        Raises:
            Problem: 404.
        """
        opened = self._sessions.get(session_id)
        if opened is None:
            rows = self._store.runs(session=session_id)
            if rows and rows[0].user is not None:
                session = self._executor.session(session_id, user=principal.user)
                opened = _OpenSession(session, rows[0].user, time.monotonic())
        if opened is None or not principal.may_see(opened.owner):
            raise Problem(404, "session_not_found", f"there is no session {session_id}")
        self._sessions[session_id] = opened
        return opened

    async def close_session(self, principal: Principal, session_id: str) -> None:
        """Give a session's guest back; its runs stay."""
        opened = self.find_session(principal, session_id)
        await opened.session.close()
        self._sessions.pop(session_id, None)

    async def _tidy_sessions(self) -> None:
        now = time.monotonic()
        idle = sorted(
            (opened.used_at, session_id)
            for session_id, opened in self._sessions.items()
            if not any(run_id.startswith(f"{session_id}.") for run_id in self._tasks)
        )
        surplus = len(self._sessions) - SESSIONS_KEPT
        for number, (used_at, session_id) in enumerate(idle):
            if number < surplus or now - used_at > SESSION_IDLE_S:
                await self._sessions.pop(session_id).session.close()

    # ------------------------------------------------------------ going on

    async def carry_on(self) -> None:
        """Take up whatever can go on, until cancelled."""
        while True:
            await self._tidy_sessions()
            try:
                due = await asyncio.to_thread(due_runs, self._store)
                for run_id in due:
                    await self._take_up(run_id)
            except BasculeError as error:
                _log.error("runs cannot be taken up: %s", error)
            await self._store.changed(LOOK_S)
            await asyncio.sleep(SETTLE_S)

    async def resume(self, run_id: str) -> bool:
        """Take a run up now; False when it is being worked on here."""
        self._retries.pop(run_id, None)
        return await self._take_up(run_id)

    async def _take_up(self, run_id: str) -> bool:
        retry = self._retries.get(run_id)
        if run_id in self._tasks or (retry is not None and retry.at > time.monotonic()):
            return False
        row = self._store.run(run_id)
        if row is None or row.status == "finished" or len(self._tasks) >= self._at_once or self._closed:
            return False
        if row.cancel_requested:
            await self._executor.cancel(run_id)
            return True
        self._work_on(run_id, self._resume(row))
        return True

    async def _resume(self, row: RunRecord) -> Result:
        opened = None if row.session is None else self._sessions.get(row.session)
        if opened is None:
            return await self._executor.resume(row.run_id, wait=False)
        await opened.session.__aenter__()
        return await opened.session.resume(wait=False)

    async def close(self) -> None:
        """Leave every run suspended; calls that are running get a while to end."""
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._grace_s)
        for opened in self._sessions.values():
            with contextlib.suppress(BasculeError):
                await opened.session.close()
