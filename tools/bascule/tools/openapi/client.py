"""Sends one request to a confirmed server and reads its answer within bounds.

Decides what a failure means for the call: not sent, lost after it was sent, refused, or an answer.
Nothing of a request (address, headers, secrets) stands in an error.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import httpx2
from pydantic import JsonValue

from bascule.tools.imported.bounded_http import (
    AddressRefused,
    AnswerTooLarge,
    BoundedTransport,
    is_literal,
    is_public,
)
from bascule.tools.imported.failures import ServiceUnreachable, lost_call
from bascule.tools.imported.globs import matches_any
from bascule.tools.imported.secrets import spell_secrets
from bascule.tools.imported.words import clean_text
from bascule.tools.options import Effects

MAX_ERROR_CHARS: Final = 2000
CONNECT_S: Final = 15.0
MAX_RETRY_AFTER_S: Final = 3600.0

_NOT_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
)
_BY_BRIDGE: Final = frozenset({401, 403, 408, 425, 429, 500, 502, 503, 504})
"""Answers that the bridge deals with: credentials, and what passes by itself."""


class HttpFailed(Exception):
    """The service answered with a status that says the call failed.

    Attributes:
        status: of those the bridge deals with, else None.
        retry_after: seconds the service asks to wait, None when it does not.
    """

    def __init__(self, text: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, ready to be sent. Its parts may hold secrets."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)
    timeout_s: float


class ServiceClient:
    """Speaks to the servers of one document.

    Args:
        name: of the service, for messages.
        servers: whose hosts may be spoken to.
        private_hosts: patterns of hosts that may have private addresses. Hosts that the servers name by
            their address may too: they were named.
        max_bytes: of one answer.
        secrets: values that must not stand in any text.
    """

    def __init__(
        self,
        name: str,
        *,
        servers: Iterable[str],
        private_hosts: Iterable[str],
        max_bytes: int,
        secrets: frozenset[str],
    ) -> None:
        self._name = name
        self._private = tuple(private_hosts)
        self._hosts = frozenset(urlsplit(server).hostname or "" for server in servers)
        self._max_bytes = max_bytes
        self._secrets = spell_secrets(secrets)
        self._clients: dict[str, httpx2.AsyncClient] = {}
        self._filter = _SecretFilter(self.scrub)

    async def open(self) -> None:
        """Make a client for each host: one that was checked for one name is never used for another."""
        logging.getLogger("httpx2").addFilter(self._filter)
        for host in self._hosts:
            transport = BoundedTransport(max_bytes=self._max_bytes, may_connect=self._may_connect)
            self._clients[host] = httpx2.AsyncClient(
                transport=transport,
                follow_redirects=False,
                trust_env=False,
                headers={"User-Agent": "bascule"},
            )

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()
        logging.getLogger("httpx2").removeFilter(self._filter)

    def scrub(self, text: str) -> str:
        """Return a text without the secrets of this service, as they are and as requests spell them."""
        for secret in self._secrets:
            text = text.replace(secret, "[redacted]")
        return text

    def _may_connect(self, host: str, address: str) -> bool:
        return is_public(address) or is_literal(host) or matches_any(host, self._private)

    async def send(self, request: Request, *, effects: Effects) -> JsonValue:
        """Send a request once and return the plain data of its answer.

        Raises:
            HttpFailed: the service says that the call failed.
            ServiceUnreachable: nothing was sent, or repeating does no harm.
            OutcomeUnknown: a ``once`` request was sent and its answer was lost.
            PermissionError: the service has an address that is not public.
        """
        client = self._clients.get(urlsplit(request.url).hostname or "")
        if client is None:
            raise ServiceUnreachable(f"{self._name} is not open")
        timeout = httpx2.Timeout(request.timeout_s, connect=min(CONNECT_S, request.timeout_s))
        try:
            async with client.stream(
                request.method,
                request.url,
                headers=dict(request.headers),
                content=request.body,
                timeout=timeout,
            ) as response:
                body = await response.aread()
        except AddressRefused as error:
            raise PermissionError(
                f"{self._name}: {error}; an operator can name it under private_hosts"
            ) from None
        except AnswerTooLarge as error:
            raise lost_call(self._name, f"answered, but {error}", sent=True, effects=effects) from None
        except _NOT_SENT as error:
            reason = f"cannot be reached ({type(error).__name__})"
            raise lost_call(self._name, reason, sent=False, effects=effects) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            reason = f"was lost before it answered ({type(error).__name__})"
            raise lost_call(self._name, reason, sent=True, effects=effects) from None
        if not 200 <= response.status_code < 300:
            raise self._failure(response, body)
        return _read_body(response.headers.get("Content-Type", ""), body)

    def _failure(self, response: httpx2.Response, body: bytes) -> HttpFailed:
        status = response.status_code
        if 300 <= status < 400:
            return HttpFailed(f"HTTP {status}: the service redirects elsewhere, which is not followed")
        said = clean_text(body.decode("utf-8", "replace"), max_chars=MAX_ERROR_CHARS)
        text = self.scrub(f"HTTP {status}: {said}" if said else f"HTTP {status}")
        if status not in _BY_BRIDGE:
            return HttpFailed(text)
        return HttpFailed(text, status=status, retry_after=_retry_after(response.headers.get("Retry-After")))


class _SecretFilter(logging.Filter):
    """The HTTP library logs addresses, and some services want their secret in the address."""

    def __init__(self, scrub: object) -> None:
        super().__init__()
        self._scrub = scrub

    def filter(self, record: logging.LogRecord) -> bool:
        assert callable(self._scrub)
        record.msg, record.args = self._scrub(record.getMessage()), None
        return True


def _retry_after(text: str | None) -> float | None:
    from bascule.tools.imported.waiting import read_retry_after

    found = None if text is None else read_retry_after(text)
    return None if found is None else min(found, MAX_RETRY_AFTER_S)


def _read_body(content_type: str, body: bytes) -> JsonValue:
    """Return an answer as plain data: JSON as it is, text as text, anything else as base64."""
    kind = content_type.partition(";")[0].strip().lower()
    if not body:
        return None
    if kind in ("application/json", "text/json") or kind.endswith("+json"):
        try:
            value: JsonValue = json.loads(body)
        except (ValueError, RecursionError):
            return body.decode("utf-8", "replace")
        return value
    if kind.startswith("text/") or kind in ("application/xml", "application/yaml") or kind.endswith("+xml"):
        return body.decode("utf-8", "replace")
    return {
        "mime_type": kind or None,
        "size_bytes": len(body),
        "base64": base64.b64encode(body).decode(),
    }
