"""HTTP for services that are not trusted: bodies are counted, nothing is decompressed.

Addresses are looked up and checked here, and the connection is made to the address that was checked. The
HTTP library is httpx2, which the extras ``mcp`` and ``openapi`` bring.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import httpx2

LOOKUP_S: Final = 10.0

AddressCheck = Callable[[str, str], bool]
"""Tells whether a connection to a host, at one of its addresses, may be made."""


class AddressRefused(Exception):
    """A host has an address that requests must not be sent to."""


class AnswerTooLarge(Exception):
    """A body is larger than it may be, or came compressed although that was not asked for."""


class _CountedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, max_bytes: int) -> None:
        self._stream = stream
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                raise AnswerTooLarge("the answer is larger than it may be")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Sends requests as they are.

    Args:
        max_bytes: of one body.
        max_event_bytes: of one stream of events, where that is longer.
        may_connect: asked for every address of a host; None to connect as it comes.
    """

    def __init__(
        self, *, max_bytes: int, max_event_bytes: int | None = None, may_connect: AddressCheck | None = None
    ) -> None:
        super().__init__(retries=0)
        self._max_bytes = max_bytes
        self._max_event_bytes = max_event_bytes or max_bytes
        self._may_connect = may_connect

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request.

        Raises:
            AddressRefused, AnswerTooLarge, httpx2.TransportError: see there.
        """
        request.headers["Accept-Encoding"] = "identity"
        if self._may_connect is not None:
            await self._pin(request, self._may_connect)
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity").lower() not in ("identity", ""):
            await response.aclose()
            raise AnswerTooLarge("the answer is compressed, which was not asked for")
        is_events = response.headers.get("Content-Type", "").lower().startswith("text/event-stream")
        most = self._max_event_bytes if is_events else self._max_bytes
        response.stream = _CountedStream(response.stream, most)
        return response

    async def _pin(self, request: httpx2.Request, may_connect: AddressCheck) -> None:
        """Have the request go to an address that was checked, whatever the name means a moment later."""
        host = request.url.host
        addresses = await _look_up(host, request.url.port or (443 if request.url.scheme == "https" else 80))
        if not addresses or not all(may_connect(host, address) for address in addresses):
            raise AddressRefused(f"{host} has an address that is not public")
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=addresses[0])  # the Host header was set from the name


async def _look_up(host: str, port: int) -> list[str]:
    try:
        async with asyncio.timeout(LOOKUP_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError) as error:
        raise httpx2.ConnectError(f"{host} cannot be looked up") from error
    unique = dict.fromkeys(str(entry[4][0]) for entry in found)
    return sorted(unique, key=lambda address: ":" in address)  # IPv4 works in more places


def is_public(address: str) -> bool:
    """Tell whether an address is one of the internet: not of this machine, network or provider."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or getattr(found, "sixtofour", None)
    if mapped is not None:
        found = mapped
    return found.is_global and not found.is_multicast and not found.is_reserved


def is_literal(host: str) -> bool:
    """Tell whether a host is an address, or this machine, by name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True
