"""One HTTP exchange, bounded in time and bytes, over a connection to an address that was judged beforehand.

The server is untrusted: it may be slow, endless, compressed beyond measure, or lead elsewhere. A watch ends
the connection at the deadline, whatever is waited for. No proxy, no cookies, no credentials of this machine.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_CHUNK_BYTES: Final = 16 << 10

Connect = Callable[[str, int, float], socket.socket]
"""From an address, a port and a timeout in seconds to a connected socket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What a server answered; ``more`` when the body was longer than was read."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    more: bool


def connect_to(address: str, port: int, timeout_s: float) -> socket.socket:
    """Return a socket connected to an address; never resolves a name."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.settimeout(timeout_s)
        made.connect((address, port))
    except BaseException:
        made.close()
        raise
    return made


class _Pinned(http.client.HTTPConnection):
    """A connection over a socket that exists already."""

    def __init__(self, host: str, port: int, ready: socket.socket) -> None:
        super().__init__(host, port)
        self.sock = ready

    def connect(self) -> None:
        """Never connect again: that would resolve the name once more."""
        raise http.client.HTTPException("the connection was closed")


def exchange(
    *,
    method: str,
    secure: bool,
    host: str,
    addresses: Sequence[str],
    port: int,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
    max_bytes: int,
    until: float,
    connect: Connect = connect_to,
    context: ssl.SSLContext | None = None,
) -> Exchange:
    """Send one request and read the answer.

    Args:
        addresses: where to connect to, at least one, each when those before it cannot be reached; ``host`` is
            only said in the request and proven by the certificate.
        until: the deadline, on the monotonic clock.

    Raises:
        TimeoutError: the deadline passed.
        ConnectionError, OSError: it cannot be reached, or what it sends is no HTTP.
        ValueError: the answer is compressed in a way that was not asked for, or is damaged.
    """
    sock = _connect_to_first(addresses, port, until, connect)
    if secure:
        trust = context or ssl.create_default_context()
        sock = trust.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
    watch = threading.Timer(_left(until), _cut_off, [sock])
    watch.daemon = True
    watch.start()
    try:
        if isinstance(sock, ssl.SSLSocket):
            sock.do_handshake()
        connection = _Pinned(host, port, sock)
        connection.request(method, target, body=body, headers=dict(headers))
        answer = connection.getresponse()
        data, more = _read(answer, max_bytes) if method != "HEAD" else (b"", False)
        _left(until)  # what was cut off looks like an end
        return Exchange(
            status=answer.status,
            headers={name.lower(): value for name, value in answer.getheaders()},
            body=data,
            more=more,
        )
    except (http.client.HTTPException, OSError) as error:
        if time.monotonic() >= until:
            raise TimeoutError("the server did not answer in time") from error
        if isinstance(error, http.client.HTTPException):
            raise ConnectionError(f"the server did not speak HTTP: {type(error).__name__}") from error
        raise
    finally:
        watch.cancel()
        sock.close()


def _connect_to_first(addresses: Sequence[str], port: int, until: float, connect: Connect) -> socket.socket:
    """Return a connection to the first address that takes one; each has a share of the time left."""
    *others, last = addresses
    for number, address in enumerate(others):
        with contextlib.suppress(OSError):
            return connect(address, port, _left(until) / (len(addresses) - number))
    return connect(last, port, _left(until))


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the server did not answer in time")
    return left


def _cut_off(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # The plain method: that of an SSL socket would take the session from under whoever is reading.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _read(answer: http.client.HTTPResponse, max_bytes: int) -> tuple[bytes, bool]:
    """Read a body up to a bound, unpacking no further than that."""
    encoding = (answer.getheader("content-encoding") or "identity").strip().lower()
    if encoding in ("identity", ""):
        unpack = None
    elif encoding in ("gzip", "x-gzip"):
        unpack = zlib.decompressobj(wbits=31)
    elif encoding == "deflate":
        unpack = zlib.decompressobj()
    else:
        raise ValueError(f"the answer is encoded as {encoding!r:.40}, which was not asked for")
    body = bytearray()
    try:
        while chunk := answer.read1(_CHUNK_BYTES):
            if unpack is None:
                body += chunk
            else:
                while chunk and len(body) <= max_bytes:
                    body += unpack.decompress(chunk, max_bytes + 1 - len(body))
                    chunk = unpack.unconsumed_tail
            if len(body) > max_bytes:
                return bytes(body[:max_bytes]), True
        if answer.length:
            raise ConnectionError(f"the answer ended {answer.length} bytes early")
    except zlib.error as error:
        raise ValueError(f"the answer's compression is damaged: {error}") from error
    return bytes(body), False
