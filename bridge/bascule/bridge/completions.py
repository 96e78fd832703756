"""Completions of one run that can be delivered, in the order they became ready."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from bascule.wire import Delivery, ToolFailure

MAX_BATCH_BYTES: Final = 32 << 20
"""Bytes of results in one Done before the rest waits for the next; a single larger result travels alone."""


class Completions:
    """Collects completions until the guest can be given them.

    Args:
        last_now: the latest time the script was told; it is never told an earlier one.
        changed: called when a completion is ready.
    """

    def __init__(self, *, last_now: float, changed: Callable[[], None]) -> None:
        self._now = last_now
        self._changed = changed
        self._ready: OrderedDict[int, tuple[Delivery, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, seq: int, value: bytes = b"null", failure: ToolFailure | None = None) -> None:
        """Take note of a completion; ``value`` is JSON."""
        self._now = max(self._now, time.time())
        delivery = Delivery(seq=seq, now=self._now, value=msgspec.Raw(value), failure=failure)
        self._ready[seq] = delivery, len(value)
        self._changed()

    def drop(self, seq: int) -> None:
        """Forget a completion that nobody waits for any more."""
        self._ready.pop(seq, None)

    def take(self) -> tuple[Delivery, ...]:
        """Return the next completions, as many as one Done should carry."""
        batch: list[Delivery] = []
        size = 0
        while self._ready:
            seq, (delivery, value_bytes) = self._ready.popitem(last=False)
            size += value_bytes
            if batch and size > MAX_BATCH_BYTES:
                self._ready[seq] = delivery, value_bytes
                self._ready.move_to_end(seq, last=False)
                break
            batch.append(delivery)
        return tuple(batch)
