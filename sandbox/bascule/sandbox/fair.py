"""Who is served next when several principals wait: one each in turn, first come first served within one."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """A queue with one lane per principal, served in rotation.

    However many items one principal has waiting, another's first item is served after at most one item of
    each of the others.
    """

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, deque[T]] = OrderedDict()

    def push(self, principal: str, item: T) -> None:
        """Add an item at the end of the principal's lane."""
        self._lanes.setdefault(principal, deque()).append(item)

    def pop(self) -> tuple[str, T] | None:
        """Take the next item, with whose it is; None when there is none."""
        if not self._lanes:
            return None
        principal, lane = next(iter(self._lanes.items()))
        item = lane.popleft()
        if lane:
            self._lanes.move_to_end(principal)
        else:
            del self._lanes[principal]
        return principal, item

    def pop_of(self, principal: str) -> T | None:
        """Take the next item of this principal, None when there is none."""
        lane = self._lanes.get(principal)
        if lane is None:
            return None
        item = lane.popleft()
        if not lane:
            del self._lanes[principal]
        return item

    def discard(self, principal: str, item: T) -> None:
        """Take an item out wherever it stands; one that is not there is fine."""
        lane = self._lanes.get(principal)
        if lane is None or item not in lane:
            return
        lane.remove(item)
        if not lane:
            del self._lanes[principal]

    def __len__(self) -> int:
        """Return how many items wait."""
        return sum(map(len, self._lanes.values()))
