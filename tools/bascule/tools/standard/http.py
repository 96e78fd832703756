"""HTTP for scripts: a list of hosts, public addresses only, on every redirect, with bounds on time and bytes.

Addresses and answers are hostile. What a URL may be is decided on its parsed form, in which the request is
then made: there is no second parser to disagree with (CWE-918). A host is allowed by name, the address it
leads to is judged by `addresses`, and the connection goes to that very address; to the next one that was
judged only when it cannot be made, before anything is sent.
"""

from __future__ import annotations

import base64
import re
import ssl
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal
from urllib.parse import SplitResult, urljoin, urlsplit

from pydantic import Field

from bascule.tools.context import ToolContext
from bascule.tools.errors import ToolDefinitionError
from bascule.tools.standard.addresses import Resolve, choose_addresses, resolve_host
from bascule.tools.standard.fetching import Connect, Exchange, connect_to, exchange
from bascule.tools.tool import AnyTool, tool

MAX_URL_CHARS: Final = 4000
MAX_REDIRECTS: Final = 5
MAX_BODY_CHARS: Final = 1 << 20

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_READS: Final = ("GET", "HEAD")
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_KEPT_HEADERS: Final = ("content-type", "etag", "last-modified", "link", "location", "retry-after")
_HOST = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
# Only codecs that are quick whatever they are given; ``idna``, for example, is not.
_CHARSET = re.compile(
    r"charset=[\"']?(utf-8|utf-16|us-ascii|iso-8859-[0-9]{1,2}|windows-125[0-8]|gbk|gb2312|gb18030|big5"
    r"|shift_jis|euc-jp|euc-kr|koi8-[ru])(?![A-Za-z0-9_-])",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(r"\{([A-Za-z0-9_.:/-]+)\}")

Url = Annotated[str, Field(max_length=MAX_URL_CHARS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server answered.

    Attributes:
        url: the last one, after redirects.
        text: the body, or empty when it is not text.
        base64: the body when it is not text.
        truncated: the body was longer.
    """

    url: str
    status: int
    headers: dict[str, str]
    text: str
    base64: str
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a URL may name: scheme, host (``*.`` for all below) and port."""

    scheme: str
    host: str
    port: int

    def covers(self, scheme: str, host: str, port: int) -> bool:
        if (scheme, port) != (self.scheme, self.port):
            return False
        return host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """How hosts are resolved and reached, and who vouches for certificates; None is the system's."""

    resolve: Resolve = resolve_host
    connect: Connect = connect_to
    certificates: ssl.SSLContext | None = None


_DEFAULT_NETWORK: Final = Network()


def tools(
    *,
    hosts: Collection[str],
    methods: Collection[Method] = _READS,
    headers: Mapping[str, str] | None = None,
    secrets: Collection[str] = (),
    max_bytes: int = 1 << 20,
    timeout_s: float = 20.0,
    unsafe_private_addresses: bool = False,
    network: Network = _DEFAULT_NETWORK,
    name: str = "http",
) -> list[AnyTool]:
    """Return ``http.fetch`` and, if methods allow it, ``http.send``.

    Args:
        hosts: what may be reached: ``api.example.com`` or ``*.example.com`` (all below, not itself) by HTTPS
            on port 443; another scheme or port only if it is written: ``http://api.example.com:8080``.
        methods: which may be used; those beyond GET and HEAD make ``http.send``, with the effect ``once``.
        headers: sent to the first host of a call, never to where it redirects; ``{NAME}`` is a secret.
        secrets: names of the secrets that headers use.
        max_bytes: of a body; what is longer is cut.
        timeout_s: for a whole call, redirects included.
        unsafe_private_addresses: reach hosts that lead to private addresses, too: your own network's.

    Raises:
        ToolDefinitionError: ``tool_option_invalid``: a host is written in another way.
    """
    origins = [_read_origin(host) for host in hosts]
    templates = dict(headers or {})
    for secret in _TEMPLATE.findall(" ".join(templates.values())):
        if secret not in secrets:
            raise ToolDefinitionError(
                "tool_option_invalid", f"headers use the secret {secret}; list it in secrets"
            )
    client = _Client(
        origins=tuple(origins),
        headers=templates,
        max_bytes=max_bytes,
        timeout_s=timeout_s,
        private=unsafe_private_addresses,
        network=network,
    )
    made: list[AnyTool] = []
    if set(methods) & set(_READS):

        @tool(
            name=f"{name}.fetch",
            effects="read",
            parallel_safe=True,
            labels={"untrusted", "external"},
            timeout_s=timeout_s + 10,
            secrets=secrets,
        )
        def fetch(
            url: Url, context: ToolContext, accept: Annotated[str, Field(max_length=200)] = "*/*"
        ) -> Answer:
            """Get a page or document from one of the allowed hosts.

            Args:
                url: the whole address, with https://.
                accept: which types of content are wanted.
            """
            return client.call("GET", url, {"Accept": _header(accept)}, None, context)

        made.append(fetch)
    writes = sorted(set(methods) - set(_READS))
    if writes:
        made.append(_make_send(name, tuple(writes), client, timeout_s, secrets))
    return made


def _make_send(
    name: str, writes: tuple[str, ...], client: _Client, timeout_s: float, secrets: Collection[str]
) -> AnyTool:
    def check(values: Mapping[str, object], context: ToolContext) -> None:
        client.check(str(values["url"]))
        if values["method"] not in writes:
            raise PermissionError(f"only these methods may be used: {', '.join(writes)}")

    @tool(
        name=f"{name}.send",
        effects="once",
        labels={"untrusted", "external"},
        timeout_s=timeout_s + 10,
        secrets=secrets,
        check=check,
    )
    def send(
        method: Literal["POST", "PUT", "PATCH", "DELETE"],
        url: Url,
        context: ToolContext,
        body: Annotated[str, Field(max_length=MAX_BODY_CHARS)] = "",
        content_type: Annotated[str, Field(max_length=200)] = "application/json",
    ) -> Answer:
        """Send data to one of the allowed hosts; redirects are not followed.

        Args:
            method: what is done.
            url: the whole address, with https://.
            body: what is sent.
            content_type: what the body is.
        """
        extra = {"Content-Type": _header(content_type), "Idempotency-Key": context.idempotency_key}
        return client.call(method, url, extra, body.encode(), context)

    return send


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    origins: tuple[_Origin, ...]
    headers: Mapping[str, str]
    max_bytes: int
    timeout_s: float
    private: bool
    network: Network

    def check(self, url: str) -> tuple[SplitResult, str, int]:
        """Return a URL's parts, its host in ASCII, and its port.

        Raises:
            ValueError, PermissionError: it is none, or none that is allowed.
        """
        parts, host, port = _read_url(url)
        if not any(origin.covers(parts.scheme, host, port) for origin in self.origins):
            allowed = ", ".join(_describe(origin) for origin in self.origins) or "none"
            raise PermissionError(
                f"{parts.scheme}://{host}:{port} may not be reached; allowed: {allowed}. Do not try others"
            )
        return parts, host, port

    def call(
        self, method: str, url: str, extra: Mapping[str, str], body: bytes | None, context: ToolContext
    ) -> Answer:
        until = time.monotonic() + self.timeout_s
        first: tuple[str, str, int] | None = None
        for _ in range(MAX_REDIRECTS + 1):
            parts, host, port = self.check(url)
            addresses = choose_addresses(host, port, resolve=self.network.resolve, private=self.private)
            origin = (parts.scheme, host, port)
            first = first or origin
            answered = exchange(
                method=method,
                secure=parts.scheme == "https",
                host=host,
                addresses=addresses,
                port=port,
                target=_target(parts),
                headers=self._headers(extra, context if origin == first else None),
                body=body,
                max_bytes=self.max_bytes,
                until=until,
                connect=self.network.connect,
                context=self.network.certificates,
            )
            location = answered.headers.get("location")
            if method not in _READS or answered.status not in _REDIRECTS or location is None:
                return _answer(url, answered)
            url = urljoin(url, location)[: MAX_URL_CHARS + 1]
        raise ValueError(f"more than {MAX_REDIRECTS} redirects")

    def _headers(self, extra: Mapping[str, str], context: ToolContext | None) -> dict[str, str]:
        own = {"User-Agent": "bascule", "Accept-Encoding": "identity", "Connection": "close", **extra}
        if context is not None:
            secrets = context.secrets
            own |= {
                name: _TEMPLATE.sub(lambda found: secrets[found.group(1)], value)
                for name, value in self.headers.items()
            }
        return {name: value for name, value in own.items() if value}


def _read_origin(text: str) -> _Origin:
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "https", text
    host, _, port = rest.partition(":")
    if scheme not in ("http", "https") or not _HOST.fullmatch(host) or not (port or "1").isdecimal():
        raise ToolDefinitionError(
            "tool_option_invalid",
            f"{text!r:.100} is no host; write api.example.com, *.example.com or http://api.example.com:8080",
        )
    return _Origin(scheme, host, int(port) if port else _default_port(scheme))


def _read_url(url: str) -> tuple[SplitResult, str, int]:
    if len(url) > MAX_URL_CHARS:
        raise ValueError(f"the URL is longer than {MAX_URL_CHARS} characters")
    if not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("the URL holds a character that must be written as %XX")
    try:
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port
        host = name if name.isascii() else name.encode("idna").decode()
    except (ValueError, UnicodeError) as error:
        raise ValueError(f"this is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("write a whole URL, like https://api.example.com/path")
    if "@" in parts.netloc:
        raise ValueError("a URL with a user name or password is refused")
    return parts, host.lower().removesuffix("."), _default_port(parts.scheme) if port is None else port


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _describe(origin: _Origin) -> str:
    plain = origin.port == _default_port(origin.scheme)
    return f"{origin.scheme}://{origin.host}" + ("" if plain else f":{origin.port}")


def _target(parts: SplitResult) -> str:
    """Return path and query as they go over the wire, in ASCII."""
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    return "".join(
        each if each.isascii() else "".join(f"%{byte:02X}" for byte in each.encode()) for each in path
    )


def _header(value: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise ValueError("a header holds characters that no header may have")
    return value


def _answer(url: str, answered: Exchange) -> Answer:
    kind = answered.headers.get("content-type", "")
    charset = _CHARSET.search(kind)
    text, encoded = "", ""
    if b"\x00" in answered.body[:4096] and "utf-16" not in kind.lower():
        encoded = base64.b64encode(answered.body).decode()
    else:
        try:
            text = answered.body.decode(charset.group(1) if charset else "utf-8", "replace")
        except (LookupError, UnicodeError):
            text = answered.body.decode("utf-8", "replace")
    return Answer(
        url=url,
        status=answered.status,
        headers={name: value[:1000] for name, value in answered.headers.items() if name in _KEPT_HEADERS},
        text=text,
        base64=encoded,
        truncated=answered.more,
    )
