"""How a script starts the loop: ``asyncio.run`` and the older idioms. The loop itself stays out of reach.

``get_event_loop()`` gives an object with the few methods that scripts use; it holds no handler, policy or
debug switch, because there is nothing of that kind to change.
"""

from __future__ import annotations

from collections.abc import Callable

from bascule.guest.ending import RunEnded
from bascule.guest.futures import CancelledError, Future, current_loop
from bascule.guest.loop import Loop
from bascule.guest.pool import call_in_worker
from bascule.guest.tasks import Task, create_task, ensure_future, is_awaitable


def run(main: object, *, debug: object = None) -> object:
    """Run a coroutine to its end and return what it returns.

    Raises:
        RuntimeError: the loop runs already; ``await`` does what is wanted.
        ValueError: ``main`` is not a coroutine.
    """
    loop = current_loop()
    _refuse_nesting(loop, "asyncio.run()")
    if not is_awaitable(main):
        raise ValueError(f"a coroutine was expected, got {main!r}")
    return run_to_end(loop, main)


def run_to_end(loop: Loop, main: object) -> object:
    """Run ``main``, then cancel and finish whatever it left behind."""
    future = main if isinstance(main, Future) else create_task(main)
    try:
        result = loop.run_until_complete(future)
    except RunEnded:
        # Nothing of the script may run any more.
        raise
    except BaseException:
        cancel_rest(loop)
        raise
    cancel_rest(loop)
    return result


def cancel_rest(loop: Loop) -> None:
    """Cancel every task that is left and let each finish."""
    rest = list(loop.tasks)
    for task in rest:
        loop.left_behind(task)
        task.cancel()
    for task in rest:
        if not task.done():
            try:
                loop.run_until_complete(task)
            except (CancelledError, Exception):
                # Its own failure is reported as any failure nobody looked at; the run has its result.
                continue


def _refuse_nesting(loop: Loop, what: str) -> None:
    if loop.threads.current is not None:
        raise RuntimeError(f"{what} cannot be called from a pool's function: call it from the script itself")
    if loop.running:
        raise RuntimeError(f"{what} cannot be called from a running event loop: write `await ...` instead")


class EventLoop:
    """What get_event_loop() gives."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<EventLoop>"

    def run_until_complete(self, future: object) -> object:
        """Run a coroutine or future to its end.

        Raises:
            RuntimeError: the loop runs already; ``await`` does what is wanted.
        """
        loop = current_loop()
        _refuse_nesting(loop, "run_until_complete()")
        return loop.run_until_complete(ensure_future(future))

    def create_task(self, coro: object, *, name: object = None) -> Task:
        """Schedule a coroutine."""
        return create_task(coro, name=name)

    def create_future(self) -> Future:
        """Return a new future."""
        return Future()

    def run_in_executor(self, executor: object, func: Callable[..., object], *args: object) -> Future:
        """Run a plain function beside the tasks; every executor is the same one."""
        return call_in_worker(func, args, {})

    def time(self) -> float:
        """Return the script's clock in seconds."""
        return current_loop().time()

    def is_running(self) -> bool:
        """Return whether the loop runs now."""
        return current_loop().running

    def is_closed(self) -> bool:
        """Return False: it lives as long as the script."""
        return False

    def close(self) -> None:
        """Do nothing: it lives as long as the script."""


def get_event_loop() -> EventLoop:
    """Return the loop's few methods."""
    return EventLoop()


def get_running_loop() -> EventLoop:
    """Return the loop's few methods.

    Raises:
        RuntimeError: the loop does not run.
    """
    if not current_loop().running:
        raise RuntimeError("no running event loop")
    return EventLoop()


def set_event_loop(loop: object) -> None:
    """Do nothing: there is one loop."""


async def to_thread(func: Callable[..., object], /, *args: object, **kwargs: object) -> object:
    """Run a plain function beside the tasks and return what it returns."""
    return await call_in_worker(func, args, kwargs)


def current_task(loop: object = None) -> Task | None:
    """Return the task that runs now.

    Raises:
        RuntimeError: the loop does not run.
    """
    if not current_loop().running:
        raise RuntimeError("no running event loop")
    return current_loop().current_task


def all_tasks(loop: object = None) -> set[Task]:
    """Return the tasks that are not done."""
    return set(current_loop().tasks)
