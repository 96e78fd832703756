"""The asyncio facade: the names scripts use, on the guest's own deterministic loop. Never the real module."""

from __future__ import annotations

import types

from bascule.guest.aio import groups, locks, queues, runner, timeouts, waiting
from bascule.guest.calls import Tool, is_coroutine_like
from bascule.guest.facade import Facade, FacadeContext, Rows, fresh_functions
from bascule.guest.futures import CancelledError, Future, HostFuture, InvalidStateError, current_loop
from bascule.guest.rules.attributes import names
from bascule.guest.tasks import Task, create_task, ensure_future

__all__ = ["ROWS", "build_asyncio"]

_CO_COROUTINE = 0x80
_FUTURE = names(
    "add_done_callback cancel cancelled done exception remove_done_callback result set_exception set_result"
)
_LOCK = names("acquire locked release")
_QUEUE = names("empty full get get_nowait join maxsize put put_nowait qsize shutdown task_done")
_ERROR = names("add_note args")

ROWS = Rows(
    instances={
        Future: _FUTURE,
        HostFuture: _FUTURE,
        waiting.Gathering: _FUTURE,
        Task: _FUTURE | names("cancelling get_name set_name uncancel"),
        locks.Lock: _LOCK,
        locks.Event: names("clear is_set set wait"),
        locks.Condition: _LOCK | names("notify notify_all wait wait_for"),
        locks.Semaphore: _LOCK,
        locks.BoundedSemaphore: _LOCK,
        locks.Barrier: names("n_waiting parties wait"),
        queues.Queue: _QUEUE,
        queues.LifoQueue: _QUEUE,
        queues.PriorityQueue: _QUEUE,
        groups.TaskGroup: names("create_task"),
        timeouts.Timeout: names("expired reschedule when"),
        waiting.AsCompleted: names(""),
        # No handler, no debug switch, no policy: see int-async_signal-08.
        runner.EventLoop: names(
            "close create_future create_task is_closed is_running run_in_executor run_until_complete time"
        ),
        CancelledError: _ERROR,
        InvalidStateError: _ERROR,
        queues.QueueEmpty: _ERROR,
        queues.QueueFull: _ERROR,
        queues.QueueShutDown: _ERROR,
    },
    extensible=frozenset({InvalidStateError, queues.QueueEmpty, queues.QueueFull}),
)
"""What scripts may read from the objects of this facade."""


def build_asyncio(context: FacadeContext) -> Facade:
    """Return the facade for one run."""
    context.guards.admit(ROWS)
    members: dict[str, object] = {
        name: getattr(module, name)
        for module, text in (
            (locks, "Barrier BoundedSemaphore Condition Event Lock Semaphore"),
            (queues, "LifoQueue PriorityQueue Queue QueueEmpty QueueFull QueueShutDown"),
            (groups, "TaskGroup"),
            (timeouts, "Timeout sleep timeout timeout_at"),
            (
                waiting,
                "ALL_COMPLETED FIRST_COMPLETED FIRST_EXCEPTION as_completed gather shield wait wait_for",
            ),
            (runner, "all_tasks current_task get_event_loop get_running_loop run set_event_loop to_thread"),
        )
        for name in text.split()
    }
    members |= {
        "CancelledError": CancelledError,
        "Future": Future,
        "InvalidStateError": InvalidStateError,
        "Task": Task,
        "TimeoutError": TimeoutError,
        "create_task": start_task,
        "ensure_future": ensure_future,
        "new_event_loop": runner.get_event_loop,
        "iscoroutine": is_coroutine_like,
        "iscoroutinefunction": is_coroutine_function,
        "isfuture": is_future,
    }
    return Facade("asyncio", fresh_functions(members))


def start_task(coro: object, *, name: object = None, context: object = None) -> Task:
    """Schedule a coroutine on the running loop.

    Raises:
        RuntimeError: the loop does not run.
    """
    if not current_loop().running:
        raise RuntimeError("no running event loop")
    return create_task(coro, name=name)


def is_coroutine_function(func: object) -> bool:
    """Return whether calling ``func`` gives something to await."""
    if isinstance(func, Tool):
        return func.gives_awaitable
    return isinstance(func, types.FunctionType) and bool(func.__code__.co_flags & _CO_COROUTINE)


def is_future(value: object) -> bool:
    """Return whether ``value`` is a future or task."""
    return isinstance(value, Future)
