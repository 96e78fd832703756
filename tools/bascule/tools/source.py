"""Sources of tools that must be opened first: servers, documents, whatever is not a Python function.

Decides nothing about the tools: a source gives them, and from then on they are like any others. What a source
says of itself comes from elsewhere and is trusted no more than the module of that source says.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol, cast, runtime_checkable

from bascule.tools.tool import AnyTool, Tool


@runtime_checkable
class ToolSource(Protocol):
    """Gives tools while it is open. `open` and `close` may be called from different tasks, each once."""

    @property
    def name(self) -> str:
        """What it is called in messages: the specification that named it."""
        ...

    async def open(self) -> list[AnyTool]:
        """Connect or read, and return the tools.

        Raises:
            ToolLoadError: the message names the file, and the line where there is one.
        """
        ...

    async def close(self) -> None:
        """Release everything; calls that are under way fail."""
        ...


@runtime_checkable
class KeepsSecrets(Protocol):
    """A source that was given secrets of the host, which must not come back out of it."""

    @property
    def secrets(self) -> frozenset[str]:
        """Values for the bridge to keep out of scripts, journals and logs."""
        ...


AnySource = AnyTool | Callable[..., Any] | ToolSource
"""What an executor takes: tools, functions that become tools, and sources."""


def split_sources(
    items: Iterable[AnySource],
) -> tuple[list[AnyTool | Callable[..., Any]], list[ToolSource]]:
    """Return the tools and functions, and the sources, each in their order."""
    ready: list[AnyTool | Callable[..., Any]] = []
    sources: list[ToolSource] = []
    for each in items:
        if isinstance(each, Tool):
            ready.append(cast("AnyTool", each))
        elif isinstance(each, ToolSource):
            sources.append(each)
        else:
            ready.append(each)
    return ready, sources


async def open_sources(sources: Iterable[ToolSource], stack: AsyncExitStack) -> list[AnyTool]:
    """Open sources in turn and return their tools; the stack closes them.

    Raises:
        ToolLoadError: one cannot be opened; those before it are closed by the stack.
    """
    tools: list[AnyTool] = []
    for source in sources:
        stack.push_async_callback(source.close)
        tools += await source.open()
    return tools


@asynccontextmanager
async def opened(items: Iterable[AnySource]) -> AsyncGenerator[list[AnyTool | Callable[..., Any]]]:
    """Give tools and functions as they are and those of sources, which are open meanwhile."""
    ready, sources = split_sources(items)
    async with AsyncExitStack() as stack:
        yield [*ready, *await open_sources(sources, stack)]
