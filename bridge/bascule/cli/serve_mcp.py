"""The MCP endpoint of ``bascule serve``: the tools at ``/mcp``, for tokens that submit scripts.

The console authenticates; each user has a surface of an own, so nobody sees another's runs. Left out, and
said so, when the mcp package is not installed.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.routing import Route

from bascule.console.app import find_hosts
from bascule.console.principal import Principal
from bascule.console.problems import Problem
from bascule.console.state import Console, require

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from bascule.models.definitions import Caller
    from bascule.models.surface import ToolSurface

PATH: Final = "/mcp"
MAX_SURFACES: Final = 1000
"""Users whose surfaces are kept; the one unused for longest is forgotten, and its labels with it."""

_ALL_BOTH: Final[Mapping[str, Caller]] = MappingProxyType({})
_log = logging.getLogger("bascule.console")


def mount_mcp(app: Starlette, *, callers: Mapping[str, Caller] = _ALL_BOTH) -> bool:
    """Add the endpoint to a console; return False when the package for it is missing.

    Args:
        callers: see `ToolSurface`.
    """
    if find_spec("mcp") is None:
        _log.info("the mcp package is not installed; there is no endpoint %s", PATH)
        return False
    from bascule.models.mcp_server import build_app

    console: Console = app.state.console
    surfaces = Surfaces(console, callers)
    inner = build_app(
        surfaces.of,
        console_url=console.settings.base_url,
        hosts=tuple(find_hosts(console.settings)),
        path=PATH,
    )
    app.router.routes.append(Route(PATH, TokenGate(console, inner)))
    own = app.router.lifespan_context

    @asynccontextmanager
    async def both(served: Any) -> AsyncGenerator[None]:
        async with own(served), inner.router.lifespan_context(inner):
            yield

    app.router.lifespan_context = both
    return True


class Surfaces:
    """One surface for each user."""

    def __init__(self, console: Console, callers: Mapping[str, Caller] = _ALL_BOTH) -> None:
        self._console = console
        self._callers = callers
        self._kept: OrderedDict[str, ToolSurface] = OrderedDict()

    def of(self, request: Request | None) -> ToolSurface:
        """Return the surface of whoever sent a request.

        Raises:
            LookupError: nobody is known without one.
        """
        from bascule.models.surface import ToolSurface

        principal = None if request is None else request.scope.get("state", {}).get("principal")
        if not isinstance(principal, Principal):
            raise LookupError("nobody is served without a token")
        surface = self._kept.get(principal.name)
        if surface is None:
            surface = self._kept[principal.name] = ToolSurface(
                self._console.executor, user=principal.user, callers=self._callers
            )
            if len(self._kept) > MAX_SURFACES:
                self._kept.popitem(last=False)
        self._kept.move_to_end(principal.name)
        return surface


class TokenGate:
    """Lets requests with a token of scope ``run`` through to an application."""

    def __init__(self, console: Console, inner: ASGIApp) -> None:
        self._console = console
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope)
        try:
            principal = self._authenticate(request)
        except Problem as problem:
            await problem.response()(scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        await self._inner(scope, _bounded(receive, self._console.settings.body_bytes), send)

    def _authenticate(self, request: Request) -> Principal:
        console = self._console
        address = "" if request.client is None else request.client.host
        console.throttle.check_address(address)
        principal = console.access.bearer(request.headers, console.policy)
        if principal is None:
            if "authorization" in request.headers:
                console.throttle.note_failure(address)
            challenge = {"WWW-Authenticate": 'Bearer realm="bascule"'}
            raise Problem(401, "token_missing", "send a token of scope run", headers=challenge)
        require(principal, "submit")
        console.throttle.admit(principal.name)
        return principal


def _bounded(receive: Receive, max_bytes: int) -> Receive:
    """Return a source of messages that breaks off a body which is too large."""
    left = max_bytes

    async def bounded() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return bounded
