"""Who may run when: reads at once, effects one at a time in issue order, never two calls on one resource.

A call first waits for its turn among the effects of its run, then for its resource, then for one of the run's
places; always in this order, so that no two calls can wait for each other.
"""

from __future__ import annotations

import asyncio
from collections import deque

from bascule.tools import AnyTool


class Resources:
    """Locks of the resource keys of one registry, shared by all runs of an executor."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}

    def lock(self, key: str) -> asyncio.Lock:
        """Return the lock of a resource key; keys come from tool definitions, so they are few."""
        return self._locks.setdefault(key, asyncio.Lock())


class Lanes:
    """The calls of one run that wait to be dispatched.

    Args:
        resources: shared with the other runs of the executor.
        in_flight: calls of this run that may run at once.
    """

    def __init__(self, resources: Resources, *, in_flight: int) -> None:
        self._resources = resources
        self._places = asyncio.Semaphore(in_flight)
        self._order: deque[Turn] = deque()

    def take_turn(self, tool: AnyTool | None) -> Turn:
        """Note, at issue time, that a call exists; the order of these notes is the order of effects.

        Args:
            tool: None for a call that was started by an earlier worker and whose tool is gone.
        """
        resource = None if tool is None or tool.resource is None else self._resources.lock(tool.resource)
        turn = Turn(self._order, resource, self._places)
        if tool is None or (tool.effects != "read" and not tool.parallel_safe):
            turn.join_order()
        return turn


class Turn:
    """The place of one call among those of its run: ``async with`` it to run the tool, `leave` it always."""

    __slots__ = ("_first", "_order", "_places", "_resource")

    def __init__(self, order: deque[Turn], resource: asyncio.Lock | None, places: asyncio.Semaphore) -> None:
        self._order = order
        self._resource = resource
        self._places = places
        self._first: asyncio.Event | None = None

    @property
    def blocked(self) -> bool:
        """Whether other calls are before this one."""
        if self._first is not None and not self._first.is_set():
            return True
        return self._places.locked() or (self._resource is not None and self._resource.locked())

    def join_order(self) -> None:
        """Stand behind the effects issued so far."""
        self._first = asyncio.Event()
        self._order.append(self)
        if self._order[0] is self:
            self._first.set()

    def leave(self) -> None:
        """Forget a call that is over, and let the next one run."""
        if self._first is None:
            return
        self._order.remove(self)
        self._first = None
        if self._order and (following := self._order[0]._first) is not None:
            following.set()

    async def __aenter__(self) -> None:
        if self._first is not None:
            await self._first.wait()
        if self._resource is not None:
            await self._resource.acquire()
        try:
            await self._places.acquire()
        except BaseException:
            if self._resource is not None:
                self._resource.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._places.release()
        if self._resource is not None:
            self._resource.release()
