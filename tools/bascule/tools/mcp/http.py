"""A server reached over streamable HTTP: the SDK's transport, over a client of ours whose bodies are bounded.

A server that was started anew is connected to again. Redirects are followed by the SDK within the origin
only; the proxies of the environment are not used.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from bascule.tools.imported.bounded_http import BoundedTransport
from bascule.tools.mcp.config import ServerConfig

MAX_BODY_BYTES: Final = 16 << 20
"""Longest body of one answer that is not a stream of events, and longest event."""

MAX_STREAM_BYTES: Final = 256 << 20
"""Bytes of one stream of events before it is ended; the SDK opens another."""

CONNECT_S: Final = 30.0
SESSION_HEADER: Final = "mcp-session-id"


class _SessionTransport(BoundedTransport):
    """Says that a session is not known any more in the protocol's own way, which the SDK understands: by 404.

    Servers made like the TypeScript SDK's examples say 400 instead, after which no call would ever succeed.
    """

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; see `BoundedTransport.handle_async_request`."""
        response = await super().handle_async_request(request)
        if response.status_code != 400 or SESSION_HEADER not in request.headers:
            return response
        body = await response.aread()
        await response.aclose()
        if b"session" in body.lower():
            return httpx2.Response(404)
        return httpx2.Response(400, headers=response.headers, content=body)


@asynccontextmanager
async def open_http(server: ServerConfig) -> AsyncGenerator[Any]:
    """Give the two streams of messages the SDK works with."""
    assert server.url is not None
    timeout = httpx2.Timeout(CONNECT_S, read=max(server.timeout_s, CONNECT_S))
    transport = _SessionTransport(max_bytes=MAX_BODY_BYTES, max_event_bytes=MAX_STREAM_BYTES)
    client = httpx2.AsyncClient(
        headers=dict(server.headers), timeout=timeout, transport=transport, trust_env=False
    )
    async with (
        client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_BODY_BYTES) as streams,
    ):
        yield streams
