"""What every request passes first: the list of hosts, and every response last: headers of a safe page.

The Host list is what stops DNS rebinding: a page of another site whose name was made to point here sends its
own name. Pure ASGI, so that streams are not buffered.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bascule.bridge.display import show, show_block
from bascule.console.problems import Problem

_SECURITY: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_log = logging.getLogger("bascule.console")


class Guard:
    """The outermost layer.

    Args:
        hosts: ``name`` or ``name:port`` in lower case that requests may be addressed to.
        secure: whether people come by https; then browsers are told to stay there.
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], secure: bool) -> None:
        self._app = app
        self._hosts = frozenset(name.encode() for name in hosts)
        headers = dict(_SECURITY)
        if secure:
            headers["strict-transport-security"] = "max-age=31536000"
        self._headers = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.monotonic()
        status = 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given: list[tuple[bytes, bytes]] = message["headers"]
                if not any(name == b"cache-control" for name, _ in given):
                    given = [*given, (b"cache-control", b"no-store")]
                message = {**message, "headers": [*given, *self._headers]}
            await send(message)

        hosts = [value for name, value in scope["headers"] if name == b"host"]
        try:
            if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
                problem = Problem(421, "unknown_host", "this console is not served under that name")
                await problem.response()(scope, receive, send_guarded)
            else:
                await self._app(scope, receive, send_guarded)
        finally:
            _log_request(scope, status, time.monotonic() - begun)


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    if not _log.isEnabledFor(logging.INFO):
        return
    principal = scope.get("state", {}).get("principal")
    facts = {
        "method": scope["method"],
        "path": show(scope["path"], max_chars=200),
        "status": status,
        "ms": round(seconds * 1000, 1),
        "by": None if principal is None else show(principal.name, max_chars=100),
    }
    _log.info("request", extra={"facts": facts})


class JsonLines(logging.Formatter):
    """One JSON object per record; every text made safe to show, so that a log viewer shows what is there."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        line: dict[str, object] = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": show(record.getMessage()),
        }
        facts = getattr(record, "facts", None)
        if isinstance(facts, dict):
            line.update(facts)  # pyright: ignore[reportUnknownArgumentType]
        if record.exc_info:
            line["error"] = show_block(self.formatException(record.exc_info))
        return json.dumps(line)
