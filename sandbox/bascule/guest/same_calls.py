"""Calls that ask the same thing again and again: what to say of them when the calls run out."""

from __future__ import annotations

import msgspec

_FEW = 10
"""So many equal calls at the end are a loop that does not move on."""

_POSITIONS = ("cursor", "page", "page_token", "offset", "after", "start", "skip")
"""Arguments that say where to go on."""


class SameCalls:
    """How many calls in a row asked one tool for the same."""

    __slots__ = ("_args", "_count", "_tool")

    def __init__(self) -> None:
        self._tool: str | None = None
        self._args = msgspec.Raw()
        self._count = 0

    def count(self, tool: str, args: msgspec.Raw) -> None:
        """Take a call into account."""
        if tool == self._tool and args == self._args:
            self._count += 1
        else:
            self._tool, self._args, self._count = tool, args, 1

    def advice(self, tool: str, args: msgspec.Raw) -> str | None:
        """Return what to change when this call, one too many, repeats the calls before it; None otherwise."""
        if self._count < _FEW or (tool, args) != (self._tool, self._args):
            return None
        given: dict[str, object] = msgspec.json.decode(args)
        moving = next((f"`{name}`" for name in _POSITIONS if name in given), "an argument")
        return (
            f"The last {self._count} calls asked {tool}() for the same: the loop never changes {moving}. "
            "Set it from the last result, or end the loop."
        )
