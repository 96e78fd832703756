"""Budgets of one run: how many calls, how many bytes of results, how many bytes of output.

A budget that is used up ends the run: what a script does beyond its budgets is not worth finding out.
"""

from __future__ import annotations

from bascule.bridge.failure import CallFailed, LimitReached
from bascule.bridge.limits import Limits
from bascule.tools import AnyTool
from bascule.wire import ToolFailure


class Budget:
    """Counts what one run used of its limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.calls = 0
        self.result_bytes = 0

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

    def reserve_result(self, size: int, tool: AnyTool, *, line: int) -> None:
        """Count the bytes of one result.

        Raises:
            CallFailed: ``result_limit``: this one result is too large; the tool has run all the same.
            LimitReached: ``result_bytes_limit``: all results together are.
        """
        if size > self._limits.result_bytes:
            again = "do not repeat it; " if tool.effects != "read" else ""
            raise CallFailed(
                ToolFailure(
                    kind="result_limit",
                    message=f"{tool.name} ran, but its result of {size} bytes is larger than"
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
