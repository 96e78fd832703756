"""A circuit breaker for each tool: one that keeps failing rests, instead of being called in vain.

One for all runs of an executor. What a process has not seen fail it finds out itself: nothing here outlives
the process or is shared with another one. Times are of a clock that only rises.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bascule.bridge.failure import CallFailed
from bascule.tools import AnyTool
from bascule.wire import ToolFailure

OPENS_AFTER: Final = 5
"""Transient failures in a row after which a tool is not called for a while."""

OPEN_S: Final = 30.0
"""Seconds for which it is not; then one call is let through, and decides."""


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    open_until: float = 0.0


class Circuits:
    """Admits calls.

    Args:
        read: a clock that only rises, in seconds.
    """

    def __init__(self, *, read: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._circuits: dict[str, _Circuit] = {}

    def admit(self, tool: AnyTool) -> None:
        """Return when a call may be dispatched.

        Raises:
            CallFailed: ``unavailable``: the tool's circuit is open.
        """
        circuit = self._circuits.get(tool.name)
        if circuit is None or circuit.failures < OPENS_AFTER:
            return
        left_s = circuit.open_until - self._read()
        if left_s > 0:
            failure = ToolFailure(
                kind="unavailable",
                message=f"{tool.name} failed {circuit.failures} times in a row and is not called for a while",
                suggestion=f"go on without it, or try again in {max(1.0, left_s):.0f} s",
                retryable=True,
            )
            raise CallFailed(failure, "not_started")
        circuit.open_until = self._read() + OPEN_S  # for everybody but this one call

    def note(self, tool: AnyTool, *, transient_failure: bool) -> None:
        """Take note of how a call ended; the tool's own refusals are no failures."""
        if not transient_failure:
            self._circuits.pop(tool.name, None)
            return
        circuit = self._circuits.setdefault(tool.name, _Circuit())
        circuit.failures += 1
        if circuit.failures >= OPENS_AFTER:
            circuit.open_until = self._read() + OPEN_S
