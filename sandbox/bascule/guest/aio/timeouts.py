"""Deadlines of the asyncio facade: a timer on the host and a cancellation when it fires first."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator

from bascule.guest.futures import CancelledError, Future, current_loop
from bascule.guest.tasks import Task


class Timeout:
    """``async with timeout(seconds):`` raises TimeoutError when the block takes longer.

    Args:
        when: time of the loop at which it fires, or None for never.
    """

    __slots__ = ("_cancelling", "_expired", "_left", "_task", "_timer", "_when")

    def __init__(self, when: float | None) -> None:
        self._when = when
        self._task: Task | None = None
        self._timer: Future | None = None
        self._cancelling = 0
        self._expired = False
        self._left = False

    def __repr__(self) -> str:
        state = (
            "expired"
            if self._expired
            else "finished"
            if self._left
            else "active"
            if self._task
            else "created"
        )
        return f"<Timeout [{state}]>"

    def when(self) -> float | None:
        """Return the time at which it fires."""
        return self._when

    def expired(self) -> bool:
        """Return whether it fired."""
        return self._expired

    def reschedule(self, when: float | None) -> None:
        """Move the time at which it fires.

        Raises:
            RuntimeError: the block is not running.
        """
        if self._task is None or self._left:
            raise RuntimeError(
                "Timeout has not been entered" if self._task is None else "Timeout is finished"
            )
        self._when = when
        self._take_back()
        if when is not None:
            self._timer = call_later(when - current_loop().time(), self._fire)

    def _take_back(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        if self._left:
            return
        assert self._task is not None, "the timer starts when the block is entered"
        self._expired = True
        self._timer = None
        self._task.cancel()

    async def __aenter__(self) -> Timeout:
        if self._task is not None:
            raise RuntimeError("Timeout has already been entered")
        task = current_loop().current_task
        assert task is not None, "only tasks step coroutines"
        self._task = task
        self._cancelling = task.cancelling()
        self.reschedule(self._when)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        self._take_back()
        self._left = True
        task = self._task
        if (
            self._expired
            and task is not None
            and task.uncancel() <= self._cancelling
            and kind is not None
            and issubclass(kind, CancelledError)
        ):
            raise TimeoutError from None


def timeout(delay: float | None) -> Timeout:
    """Return a Timeout that fires ``delay`` seconds from now."""
    return Timeout(None if delay is None else current_loop().time() + delay)


def timeout_at(when: float | None) -> Timeout:
    """Return a Timeout that fires at ``when`` on the loop's clock."""
    return Timeout(when)


async def sleep(delay: float, result: object = None) -> object:
    """Wait ``delay`` seconds of the host's time; with zero, let the others run once."""
    if delay <= 0:
        await _Turn()
        return result
    await current_loop().start_sleep(float(delay))
    return result


def call_later(delay: float, callback: Callable[[], object]) -> Future:
    """Have ``callback()`` called after ``delay`` seconds; cancel what this returns to take it back."""
    if delay == math.inf:
        return Future()  # never
    if delay > 0:
        return current_loop().call_later(delay, callback)
    # Nothing to wait for: no need to trouble the host.
    due = Future()

    def fire() -> None:
        if not due.done():
            due.set_result(None)
            callback()

    current_loop().call_soon(fire)
    return due


class _Turn:
    """Yields to the loop once, without anything to wait for."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield
