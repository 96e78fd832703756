"""The concurrent.futures facade: functions that run beside the script, one at a time, in a fixed order.

Several functions can be in the middle of a tool call at once; their calls run in parallel on the host. Python
code itself never runs in parallel, so a pool changes what is waited for and nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from bascule.guest.calls import Tool
from bascule.guest.ending import Abandoned, RunEnded
from bascule.guest.facade import Facade, FacadeContext, Rows
from bascule.guest.futures import Future, current_loop
from bascule.guest.rules.attributes import names
from bascule.guest.workers import MAX_WORKERS

FIRST_COMPLETED = "FIRST_COMPLETED"
FIRST_EXCEPTION = "FIRST_EXCEPTION"
ALL_COMPLETED = "ALL_COMPLETED"


class CancelledError(Exception):
    """The future was cancelled before it ran."""


class PoolFuture:
    """The outcome of a submitted function; hashes by creation order."""

    __slots__ = ("_callbacks", "_inner", "started")

    def __init__(self) -> None:
        self._inner = Future()
        self._callbacks: list[Callable[[PoolFuture], object]] = []
        self.started = False

    def __hash__(self) -> int:
        return hash(self._inner)

    def __repr__(self) -> str:
        if not self._inner.done():
            return f"<Future state={'running' if self.started else 'pending'}>"
        if self._inner.cancelled():
            return "<Future state=cancelled>"
        error = self._inner.exception()
        outcome = f"returned {type(self._inner.result()).__name__}" if error is None else f"raised {error!r}"
        return f"<Future state=finished {outcome}>"

    def done(self) -> bool:
        """Return whether it ended, failed or was cancelled."""
        return self._inner.done()

    def running(self) -> bool:
        """Return whether the function has started and not ended."""
        return self.started and not self._inner.done()

    def cancelled(self) -> bool:
        """Return whether it was cancelled."""
        return self._inner.cancelled()

    def cancel(self) -> bool:
        """Cancel it if the function has not started; return whether that worked."""
        if self.started or (self._inner.done() and not self._inner.cancelled()):
            return False
        if not self._inner.done():
            self._inner.cancel()
            self._call_back()
        return True

    def result(self, timeout: float | None = None) -> object:
        """Wait for the function and return what it returned.

        Raises:
            TimeoutError: it takes longer than ``timeout`` seconds.
            CancelledError: it was cancelled.
        """
        self._wait(timeout)
        if self._inner.cancelled():
            raise CancelledError
        return self._inner.result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the function and return what it raised, or None."""
        self._wait(timeout)
        if self._inner.cancelled():
            raise CancelledError
        return self._inner.exception()

    def add_done_callback(self, fn: Callable[[PoolFuture], object]) -> None:
        """Have ``fn(self)`` called once it is done, at once if it is already."""
        if self._inner.done():
            _call(fn, self)
        else:
            self._callbacks.append(fn)

    def on_done(self, listener: Callable[[Future], object]) -> None:
        """Have ``listener`` called the moment this is done."""
        self._inner.on_done(listener)

    def _wait(self, timeout: float | None) -> None:
        if not self._inner.done() and not _block_until(lambda: self._inner.done(), [self], timeout):
            raise TimeoutError

    def _call_back(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            _call(callback, self)

    def succeed(self, value: object) -> None:
        """Complete with what the function returned."""
        self._inner.set_result(value)
        self._call_back()

    def fail(self, error: BaseException) -> None:
        """Complete with what the function raised."""
        self._inner.set_exception(error)
        self._call_back()


def _call(callback: Callable[[PoolFuture], object], future: PoolFuture) -> None:
    try:
        callback(future)
    except Exception as error:
        # As in the standard library, a failing callback fails nobody else.
        current_loop().callback_failed(error)


def _block_until(ready: Callable[[], bool], futures: Iterable[PoolFuture], timeout: float | None) -> bool:
    """Block until ``ready()``, which can change when one of ``futures`` is done; False on timeout."""
    loop = current_loop()
    timer: Future | None = None
    if timeout is not None:
        if timeout <= 0:
            return ready()
        timer = loop.start_sleep(timeout)
    watched = list(futures)
    while not ready():
        if timer is not None and timer.done():
            return False
        gate = Future()

        def open_gate(_: object, gate: Future = gate) -> None:
            if not gate.done():
                gate.set_result(None)

        for future in watched:
            future.on_done(open_gate)
        if timer is not None:
            timer.on_done(open_gate)
        loop.block(gate)
    if timer is not None:
        timer.cancel()
    return True


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
            _block_until(lambda: not self._submitted, rest, None)

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
                loop.start_worker(partial(self._run, work))

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


def as_completed(fs: Iterable[PoolFuture], timeout: float | None = None) -> Iterator[PoolFuture]:
    """Yield futures as they are done; those that are already come first, in the order given."""
    left = dict.fromkeys(fs)
    finished: deque[PoolFuture] = deque()

    def arrived(future: PoolFuture) -> None:
        finished.append(future)

    for future in left:
        future.add_done_callback(arrived)
    total = len(left)
    for _ in range(total):
        if not finished and not _block_until(lambda: bool(finished), left, timeout):
            raise TimeoutError(f"{len(left)} (of {total}) futures unfinished")
        future = finished.popleft()
        left.pop(future, None)
        yield future


class DoneAndNotDone(NamedTuple):
    """What wait() returns."""

    done: set[PoolFuture]
    not_done: set[PoolFuture]


def wait(
    fs: Iterable[PoolFuture], timeout: float | None = None, return_when: str = ALL_COMPLETED
) -> DoneAndNotDone:
    """Wait for some or all; return those that are done and those that are not."""
    futures = list(dict.fromkeys(fs))

    def enough() -> bool:
        done = [future for future in futures if future.done()]
        return (
            len(done) == len(futures)
            or (return_when == FIRST_COMPLETED and bool(done))
            or (
                return_when == FIRST_EXCEPTION
                and any(not future.cancelled() and future.exception() is not None for future in done)
            )
        )

    _block_until(enough, futures, timeout)
    return DoneAndNotDone(
        {future for future in futures if future.done()}, {future for future in futures if not future.done()}
    )


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

    current_loop().start_worker(work)
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
    return Facade("concurrent.futures", members)
