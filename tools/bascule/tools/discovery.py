"""Tools that find tools: for scripts, which may need one that the prompt did not show.

They are ordinary ``read`` tools over one `ToolIndex`; what they return are the same stubs that prompts hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AsyncExitStack
from typing import Annotated

from pydantic import Field

from bascule.tools.registry import Registry
from bascule.tools.search import Embedder, Match, ToolIndex
from bascule.tools.source import AnySource, KeepsSecrets, open_sources, split_sources
from bascule.tools.tool import AnyTool, tool

MAX_FOUND = 20


def discovery_tools(index: ToolIndex) -> list[AnyTool]:
    """Return ``search_tools`` and ``describe_tool`` over an index."""

    @tool(effects="read", parallel_safe=True)
    def search_tools(query: str, limit: Annotated[int, Field(ge=1, le=MAX_FOUND)] = 5) -> list[Match]:
        """Find tools by keywords or by a sentence that says what is to be done.

        Args:
            query: what is wanted, in English or Chinese, like "refund an order".
            limit: how many tools to return at most.
        """
        return index.search(query, limit)

    @tool(effects="read", parallel_safe=True)
    def describe_tool(name: str) -> str:
        """Return the full documentation of one tool: signature, parameters, the shapes of what it gives.

        Args:
            name: the tool's full name, as search_tools returns it.
        """
        return index.describe(name)

    return [search_tools, describe_tool]


class SearchableTools:
    """A `ToolSource`: other tools and sources, with ``search_tools`` and ``describe_tool`` over all of them.

    Args:
        tools: what is to be found; sources among them are opened and closed with this one.
        embedder, pinned: see `ToolIndex`.
    """

    name = "searchable tools"

    def __init__(
        self, tools: Iterable[AnySource], *, embedder: Embedder | None = None, pinned: Collection[str] = ()
    ) -> None:
        self._ready, self._sources = split_sources(tools)
        self._embedder = embedder
        self._pinned = pinned
        self._stack = AsyncExitStack()

    @property
    def secrets(self) -> frozenset[str]:
        """Secrets of the sources among the tools, to be kept out of scripts, journals and logs."""
        keepers = [each for each in self._sources if isinstance(each, KeepsSecrets)]
        return frozenset(secret for each in keepers for secret in each.secrets)

    async def open(self) -> list[AnyTool]:
        """See `ToolSource.open`."""
        async with AsyncExitStack() as stack:
            registry = Registry([*self._ready, *await open_sources(self._sources, stack)])
            index = ToolIndex(registry, embedder=self._embedder, pinned=self._pinned)
            self._stack = stack.pop_all()
        return [*registry, *discovery_tools(index)]

    async def close(self) -> None:
        """See `ToolSource.close`."""
        await self._stack.aclose()
