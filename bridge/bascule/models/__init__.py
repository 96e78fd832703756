"""Models: the tools they are offered, the APIs they speak, and the loop between both.

Trusts the operator's executor and SDK clients, never what a model or its server sends. SDKs are extras
(``bascule[openai]``, ``[anthropic]``, ``[google]``); names are imported when they are first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bascule.models.definitions import Caller, SurfaceTool
    from bascule.models.prompt import Prompt, build_prompt
    from bascule.models.rendering import SurfaceResult
    from bascule.models.surface import ToolSurface

__all__ = ["Caller", "Prompt", "SurfaceResult", "SurfaceTool", "ToolSurface", "build_prompt"]

_HOMES = {
    "Caller": "bascule.models.definitions",
    "Prompt": "bascule.models.prompt",
    "SurfaceResult": "bascule.models.rendering",
    "SurfaceTool": "bascule.models.definitions",
    "ToolSurface": "bascule.models.surface",
    "build_prompt": "bascule.models.prompt",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
