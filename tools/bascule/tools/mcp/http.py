"""A server reached over streamable HTTP: the SDK's transport, with bodies bounded and headers of ours.

Redirects are followed by the SDK within the origin only; the proxies of the environment are not used.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from bascule.tools.mcp.config import ServerConfig

MAX_BODY_BYTES: Final = 16 << 20
"""Longest body of one answer that is not a stream of events, and longest event."""

CONNECT_S: Final = 30.0
MAX_STREAM_BYTES: Final = 256 << 20
"""Bytes of one stream of events before it is ended; the SDK opens another."""


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, max_bytes: int) -> None:
        self._stream = stream
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                raise httpx2.ReadError("the answer is larger than a message may be")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """Counts what comes in, still compressed bodies apart: those are not asked for."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Accept-Encoding"] = "identity"
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.ReadError("the answer is compressed, which was not asked for")
        is_events = response.headers.get("Content-Type", "").lower().startswith("text/event-stream")
        response.stream = _BoundedStream(response.stream, MAX_STREAM_BYTES if is_events else MAX_BODY_BYTES)
        return response


@asynccontextmanager
async def open_http(server: ServerConfig) -> AsyncGenerator[Any]:
    """Give the two streams of messages the SDK works with."""
    assert server.url is not None
    timeout = httpx2.Timeout(CONNECT_S, read=max(server.timeout_s, CONNECT_S))
    client = httpx2.AsyncClient(
        headers=dict(server.headers), timeout=timeout, transport=_BoundedTransport(), trust_env=False
    )
    async with (
        client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_BODY_BYTES) as streams,
    ):
        yield streams
