"""Waiting for several things: gather, wait, as_completed, wait_for, shield. Orders are those of lists."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Iterator
from typing import cast

from bascule.guest.aio.timeouts import Timeout, call_later
from bascule.guest.futures import CancelledError, Future, current_loop
from bascule.guest.tasks import ensure_future

FIRST_COMPLETED = "FIRST_COMPLETED"
FIRST_EXCEPTION = "FIRST_EXCEPTION"
ALL_COMPLETED = "ALL_COMPLETED"


class Gathering(Future):
    """What gather() returns; cancelling it cancels what it gathers."""

    __slots__ = ("_children", "asked")

    def __init__(self, children: list[Future]) -> None:
        super().__init__()
        self._children = children
        self.asked = False

    def cancel(self, msg: str | None = None) -> bool:
        """Cancel everything gathered that is not done."""
        if self.done():
            return False
        cancelled = False
        for child in self._children:
            cancelled = child.cancel(msg) or cancelled
        if cancelled:
            # The outcome is decided once the children have taken note.
            self.asked = True
        return cancelled


def gather(*coros_or_futures: object, return_exceptions: bool = False) -> Future:
    """Run all of them; the result is the list of their results in the order given."""
    children: list[Future] = []
    known: dict[object, Future] = {}
    for item in coros_or_futures:
        child = known.get(item) if isinstance(item, Future) else known.get(("new", id(item)))
        if child is None:
            child = ensure_future(item)
            known[item if isinstance(item, Future) else ("new", id(item))] = child
        children.append(child)
    outer = Gathering(children)
    if not children:
        outer.set_result([])
        return outer
    left = len(known)

    def one_done(child: Future) -> None:
        nonlocal left
        left -= 1
        if outer.done():
            if not child.cancelled():
                child.exception()
            return
        if not return_exceptions:
            if child.cancelled():
                outer.set_exception(child.cancellation())
                return
            error = child.exception()
            if error is not None:
                outer.set_exception(error)
                return
        if left:
            return
        results: list[object] = []
        for each in children:
            if each.cancelled():
                results.append(each.cancellation())
            else:
                error = each.exception()
                results.append(each.result() if error is None else error)
        if outer.asked:
            outer.set_exception(CancelledError())
        else:
            outer.set_result(results)

    for child in dict.fromkeys(children):
        child.add_done_callback(one_done)
    return outer


async def wait(
    fs: object, *, timeout: float | None = None, return_when: str = ALL_COMPLETED
) -> tuple[set[Future], set[Future]]:
    """Wait for some or all; return those that are done and those that are not.

    Raises:
        ValueError: nothing to wait for, or an unknown ``return_when``.
    """
    futures = list(dict.fromkeys(ensure_future(item) for item in _several(fs)))
    if not futures:
        raise ValueError("Set of Tasks/Futures is empty.")
    if return_when not in (FIRST_COMPLETED, FIRST_EXCEPTION, ALL_COMPLETED):
        raise ValueError(f"Invalid return_when value: {return_when}")
    left = len(futures)
    waiter = Future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def one_done(future: Future) -> None:
        nonlocal left
        left -= 1
        if not left or return_when == FIRST_COMPLETED or (return_when == FIRST_EXCEPTION and _failed(future)):
            wake()

    for future in futures:
        future.add_done_callback(one_done)
    timer = None if timeout is None else call_later(timeout, wake)
    try:
        await waiter
    finally:
        if timer is not None:
            timer.cancel()
        for future in futures:
            future.remove_done_callback(one_done)
    return (
        {future for future in futures if future.done()},
        {future for future in futures if not future.done()},
    )


def _several(fs: object) -> Iterable[object]:
    if isinstance(fs, Future) or not isinstance(fs, Iterable):
        raise TypeError(f"expect a list of futures, not {type(fs).__name__}")
    return cast("Iterable[object]", fs)


def _failed(future: Future) -> bool:
    return future.failed()


class AsCompleted:
    """Iterator over results in the order in which they arrive; plain and asynchronous."""

    __slots__ = ("_done", "_left", "_timed_out", "_timer", "_todo", "_waiters")

    def __init__(self, fs: Iterable[object], delay: float | None) -> None:
        futures = dict.fromkeys(ensure_future(item) for item in fs)
        self._todo: dict[Future, None] = dict(futures)
        self._left = len(futures)
        self._done: deque[Future] = deque()
        self._waiters: deque[Future] = deque()
        self._timed_out = False
        self._timer: Future | None = None
        for future in futures:
            future.add_done_callback(self._one_done)
        if self._todo and delay is not None:
            self._timer = call_later(delay, self._on_timeout)

    def _one_done(self, future: Future) -> None:
        if self._todo.pop(future, self) is self:
            return
        self._done.append(future)
        self._wake()
        if not self._todo and self._timer is not None:
            self._timer.cancel()

    def _on_timeout(self) -> None:
        for future in self._todo:
            future.remove_done_callback(self._one_done)
        self._todo.clear()
        self._timed_out = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _next_future(self) -> Future:
        while not self._done:
            if self._timed_out:
                raise TimeoutError
            waiter = Future()
            self._waiters.append(waiter)
            await waiter
        return self._done.popleft()

    async def _next_result(self) -> object:
        return (await self._next_future()).result()

    def __iter__(self) -> Iterator[Coroutine[object, object, object]]:
        return self

    def __next__(self) -> Coroutine[object, object, object]:
        if not self._left:
            raise StopIteration
        self._left -= 1
        return self._next_result()

    def __aiter__(self) -> AsyncIterator[Future]:
        return self

    async def __anext__(self) -> Future:
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        return await self._next_future()


def as_completed(fs: object, *, timeout: float | None = None) -> AsCompleted:
    """Return an iterator over what ``fs`` give, first come first."""
    return AsCompleted(_several(fs), timeout)


async def wait_for(fut: Awaitable[object], timeout: float | None) -> object:
    """Wait for one thing at most ``timeout`` seconds; cancel it and raise TimeoutError after that."""
    if timeout is not None and timeout <= 0:
        future = ensure_future(fut)
        if not future.done():
            future.cancel()
            await _settled(future)
        try:
            return future.result()
        except CancelledError:
            raise TimeoutError from None
    async with Timeout(None if timeout is None else current_loop().time() + timeout):
        return await fut


async def _settled(future: Future) -> None:
    waiter = Future()

    def wake(_: Future) -> None:
        if not waiter.done():
            waiter.set_result(None)

    future.add_done_callback(wake)
    try:
        await waiter
    finally:
        future.remove_done_callback(wake)


def shield(arg: object) -> Future:
    """Return a future for ``arg`` that can be cancelled without cancelling ``arg``."""
    inner = ensure_future(arg)
    if inner.done():
        return inner
    outer = Future()

    def inner_done(inner: Future) -> None:
        if outer.cancelled():
            if not inner.cancelled():
                inner.exception()
        elif inner.cancelled():
            outer.cancel()
        else:
            error = inner.exception()
            if error is None:
                outer.set_result(inner.result())
            else:
                outer.set_exception(error)

    def outer_done(_: Future) -> None:
        inner.remove_done_callback(inner_done)

    inner.add_done_callback(inner_done)
    outer.add_done_callback(outer_done)
    return outer
