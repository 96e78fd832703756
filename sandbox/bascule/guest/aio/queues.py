"""Queues of the asyncio facade."""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

from bascule.guest.aio.locks import Event
from bascule.guest.futures import Future


class QueueEmpty(Exception):
    """get_nowait() found nothing."""


class QueueFull(Exception):
    """put_nowait() found no room."""


class QueueShutDown(Exception):
    """The queue was shut down."""


class Queue:
    """First in, first out, with room for ``maxsize`` items; zero means no bound."""

    __slots__ = ("_getters", "_idle", "_items", "_maxsize", "_putters", "_shut", "_unfinished")

    def __init__(self, maxsize: int = 0) -> None:
        self._maxsize = maxsize
        self._items: Any = self._make()
        self._getters: deque[Future] = deque()
        self._putters: deque[Future] = deque()
        self._unfinished = 0
        self._idle = Event()
        self._idle.set()
        self._shut = False

    def _make(self) -> Any:
        return deque[object]()

    def _put(self, item: object) -> None:
        self._items.append(item)

    def _get(self) -> object:
        return self._items.popleft()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} maxsize={self._maxsize} items={len(self._items)}>"

    @property
    def maxsize(self) -> int:
        """Items there is room for; zero means no bound."""
        return self._maxsize

    def qsize(self) -> int:
        """Return how many items are there."""
        return len(self._items)

    def empty(self) -> bool:
        """Return whether nothing is there."""
        return not self._items

    def full(self) -> bool:
        """Return whether there is no room."""
        return 0 < self._maxsize <= len(self._items)

    async def put(self, item: object) -> None:
        """Add an item, waiting for room."""
        while self.full():
            self._check_open()
            await self._stand_in(self._putters, blocked=self.full)
        self.put_nowait(item)

    def put_nowait(self, item: object) -> None:
        """Add an item.

        Raises:
            QueueFull: there is no room.
            QueueShutDown: the queue was shut down.
        """
        self._check_open()
        if self.full():
            raise QueueFull
        self._put(item)
        self._unfinished += 1
        self._idle.clear()
        _wake_next(self._getters)

    async def get(self) -> object:
        """Take an item, waiting for one."""
        while self.empty():
            self._check_open()
            await self._stand_in(self._getters, blocked=self.empty)
        return self.get_nowait()

    def get_nowait(self) -> object:
        """Take an item.

        Raises:
            QueueEmpty: there is none.
            QueueShutDown: there is none and the queue was shut down.
        """
        if self.empty():
            self._check_open()
            raise QueueEmpty
        item = self._get()
        _wake_next(self._putters)
        return item

    def task_done(self) -> None:
        """Say that the work on an item is finished.

        Raises:
            ValueError: more often than items were added.
        """
        if self._unfinished <= 0:
            raise ValueError("task_done() called too many times")
        self._unfinished -= 1
        if self._unfinished == 0:
            self._idle.set()

    async def join(self) -> None:
        """Wait until every item that was added is finished."""
        if self._unfinished > 0:
            await self._idle.wait()

    def shutdown(self, immediate: bool = False) -> None:
        """Let nobody add any more; with ``immediate`` drop what is there."""
        self._shut = True
        if immediate:
            while not self.empty():
                self._get()
                if self._unfinished > 0:
                    self._unfinished -= 1
            if self._unfinished == 0:
                self._idle.set()
        while self._getters:
            _wake_next(self._getters)
        while self._putters:
            _wake_next(self._putters)

    def _check_open(self) -> None:
        if self._shut:
            raise QueueShutDown

    async def _stand_in(self, line: deque[Future], *, blocked: Any) -> None:
        waiter = Future()
        line.append(waiter)
        try:
            await waiter
        except BaseException:
            waiter.cancel()
            if waiter in line:
                line.remove(waiter)
            if not blocked() and not waiter.cancelled():
                _wake_next(line)
            raise


class LifoQueue(Queue):
    """Last in, first out."""

    __slots__ = ()

    def _make(self) -> Any:
        return []

    def _get(self) -> object:
        return self._items.pop()


class PriorityQueue(Queue):
    """Smallest first."""

    __slots__ = ()

    def _make(self) -> Any:
        return []

    def _put(self, item: object) -> None:
        heapq.heappush(self._items, item)

    def _get(self) -> object:
        return heapq.heappop(self._items)


def _wake_next(line: deque[Future]) -> None:
    while line:
        waiter = line.popleft()
        if not waiter.done():
            waiter.set_result(None)
            return
