"""What ``--tools`` names, opened for a look and closed again: for commands that show tools and call none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from bascule.cli.waiting import waiting_of

if TYPE_CHECKING:
    from bascule.tools import Registry
    from bascule.tools.imported.review import Review
    from bascule.tools.mcp import Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """What was found.

    Attributes:
        registry: the tools; those of sources can be shown and not called.
        waiting: tools of MCP servers that nobody has confirmed.
        refused: who refused which of those, and why, by server and tool.
        notes: what was repaired or left out.
    """

    registry: Registry
    waiting: list[Waiting]
    refused: dict[tuple[str, str], Review]
    notes: list[str]


def look_at(specs: Sequence[str]) -> Toolset:
    """Load tools and open sources, and close them again.

    Raises:
        ToolLoadError: one cannot be loaded or opened.
        ToolDefinitionError: two have the same name.
    """
    return asyncio.run(_look_at(specs))


async def _look_at(specs: Sequence[str]) -> Toolset:
    from bascule.tools import Registry
    from bascule.tools.imported.review import Reviewed
    from bascule.tools.loading import load_sources
    from bascule.tools.source import open_sources, split_sources

    ready, sources = split_sources(load_sources(*specs))
    async with AsyncExitStack() as stack:
        registry = Registry([*ready, *await open_sources(sources, stack)])
        waiting = [each for source in sources for each in waiting_of(source)]
        reviews = [each for source in sources if isinstance(source, Reviewed) for each in source.review()]
        refused = {(each.server, each.tool): each for each in reviews if each.state == "refused"}
        notes = [each for source in sources for each in cast("list[str]", getattr(source, "notes", []))]
    return Toolset(registry=registry, waiting=waiting, refused=refused, notes=notes)
