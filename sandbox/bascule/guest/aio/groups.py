"""TaskGroup of the asyncio facade: nobody is left behind, and every failure is reported."""

from __future__ import annotations

import sys
from types import CoroutineType

from bascule.guest.futures import CancelledError, Future, current_loop
from bascule.guest.tasks import Task, create_task

_CLOSES_REFUSED = sys.version_info >= (3, 13)
"""Whether the group of this Python closes a coroutine it does not take."""


def _refusal(coro: object, message: str) -> RuntimeError:
    if _CLOSES_REFUSED and isinstance(coro, CoroutineType):  # pragma: no cover - from Python 3.13 on
        coro.close()
    return RuntimeError(message)


class TaskGroup:
    """``async with TaskGroup() as group:`` waits for its tasks; the first failure cancels the others."""

    __slots__ = ("_aborting", "_body", "_errors", "_exiting", "_tasks", "_waiter", "_was_cancelled")

    def __init__(self) -> None:
        self._body: Task | None = None
        self._tasks: dict[Future, None] = {}
        self._errors: list[Exception] = []
        self._waiter: Future | None = None
        self._aborting = False
        self._exiting = False
        self._was_cancelled = False

    def __repr__(self) -> str:
        return f"<TaskGroup tasks={len(self._tasks)} errors={len(self._errors)}>"

    def create_task(self, coro: object, *, name: object = None, context: object = None) -> Task:
        """Start a task that belongs to the group.

        Raises:
            RuntimeError: the group is not running.
        """
        if self._body is None:
            raise _refusal(coro, "TaskGroup has not been entered")
        if self._exiting and not self._tasks:
            raise _refusal(coro, "TaskGroup is finished")
        if self._aborting:
            raise _refusal(coro, "TaskGroup is shutting down")
        task = create_task(coro, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._task_done)
        return task

    async def __aenter__(self) -> TaskGroup:
        if self._body is not None:
            raise RuntimeError("TaskGroup has already been entered")
        self._body = current_loop().current_task
        assert self._body is not None, "only tasks step coroutines"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: object
    ) -> None:
        assert self._body is not None
        body = self._body
        self._exiting = True
        cancelled: BaseException | None = None
        if isinstance(error, CancelledError):
            cancelled = error
        if self._was_cancelled and body.uncancel() == 0:
            cancelled = None
        if kind is not None and not self._aborting:
            self._abort()
        while self._tasks:
            self._waiter = Future()
            try:
                await self._waiter
            except CancelledError as outside:
                if not self._aborting:
                    cancelled = outside
                    self._abort()
            self._waiter = None
        if cancelled is not None and not self._errors:
            raise cancelled
        if isinstance(error, Exception):
            self._errors.append(error)
        if self._errors:
            raise ExceptionGroup("unhandled errors in a TaskGroup", self._errors) from None

    def _abort(self) -> None:
        self._aborting = True
        for task in list(self._tasks):
            if not task.done():
                task.cancel()

    def _task_done(self, task: Future) -> None:
        self._tasks.pop(task, None)
        if self._waiter is not None and not self._tasks and not self._waiter.done():
            self._waiter.set_result(True)
        if task.cancelled():
            return
        error = task.exception()
        if not isinstance(error, Exception):
            return
        self._errors.append(error)
        body = self._body
        assert body is not None
        if body.done() or self._aborting or self._was_cancelled:
            return
        self._abort()
        # Inside the block the body is cancelled too; while it only waits, the waiter ends by itself.
        self._was_cancelled = True
        body.cancel()
