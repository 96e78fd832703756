"""Which calls of a run wait for something that outlives this process: a decision, an answer, a job elsewhere.

A run whose guest is blocked on nothing but these, and on sleeps, needs neither its sandbox nor its tasks: it
can be suspended, and the same wait begins again when it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wait:
    """One wait.

    Attributes:
        reason: what for, in words for people; empty for one that only stands behind others.
        wake_at: when it ends by itself, seconds since the epoch.
        key: what ends it, as in `RunRecord.waits`; empty when only time does.
    """

    reason: str
    wake_at: float | None
    key: str


class Parking:
    """The waits of one run.

    Args:
        changed: called when a wait begins or ends.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.waits: dict[int, Wait] = {}

    @contextmanager
    def parked(
        self, seq: int, reason: str, *, wake_at: float | None = None, key: str = ""
    ) -> Generator[None]:
        """Say that a call only waits: its task may be cancelled here and begun again elsewhere."""
        self.waits[seq] = Wait(reason, wake_at, key)
        self._changed()
        try:
            yield
        finally:
            del self.waits[seq]
            self._changed()
