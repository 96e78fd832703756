"""A session: scripts that run one after the other and share their variables.

Each script is a run of its own, with its own journal, receipts and limits; the guest stays between them. When
the guest is gone (the host died, the session was suspended, a script met a limit), the variables are rebuilt:
a fresh guest is led through the journals of the earlier scripts, which starts no tool. Scripts that ended at
a limit or were cancelled are left out of that, and what they did to variables with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from bascule.bridge.carrying import see_through
from bascule.bridge.errors import ResumeError, RunBusy
from bascule.bridge.guest import Guest, start_guest
from bascule.bridge.history import read_history, started_tools
from bascule.bridge.lifecycle import resume_script, run_script
from bascule.bridge.live_run import LiveRun
from bascule.bridge.narrator import Narrator
from bascule.bridge.order import RunOrder, Surroundings, order_of
from bascule.bridge.result import Result
from bascule.bridge.store import RunRecord

if TYPE_CHECKING:
    from bascule.bridge.journal import Journal

REBUILT: Final = ("ok", "failed")
"""Outcomes of scripts whose variables are there for the next one; of a refused one nothing ran."""


class Session:
    """Scripts that share their variables. Made by `Executor.session`; use it as ``async with``.

    Attributes:
        id: names it in the store; with it another process can go on.
    """

    def __init__(
        self,
        session_id: str,
        surround: Callable[[], Awaitable[Surroundings]],
        make_order: Callable[[str, str, int], RunOrder],
    ) -> None:
        self.id = session_id
        self._surround = surround
        self._make_order = make_order
        self._guest: Guest | None = None
        self._one_at_a_time = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._around = await self._surround()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def run(self, script: str, *, wait: bool = True) -> Result:
        """Run the next script; see `Executor.run`.

        Raises:
            RunBusy: ``run_busy``: the script before it is not finished; `resume` it first.
        """
        async with self._one_at_a_time:
            rows = self._rows()
            if rows and rows[-1].status != "finished":
                raise RunBusy(
                    "run_busy", f"{rows[-1].run_id} of this session is not finished; resume it first"
                )
            ordinal = rows[-1].ordinal + 1 if rows else 1
            order = self._make_order(script, self.id, ordinal)
            guest = await self._ready_guest(rows, order.run_id)
            result = await self._keep(guest, run_script(order, self._around, guest))
            return await self._see_through(result, wait=wait)

    async def resume(self, *, wait: bool = True) -> Result:
        """Go on with the last script, when it was suspended or its host died; see `Executor.resume`."""
        async with self._one_at_a_time:
            return await self._see_through(await self._resume(), wait=wait)

    async def close(self) -> None:
        """Give the guest back. The session stays in the store; it can be opened again by its id."""
        guest, self._guest = self._guest, None
        if guest is not None:
            await guest.end(kill=True)

    async def _resume(self) -> Result:
        rows = self._rows()
        if not rows:
            raise ResumeError("nothing_unknown", f"session {self.id} has no script yet")
        last = rows[-1]
        guest = await self._ready_guest(rows[:-1], last.run_id)
        return await self._keep(guest, resume_script(last.run_id, self._around, guest))

    async def _see_through(self, result: Result, *, wait: bool) -> Result:
        if not wait:
            return result
        return await see_through(self._around.store, result, lambda _: self._resume())

    async def _keep(self, guest: Guest, running: Awaitable[Result]) -> Result:
        try:
            result = await running
        except BaseException:
            self._guest = None
            await guest.end(kill=True)
            raise
        if guest.closed:
            self._guest = None
        return result

    async def _ready_guest(self, rows: list[RunRecord], run_id: str) -> Guest:
        if self._guest is None:
            if rows and rows[0].ordinal != 1:
                raise ResumeError("journal_pruned", f"the first scripts of session {self.id} are gone")
            self._guest = await start_guest(self._around.backend, self._around.limits, run_id)
            self._guest.labels |= self._read_before(row for row in rows if row.outcome not in REBUILT)
            try:
                for row in rows:
                    if row.outcome in REBUILT:
                        await self._rebuild(row, self._guest)
            except BaseException:
                await self.close()
                raise
        return self._guest

    def _read_before(self, rows: Iterable[RunRecord]) -> frozenset[str]:
        """Return the labels of what scripts read that are not led through again: people saw their output."""
        labels: set[str] = set()
        for row in rows:
            journal: Journal | None = self._around.store.journal(row.run_id)
            for name in () if journal is None else started_tools(journal.entries):
                tool = self._around.registry.get(name)
                labels |= frozenset() if tool is None else tool.labels
        return frozenset(labels)

    async def _rebuild(self, row: RunRecord, guest: Guest) -> None:
        """Lead the guest through one earlier script."""
        journal: Journal | None = self._around.store.journal(row.run_id)
        history = None if journal is None else read_history(row.run_id, journal.entries)
        if journal is None or history is None:
            raise ResumeError(
                "journal_pruned", f"{row.run_id} of session {self.id} is no longer in the store"
            )
        order = order_of(row.run_id, history)
        if order.image != self._around.backend.image_hash:
            raise ResumeError("image_gone", f"session {self.id} was begun on guest image {order.image[:12]}")
        run = LiveRun(order, self._around, guest, journal, Narrator(row.run_id, self._around.events), history)
        try:
            result = await run.to_end()
        finally:
            await run.clean_up()
        if result.status != row.outcome or guest.closed:
            said = result.error.message if result.error is not None else result.status
            raise ResumeError(
                "session_diverged", f"{row.run_id} of session {self.id} cannot be rebuilt: {said}"
            )

    def _rows(self) -> list[RunRecord]:
        return self._around.store.runs(session=self.id)
