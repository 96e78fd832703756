"""Connections are bounded in time and number: a real server, raw sockets, clients that do not behave."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any

import pytest
import uvicorn

from bascule.console import connections as bounds
from bascule.console.connections import bound_connections

WAIT_S = 60.0
ended = threading.Event()
"""Set when the application is through with a request, or its client is gone."""


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once, whatever is still to come: the size that the path names."""
    if scope["type"] != "http":
        return
    size = int(scope["path"][1:] or "2")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
    for begin in range(0, size, 1 << 20):
        part = b"x" * min(1 << 20, size - begin)
        await send({"type": "http.response.body", "body": part, "more_body": begin + len(part) < size})
    ended.set()


@contextmanager
def served(*, arrive_s: float = 0.5, connections: int = 100) -> Generator[tuple[str, int]]:
    """Serve the application and give its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    protocol = bound_connections(arrive_s=arrive_s, connections=connections)
    server = uvicorn.Server(
        uvicorn.Config(application, http=protocol, lifespan="off", log_config=None, timeout_keep_alive=1)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join(WAIT_S)
        listener.close()
    assert not thread.is_alive()


def drip(address: tuple[str, int], first: bytes, *, count: int, drop: bytes) -> int:
    """Open connections, send a little again and again, and return how many the server has closed in time."""
    selector = selectors.DefaultSelector()
    opened = [socket.create_connection(address, timeout=WAIT_S) for _ in range(count)]
    for each in opened:
        each.sendall(first)
        selector.register(each, selectors.EVENT_READ)
    until, closed = time.monotonic() + WAIT_S, 0
    while closed < count and time.monotonic() < until:
        for key, _ in selector.select(0.1):
            stream = key.fileobj
            assert isinstance(stream, socket.socket)
            if not receive(stream):
                selector.unregister(stream)
                closed += 1
        for key in list(selector.get_map().values()):
            stream = key.fileobj
            assert isinstance(stream, socket.socket)
            send_some(stream, drop)
    selector.close()
    for each in opened:
        each.close()
    return closed


def receive(stream: socket.socket) -> bytes:
    try:
        return stream.recv(1 << 16)
    except ConnectionError:
        return b""


def send_some(stream: socket.socket, data: bytes) -> None:
    try:
        stream.sendall(data)
    except (ConnectionError, BrokenPipeError):
        return


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\n", b"X-A: b\r\n"),
        (b"G", b""),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", b"x"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b""),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT", b""),
    ],
    ids=["silent", "headers without end", "one letter", "a body nobody reads", "idle", "half of the next"],
)
def test_many_slow_connections_are_closed(first: bytes, more: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "GRACE_S", 0.5)
    with served() as address:
        assert drip(address, first, count=40, drop=more) == 40


def test_a_client_that_reads_nothing_is_let_go_and_one_that_reads_slowly_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "UNREAD_S", 0.5)
    size = 32 << 20
    ended.clear()
    request = b"GET /%d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % size
    with served() as address:
        with closing(socket.create_connection(address, timeout=WAIT_S)) as lazy:
            lazy.sendall(request)
            assert ended.wait(WAIT_S)  # with what is still in the buffers of the two kernels unread
        with closing(socket.create_connection(address, timeout=WAIT_S)) as reader:
            reader.sendall(request)
            got = 0
            while part := receive(reader):
                got += len(part)
            assert got > size


def test_connections_beyond_the_spare_ones_are_closed_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SPARE", 0)
    with served(arrive_s=30.0, connections=5) as address:
        held = [socket.create_connection(address, timeout=WAIT_S) for _ in range(5)]
        for each in held:
            each.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert receive(each).startswith(b"HTTP/1.1 200")
        with closing(socket.create_connection(address, timeout=WAIT_S)) as beyond:
            send_some(beyond, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert receive(beyond) == b""
        held.pop().close()

        def served_again() -> bool:
            with closing(socket.create_connection(address, timeout=WAIT_S)) as next_:
                send_some(next_, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                return receive(next_).startswith(b"HTTP/1.1 200")

        until = time.monotonic() + WAIT_S
        while not served_again():
            assert time.monotonic() < until
        for each in held:
            each.close()
