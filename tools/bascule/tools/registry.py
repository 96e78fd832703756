"""The tools of one executor: found by exact name, in a fixed order, unchanged once made.

Trusts nothing in the names scripts ask for: they are looked up as they are, never normalised or completed.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Any, cast

from bascule.tools.canonical import canonical_json
from bascule.tools.errors import ToolDefinitionError
from bascule.tools.naming import MAX_NAME_CHARS
from bascule.tools.stubs import Detail, render_stubs
from bascule.tools.tool import AnyTool, Tool, tool
from bascule.wire import ToolStub

MAX_NEAREST = 3


class Registry:
    """An immutable, ordered set of tools with different names.

    Args:
        tools: tools, or functions to be made tools with the default options.

    Raises:
        ToolDefinitionError: two have the same name, or one's name is the namespace of another.
    """

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[AnyTool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        for each in tools:
            self._add(cast("AnyTool", each) if isinstance(each, Tool) else tool(each))

    def _add(self, made: AnyTool) -> None:
        other = self._tools.get(made.name)
        if other is not None and other.function is made.function and other.digest == made.digest:
            return
        if other is not None:
            raise ToolDefinitionError(
                "tool_duplicate",
                f"two tools are called {made.name}, the other is at {other.location}; "
                'rename one with tool(name="...")',
                location=made.location,
            )
        for name in self._tools:
            shorter, longer = sorted((name, made.name), key=len)
            if longer.startswith(f"{shorter}."):
                raise ToolDefinitionError(
                    "tool_duplicate",
                    f"{shorter} cannot be a tool and the namespace of {longer}",
                    location=made.location,
                )
        self._tools[made.name] = made

    def get(self, name: str) -> AnyTool | None:
        """Return the tool of exactly this name."""
        return self._tools.get(name)

    def names(self) -> tuple[str, ...]:
        """Return all names in order."""
        return tuple(self._tools)

    def nearest(self, name: str) -> list[str]:
        """Return up to three names a script may have meant, best first; the untrusted name is bounded."""
        wanted = name[: 2 * MAX_NAME_CHARS].lower()
        folded = {known.lower(): known for known in self._tools}
        for known in self._tools:  # a name without its namespace is the commonest slip
            folded.setdefault(known.rsplit(".", 1)[-1].lower(), known)
        close = difflib.get_close_matches(wanted, folded, n=2 * MAX_NEAREST, cutoff=0.6)
        return list(dict.fromkeys(folded[match] for match in close))[:MAX_NEAREST]

    def stubs(self) -> tuple[ToolStub, ...]:
        """Return what the guest is told of the tools."""
        return tuple(each.stub() for each in self._tools.values())

    def render_stubs(self, *, detail: Detail = "signatures") -> str:
        """Return the tools as Python stubs for a prompt; see `bascule.tools.stubs`."""
        return render_stubs(self, detail=detail)

    @property
    def digest(self) -> str:
        """SHA-256 in hex of all definitions; the order of the tools does not count."""
        return sha256(canonical_json({each.name: each.digest for each in self})).hexdigest()

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __repr__(self) -> str:
        return f"<Registry of {len(self)} tools>"
