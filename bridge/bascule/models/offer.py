"""The tools of one request as an API is told them: mapped names, and strict schemas where they can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bascule.models.definitions import JsonObject, SurfaceTool
from bascule.models.names import NameMap
from bascule.models.strict import make_strict, restore
from bascule.models.turn import ModelCall


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """One function as it stands in a request."""

    tool: SurfaceTool
    name: str
    parameters: JsonObject
    strict: bool


class Offer:
    """The tools of one request.

    Args:
        strict: whether schemas are rewritten where that is possible.
    """

    def __init__(self, tools: Sequence[SurfaceTool], *, strict: bool) -> None:
        self.names = NameMap(each.name for each in tools)
        self.tools = tuple(self._offer(each, strict) for each in tools)
        self._strict = {each.tool.name: each.tool for each in self.tools if each.strict}

    def _offer(self, tool: SurfaceTool, strict: bool) -> OfferedTool:
        rewritten = make_strict(tool.parameters) if strict else None
        return OfferedTool(
            tool=tool,
            name=self.names.to_wire(tool.name),
            parameters=tool.parameters if rewritten is None else rewritten,
            strict=rewritten is not None,
        )

    def restore(self, call: ModelCall) -> ModelCall:
        """Return a call with the arguments as the tool itself knows them."""
        tool = self._strict.get(call.name)
        if tool is None or call.arguments is None:
            return call
        return replace(call, arguments=restore(call.arguments, tool.parameters))
