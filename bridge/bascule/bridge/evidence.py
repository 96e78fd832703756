"""Evidence for the operator: which argument values were seen in which earlier result of the run.

A hint, not a proof: a script can change a value on the way. Results are kept as they were delivered, the
newest ones within `KEPT_BYTES`, and read only when somebody is asked, so that calls cost nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

import msgspec

from bascule.bridge.result import JsonValue
from bascule.tools.canonical import join_path

KEPT_BYTES: Final = 4 << 20
"""Bytes of results kept for each run, the newest ones."""

KEPT_VALUES: Final = 100_000
"""Values looked at in all results together."""

MAX_SHOWN: Final = 20
"""Lines of evidence on one card."""

_SHORTEST_TEXT: Final = 4
_SMALLEST_NUMBER: Final = 100


class Evidence:
    """What one run has read."""

    def __init__(self) -> None:
        self._results: deque[tuple[str, bytes]] = deque()
        self._bytes = 0

    def remember(self, seq: int, tool: str, result: bytes) -> None:
        """Keep a result that is delivered to the script."""
        if len(result) > KEPT_BYTES:
            return
        self._results.append((f"call {seq} ({tool})", result))
        self._bytes += len(result)
        while self._bytes > KEPT_BYTES:
            self._bytes -= len(self._results.popleft()[1])

    def explain(self, arguments: JsonValue) -> tuple[str, ...]:
        """Return one line for each argument value that was seen in an earlier result, the newest one."""
        wanted = {value: path for path, value in _leaves(arguments, "") if _is_telling(value)}
        found: dict[str, str] = {}
        looked_at = 0
        for origin, result in reversed(self._results):
            for path, value in _leaves(msgspec.json.decode(result), ""):
                looked_at += 1
                if looked_at > KEPT_VALUES or len(found) >= min(len(wanted), MAX_SHOWN):
                    return tuple(found.values())
                if not isinstance(value, list | dict) and value in wanted and wanted[value] not in found:
                    found[wanted[value]] = (
                        f"{wanted[value]} was seen in the result of {origin} at {path or 'its top'}"
                    )
        return tuple(found.values())


def _is_telling(value: JsonValue) -> bool:
    if isinstance(value, str):
        return len(value) >= _SHORTEST_TEXT
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= _SMALLEST_NUMBER


def _leaves(value: JsonValue, path: str) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, join_path(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value
