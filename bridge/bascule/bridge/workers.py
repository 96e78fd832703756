"""Threads for synchronous tools and approvers, made so that a stuck one can be left behind.

The standard pool joins its threads when the interpreter ends and counts a stuck thread for ever. Here threads
are daemons, and a job that timed out gives its place to a new thread, up to as many as the pool has places.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Job(Generic[T]):
    __slots__ = ("abandoned", "context", "function", "future", "loop")

    def __init__(self, function: Callable[[], T], future: asyncio.Future[T]) -> None:
        self.function = function
        self.future = future
        self.loop = future.get_loop()
        self.context = contextvars.copy_context()
        self.abandoned = False

    def run(self) -> None:
        try:
            value = self.context.run(self.function)
        except BaseException as error:  # carried over to whoever awaits the job
            self._report(self._fail, error)
        else:
            self._report(self._succeed, value)

    def _report(self, how: Callable[..., None], outcome: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            self.loop.call_soon_threadsafe(how, outcome)

    def _succeed(self, value: T) -> None:
        if not self.future.done():
            self.future.set_result(value)

    def _fail(self, error: BaseException) -> None:
        if self.future.done():
            return
        if not isinstance(error, Exception) or isinstance(error, StopIteration):
            # SystemExit and the like would end the event loop; futures refuse StopIteration.
            error = RuntimeError(f"{type(error).__name__} raised")
        self.future.set_exception(error)


class Workers:
    """A pool of at most ``size`` threads, started as they are needed."""

    def __init__(self, *, size: int) -> None:
        self._size = size
        self._jobs: queue.SimpleQueue[_Job[object] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0
        self._abandoned = 0
        self._closed = False

    def submit(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Run ``function`` on a thread, in the caller's context; cancel the future to stop waiting for it."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        job = _Job(function, future)
        future.add_done_callback(lambda done: self._leave(job) if done.cancelled() else None)
        with self._lock:
            if self._idle <= self._jobs.qsize() and self._threads < self._size:
                self._threads += 1
                threading.Thread(target=self._work, name="bascule-tool", daemon=True).start()
            self._jobs.put(job)  # type: ignore[arg-type]  # the queue only runs jobs, whatever they give
        return future

    def close(self) -> None:
        """End idle threads; one that is stuck in a job ends after it, or with the process."""
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._jobs.put(None)

    def _leave(self, job: _Job[T]) -> None:
        with self._lock:
            if not job.abandoned and self._abandoned < self._size:
                job.abandoned = True
                self._abandoned += 1
                self._threads -= 1

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            job = self._jobs.get()
            with self._lock:
                self._idle -= 1
            if job is None:
                return
            if not job.future.cancelled():
                job.run()
            with self._lock:
                if job.abandoned:
                    self._abandoned -= 1
                    if self._closed or self._threads >= self._size:
                        return
                    self._threads += 1
