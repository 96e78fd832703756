"""The outcome of a function that a pool runs, and how to wait for it where a coroutine cannot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from bascule.guest.futures import Future, current_loop


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
        if not self._inner.done() and not block_until(lambda: self._inner.done(), [self], timeout):
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


def block_until(ready: Callable[[], bool], futures: Iterable[PoolFuture], timeout: float | None) -> bool:
    """Block until ``ready()``, which can change when one of ``futures`` is done; False on timeout."""
    loop = current_loop()
    timer: Future | None = None
    if timeout is not None and timeout != math.inf:
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
