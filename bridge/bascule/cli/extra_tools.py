"""The tools that flags add to those of ``--tools``: for finding tools, and for keeping data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bascule.bridge import Store
    from bascule.models.definitions import Caller
    from bascule.tools.source import AnySource

SearchFlag = Annotated[
    bool, typer.Option("--search-tools", help="Scripts may call search_tools and describe_tool.")
]
ScratchFlag = Annotated[
    bool,
    typer.Option("--scratch", help="Scripts may keep data: store.put, store.get, store.slice, read_output."),
]


def add_extra_tools(
    tools: Sequence[AnySource], store: Store, *, search_tools: bool, scratch: bool
) -> list[AnySource]:
    """Return what an executor is given: the tools, and those that the flags ask for.

    Args:
        tools: what ``--tools`` named.
        store: where the run is kept, and with it what scripts keep.
        search_tools: whether scripts can search all of them, those for keeping data among them.
        scratch: whether scripts can keep data.
    """
    offered = list(tools)
    if scratch:
        from bascule.bridge.artifact_tools import artifact_tools

        offered += artifact_tools(store)
    if search_tools:
        from bascule.tools.discovery import SearchableTools

        return [SearchableTools(offered)]
    return offered


def extra_callers(*, search_tools: bool, scratch: bool) -> dict[str, Caller]:
    """Return who may call what the flags added where a model is offered functions of its own.

    Only scripts: the model has functions of these names already, over its own runs.
    """
    names = [
        *(("search_tools", "describe_tool") if search_tools else ()),
        *(("read_output",) if scratch else ()),
    ]
    return dict.fromkeys(names, "script")
