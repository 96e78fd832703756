"""Which calls of a run wait for something that outlives this process: a decision, an answer, a job elsewhere.

A run whose guest is blocked on nothing but these, and on sleeps, needs neither its sandbox nor its tasks: it
can be suspended, and the same wait begins again when it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bascule.bridge.verdict import RunSuspended

_SHOWN_WAITS: Final = 5


@dataclass(frozen=True, slots=True)
class Wait:
    """One wait.

    Attributes:
        reason: what for, in words for people; empty for one that only stands behind others.
        wake_at: when it ends by itself, seconds since the epoch.
        key: what ends it, as in `RunRecord.waits`; empty when only time does.
        hold: whether the sandbox is worth holding for it for a while.
    """

    reason: str
    wake_at: float | None
    key: str
    hold: bool = True


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
        self, seq: int, reason: str, *, wake_at: float | None = None, key: str = "", hold: bool = True
    ) -> Generator[None]:
        """Say that a call only waits: its task may be cancelled here and begun again elsewhere."""
        self.waits[seq] = Wait(reason, wake_at, key, hold)
        self._changed()
        try:
            yield
        finally:
            del self.waits[seq]
            self._changed()

    @property
    def holds(self) -> bool:
        """Whether nothing says that the sandbox is not worth holding."""
        return all(wait.hold for wait in self.waits.values())

    def wake_at(self, sleeps: Sequence[float]) -> float | None:
        """Return when the first wait or sleep ends by itself.

        Args:
            sleeps: when the script's sleeps are due, seconds since the epoch.
        """
        times = [wait.wake_at for wait in self.waits.values() if wait.wake_at is not None]
        return min([*times, *sleeps], default=None)

    def suspension(self, sleeps: Sequence[float]) -> RunSuspended:
        """Return what suspends a run that only waits: for what, and until when."""
        reasons = [f"call {seq} {wait.reason}" for seq, wait in self.waits.items() if wait.reason]
        if sleeps:
            reasons.append("the script sleeps")
        if len(reasons) > _SHOWN_WAITS:
            reasons[_SHOWN_WAITS:] = [f"{len(reasons) - _SHOWN_WAITS} more wait"]
        return RunSuspended(
            "; ".join(reasons),
            wake_at=self.wake_at(sleeps),
            waits=tuple(wait.key for wait in self.waits.values() if wait.key),
        )
