"""The operator console: HTTP API and web pages over one store, for people who approve, look and answer.

`build_app` makes the ASGI application, `Settings` says how it is served. Names are imported when they are
first used: the command line shows its help without loading a web framework.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bascule.console.app import build_app
    from bascule.console.settings import Settings, read_settings

__all__ = ["Settings", "build_app", "read_settings"]


def __getattr__(name: str) -> object:
    if name == "build_app":
        from bascule.console.app import build_app

        return build_app
    if name in ("Settings", "read_settings"):
        from bascule.console import settings

        return getattr(settings, name)
    raise AttributeError(f"module 'bascule.console' has no attribute {name!r}")
