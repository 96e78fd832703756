"""What the audit table says of tools: what is called, what goes wrong, how long it takes, how large it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from bascule.bridge.store import AuditEntry


@dataclass(slots=True)
class ToolStats:
    """Signals about one name, as scripts wrote it."""

    tool: str
    calls: int = 0
    states: dict[str, int] = field(default_factory=dict[str, int])
    errors: dict[str, int] = field(default_factory=dict[str, int])
    durations_s: list[float] = field(default_factory=list[float])
    timeouts: int = 0
    sizes: list[int] = field(default_factory=list[int])

    def take(self, facts: dict[str, Any]) -> None:
        """Count one call."""
        self.calls += 1
        state, error = str(facts["state"]), facts["error"]
        self.states[state] = self.states.get(state, 0) + 1
        if error is not None:
            self.errors[error] = self.errors.get(error, 0) + 1
        # Of an effect that did not end in time the outcome is unknown, and the error says that.
        self.timeouts += bool(facts.get("timed_out", error == "timeout"))
        if state == "done":
            self.durations_s.append(float(facts["duration_s"]))
            self.sizes.append(int(facts["result_bytes"]))

    def summary(self) -> dict[str, object]:
        """Return the signals as plain data."""
        return {
            "tool": self.tool,
            "calls": self.calls,
            "done": self.states.get("done", 0),
            "denied": self.states.get("denied", 0),
            "failed": self.states.get("failed", 0),
            "unknown": self.states.get("unknown", 0),
            "misnamed": self.errors.get("unknown_tool", 0),
            "arguments_refused": self.errors.get("invalid_arguments", 0),
            "timeouts": self.timeouts,
            "duration_p50_s": percentile(self.durations_s, 50),
            "duration_p95_s": percentile(self.durations_s, 95),
            "bytes_p50": percentile(self.sizes, 50),
            "bytes_p95": percentile(self.sizes, 95),
        }


def collect_stats(entries: Iterable[AuditEntry], names: Iterable[str] = ()) -> list[ToolStats]:
    """Return the signals of every tool that was called, and of those in ``names`` that never were."""
    found: dict[str, ToolStats] = {name: ToolStats(name) for name in names}
    for entry in entries:
        if entry.action == "call.ended":
            facts = cast("dict[str, Any]", entry.facts)
            name = str(facts["tool"])
            found.setdefault(name, ToolStats(name)).take(facts)
    return sorted(found.values(), key=lambda stats: (-stats.calls, stats.tool))


def percentile(values: list[float] | list[int], share: int) -> float:
    """Return the smallest value that ``share`` percent of all do not exceed; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return float(ordered[max(0, -(-len(ordered) * share // 100) - 1)])
