"""The concurrent.futures facade: functions that run beside the script, one at a time, in a fixed order.

Several functions can be in the middle of a tool call at once; their calls run in parallel on the host. Python
code itself never runs in parallel, so a pool changes what is waited for and nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from bascule.guest.calls import Tool
from bascule.guest.ending import Abandoned, RunEnded
from bascule.guest.facade import Facade, FacadeContext, Rows, fresh_functions
from bascule.guest.futures import Future, current_loop
from bascule.guest.pool_futures import CancelledError, PoolFuture, block_until
from bascule.guest.pool_waiting import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    DoneAndNotDone,
    as_completed,
    wait,
)
from bascule.guest.rules.attributes import names
from bascule.guest.workers import MAX_WORKERS


class _Work:
    """One submitted function with its arguments."""

    __slots__ = ("args", "function", "future", "kwargs")

    def __init__(
        self,
        future: PoolFuture,
        function: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> None:
        self.future = future
        self.function = function
        self.args = args
        self.kwargs = kwargs


class Executor:
    """Runs submitted functions, at most ``max_workers`` at once."""

    __slots__ = ("_active", "_max_workers", "_queue", "_shut", "_submitted")

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[object, ...] = (),
    ) -> None:
        if max_workers is None:
            max_workers = MAX_WORKERS
        if max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        self._max_workers = min(max_workers, MAX_WORKERS)
        self._queue: deque[_Work] = deque()
        self._submitted: dict[PoolFuture, None] = {}
        self._active = 0
        self._shut = False
        if initializer is not None:
            initializer(*initargs)

    def __repr__(self) -> str:
        return "<ThreadPoolExecutor>"

    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> PoolFuture:
        """Run ``fn`` beside the script.

        Raises:
            RuntimeError: the pool was shut down.
        """
        if self._shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = PoolFuture()
        self._submitted[future] = None
        self._queue.append(_Work(future, fn, args, kwargs))
        self._start_next()
        return future

    def map(
        self,
        fn: Callable[..., object],
        *iterables: Iterable[object],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[object]:
        """Run ``fn`` for all items and return an iterator over the results in their order."""
        futures = [self.submit(fn, *args) for args in zip(*iterables, strict=False)]
        return _results(deque(futures), timeout)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept nothing more; wait for what runs."""
        self._shut = True
        if cancel_futures:
            while self._queue:
                work = self._queue.popleft()
                self._submitted.pop(work.future, None)
                work.future.cancel()
        if wait:
            rest = list(self._submitted)
            block_until(lambda: not self._submitted, rest, None)

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()

    def _start_next(self) -> None:
        loop = current_loop()
        while self._queue and self._active < self._max_workers:
            work = self._queue.popleft()
            if work.future.cancelled():
                self._submitted.pop(work.future, None)
                continue
            self._active += 1
            work.future.started = True
            if isinstance(work.function, Tool):
                self._issue(work, work.function)
            else:
                loop.threads.start(partial(self._run, work))

    def _run(self, work: _Work) -> None:
        try:
            value = work.function(*work.args, **work.kwargs)
        except (Abandoned, RunEnded):
            raise
        except BaseException as error:
            # Whatever leaves the function belongs to whoever asks for its result.
            self._ended(work)
            work.future.fail(error)
        else:
            self._ended(work)
            work.future.succeed(value)

    def _issue(self, work: _Work, tool: Tool) -> None:
        # A tool needs no thread: its call is under way at once.
        try:
            issued = tool.issue(work.args, work.kwargs)
        except Exception as error:
            self._ended(work)
            work.future.fail(error)
            return

        def answered(answer: Future) -> None:
            self._ended(work)
            error = answer.exception()
            if error is None:
                work.future.succeed(answer.result())
            else:
                work.future.fail(error)

        issued.on_done(answered)

    def _ended(self, work: _Work) -> None:
        self._active -= 1
        self._submitted.pop(work.future, None)
        self._start_next()


def _results(futures: deque[PoolFuture], timeout: float | None) -> Iterator[object]:
    try:
        while futures:
            yield futures.popleft().result(timeout)
    finally:
        for future in futures:
            future.cancel()


def call_in_worker(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> Future:
    """Run a plain function beside the tasks of the loop; the future is for them to await."""
    future = Future()

    def work() -> None:
        if future.done():
            return
        try:
            value = function(*args, **kwargs)
        except (Abandoned, RunEnded):
            raise
        except BaseException as error:
            # Whatever leaves the function belongs to whoever awaits its result.
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(value)

    current_loop().threads.start(work)
    return future


ROWS = Rows(
    instances={
        Executor: names("map shutdown submit"),
        PoolFuture: names("add_done_callback cancel cancelled done exception result running"),
        DoneAndNotDone: names("done not_done"),
        CancelledError: names("add_note args"),
    },
)
"""What scripts may read from the objects of this facade."""


def build_futures(context: FacadeContext) -> Facade:
    """Return the ``concurrent.futures`` facade for one run."""
    context.guards.admit(ROWS)
    members: dict[str, object] = {
        "ALL_COMPLETED": ALL_COMPLETED,
        "CancelledError": CancelledError,
        "FIRST_COMPLETED": FIRST_COMPLETED,
        "FIRST_EXCEPTION": FIRST_EXCEPTION,
        "Future": PoolFuture,
        "ThreadPoolExecutor": Executor,
        "TimeoutError": TimeoutError,
        "as_completed": as_completed,
        "wait": wait,
    }
    return Facade("concurrent.futures", fresh_functions(members))
