"""A coroutine that the loop drives. Decides when it is stepped; trusts nothing that it yields or raises.

Semantics are those of ``asyncio.Task``: one step each time the future it waits for is done, cancellation as
an exception thrown into it at its next step.
"""

from __future__ import annotations

from collections.abc import Awaitable
from types import CoroutineType, GeneratorType
from typing import Protocol, cast

from bascule.guest.calls import ToolCall
from bascule.guest.futures import CancelledError, Future
from bascule.guest.position import awaiting_line, calling_line

_MAX_FAILED = 1_000
"""Failed tasks remembered for the notes at the end."""


class Stepped(Protocol):
    """What a task drives: coroutines, and generators that yield futures."""

    def send(self, value: None, /) -> object: ...

    def throw(self, error: BaseException, /) -> object: ...

    def close(self) -> None: ...


class Task(Future):
    """A coroutine at work."""

    __slots__ = ("_cancel_requests", "_coroutine", "_line", "_must_cancel", "_name", "_waits_for")

    def __init__(self, coro: Stepped, *, name: object = None) -> None:
        super().__init__()
        loop = self._loop
        self._coroutine = coro
        self._name = loop.next_task_name() if name is None else str(name)
        self._line = calling_line()
        self._must_cancel = False
        self._cancel_requests = 0
        self._waits_for: Future | None = None
        loop.tasks[self] = None
        loop.call_soon(self._step)

    def _describe(self) -> str:
        state = super()._describe()
        if self._state == "PENDING" and self._must_cancel:
            state = "cancelling"
        return f"{state} name={self._name!r} coro=<{self.coroutine_name()}()>"

    def coroutine_name(self) -> str:
        """Return the name of the function behind the coroutine."""
        return str(getattr(self._coroutine, "__name__", type(self._coroutine).__name__))

    def line(self) -> int | None:
        """Return the line at which the task waits, or the one that created it."""
        return awaiting_line(self._coroutine) or self._line

    def created_line(self) -> int | None:
        """Return the line that created the task."""
        return self._line

    def get_name(self) -> str:
        """Return the name given at creation, ``Task-N`` by default."""
        return self._name

    def set_name(self, value: object) -> None:
        """Change the name."""
        self._name = str(value)

    def set_result(self, result: object) -> None:
        """Refuse: only the coroutine decides the result.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("Task does not support set_result operation")

    def set_exception(self, exception: BaseException | type[BaseException]) -> None:
        """Refuse: only the coroutine decides the outcome.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("Task does not support set_exception operation")

    def cancel(self, msg: str | None = None) -> bool:
        """Ask for a CancelledError inside the task at its next step; False when it is done already."""
        if self._state != "PENDING":
            return False
        self._cancel_requests += 1
        if self._waits_for is not None and self._waits_for.cancel(msg):
            return True
        self._must_cancel = True
        self._message = msg
        return True

    def cancelling(self) -> int:
        """Return how many cancellations were asked for and not taken back."""
        return self._cancel_requests

    def uncancel(self) -> int:
        """Take one request for cancellation back; return how many are left."""
        if self._cancel_requests > 0:
            self._cancel_requests -= 1
            if self._cancel_requests == 0:
                self._must_cancel = False
        return self._cancel_requests

    def _step(self, error: BaseException | None = None) -> None:
        if self._must_cancel:
            if not isinstance(error, CancelledError):
                error = self.cancellation()
            self._must_cancel = False
        self._waits_for = None
        loop = self._loop
        outer, loop.current_task = loop.current_task, self
        try:
            yielded = self._coroutine.send(None) if error is None else self._coroutine.throw(error)
        except StopIteration as stop:
            if self._must_cancel:
                self._must_cancel = False
                self._end(cancelled=True)
            else:
                self._result = stop.value
                self._end()
        except CancelledError as cancelled:
            self._message = str(cancelled.args[0]) if cancelled.args else None
            self._end(cancelled=True)
        except Exception as failure:
            self._fail(failure)
        except BaseException as failure:
            self._fail(failure)
            raise
        else:
            self._wait_for(yielded)
        finally:
            loop.current_task = outer

    def _fail(self, failure: BaseException) -> None:
        self._exception = failure
        self._retrieved = False
        if len(self._loop.failed) < _MAX_FAILED:
            self._loop.failed.append(self)
        self._end()

    def unseen(self) -> bool:
        """Return whether it failed and nobody asked for the outcome."""
        return not self._retrieved

    def _end(self, *, cancelled: bool = False) -> None:
        self._loop.tasks.pop(self, None)
        self._finish("CANCELLED" if cancelled else "FINISHED")

    def _wait_for(self, yielded: object) -> None:
        if yielded is None:
            self._loop.call_soon(self._step)
        elif yielded is self:
            self._loop.call_soon(self._step, RuntimeError(f"Task cannot await on itself: {self!r}"))
        else:
            # Scripts define no __await__: nothing else is ever yielded.
            assert isinstance(yielded, Future)
            self._waits_for = yielded
            yielded.add_done_callback(self._wake)
            if self._must_cancel and yielded.cancel(self._message):
                self._must_cancel = False

    def _wake(self, future: Future) -> None:
        # Reading the outcome marks it as seen; the coroutine gets it from the future itself.
        if future._exception is not None:
            future._retrieved = True
            self._step(future._exception)
        elif future._state == "CANCELLED":
            self._step(future.cancellation())
        else:
            self._step()


def create_task(coro: object, *, name: object = None) -> Task:
    """Schedule a coroutine or a tool call.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(coro, CoroutineType):
        return Task(cast("Stepped", coro), name=name)
    if isinstance(coro, Future) or not is_awaitable(coro):
        raise TypeError(f"a coroutine was expected, got {coro!r}")
    return Task(_drive(coro), name=name)


def ensure_future(awaitable: object) -> Future:
    """Return a future for anything that can be awaited; futures and tasks are returned as they are.

    Raises:
        TypeError: it cannot be awaited.
    """
    if isinstance(awaitable, Future):
        return awaitable
    if not is_awaitable(awaitable):
        raise TypeError("An asyncio.Future, a coroutine or an awaitable is required")
    return create_task(awaitable)


def is_awaitable(value: object) -> bool:
    """Return whether ``await value`` can work."""
    return type(value) is CoroutineType or hasattr(type(value), "__await__")


def _drive(awaitable: object) -> Stepped:
    if not isinstance(awaitable, ToolCall):
        return _wrap(cast("Awaitable[object]", awaitable))
    steps = cast("GeneratorType[Future, None, object]", awaitable.__await__())
    steps.__name__ = awaitable.tool_name
    return steps


async def _wrap(awaitable: Awaitable[object]) -> object:
    return await awaitable
