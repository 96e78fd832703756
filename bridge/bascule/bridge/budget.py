"""Budgets of one run: how many calls, how many bytes of results, how many bytes of output.

A budget that is used up ends the run: what a script does beyond its budgets is not worth finding out.
"""

from __future__ import annotations

from typing import Final

from bascule.bridge.failure import CallFailed, LimitReached
from bascule.bridge.limits import Limits
from bascule.wire import ToolFailure

MAX_HELD_BYTES: Final = 8 << 20
"""JSON bytes of arguments of calls that are not over; as objects they take up to a hundred times as much."""


class Budget:
    """Counts what one run used of its limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.calls = 0
        self.result_bytes = 0
        self._held_bytes = 0

    def reserve_call(self, *, line: int) -> None:
        """Count one call.

        Raises:
            LimitReached: ``call_limit``: the run made all its calls before this one.
        """
        if self.calls >= self._limits.calls:
            raise LimitReached(
                "call_limit",
                f"stopped at line {line}: the script made more than {self._limits.calls} tool calls",
                line=line,
            )
        self.calls += 1

    def hold_arguments(self, size: int, *, line: int) -> None:
        """Count the arguments of a call that begins; `release_arguments` when it is over.

        Raises:
            LimitReached: ``waiting_limit``: the calls that wait or run carry too much together.
        """
        self._held_bytes += size
        if self._held_bytes > MAX_HELD_BYTES:
            raise LimitReached(
                "waiting_limit",
                f"stopped at line {line}: the arguments of all unfinished calls are larger than"
                f" {MAX_HELD_BYTES} bytes",
                line=line,
            )

    def release_arguments(self, size: int) -> None:
        """Forget the arguments of a call that is over."""
        self._held_bytes -= size

    def reserve_result(self, size: int, tool: str, effects: str | None, *, line: int) -> None:
        """Count the bytes of one result.

        Raises:
            CallFailed: ``result_limit``: this one result is too large; the tool has run all the same.
            LimitReached: ``result_bytes_limit``: all results together are.
        """
        if size > self._limits.result_bytes:
            again = "do not repeat it; " if effects != "read" else ""
            raise CallFailed(
                ToolFailure(
                    kind="result_limit",
                    message=f"{tool} ran, but its result of {size} bytes is larger than"
                    f" {self._limits.result_bytes} bytes and was dropped",
                    suggestion=f"{again}ask for less in one call: a filter, a page, fewer fields",
                ),
                "done",
            )
        if self.result_bytes + size > self._limits.results_bytes:
            raise LimitReached(
                "result_bytes_limit",
                f"stopped at line {line}: the results of all calls are larger than"
                f" {self._limits.results_bytes} bytes",
                line=line,
            )
        self.result_bytes += size
