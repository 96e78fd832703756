"""Runs a coroutine up to its first wait, so that what ends at once needs no timer around it."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, Final

_ENDED: Final = object()


class _Rest:
    """A coroutine that was begun, to be awaited once by the task that began it."""

    __slots__ = ("_coroutine", "_waits_for")

    def __init__(self, coroutine: Coroutine[Any, Any, None], waits_for: object) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        waits_for = self._waits_for
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # a cancellation, or what the awaited future raises
                waits_for = self._step(error)
            else:
                waits_for = self._step(None, sent)
            if waits_for is _ENDED:
                return

    def _step(self, error: BaseException | None, sent: object = None) -> object:
        try:
            return self._coroutine.send(sent) if error is None else self._coroutine.throw(error)
        except StopIteration:
            return _ENDED


def begin(coroutine: Coroutine[Any, Any, None]) -> Awaitable[None] | None:
    """Run a coroutine up to its first wait; return what is left of it, None when it has ended.

    The rest must be awaited at once, by the same task.
    """
    try:
        waits_for = coroutine.send(None)
    except StopIteration:
        return None
    return _Rest(coroutine, waits_for)
