"""HTTP for scripts, against real servers: allowed hosts, public addresses, bounds, bad servers."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bascule.tools import AnyTool, ArgumentsInvalid, ToolContext, ToolDefinitionError
from bascule.tools.standard import http
from bascule.tools.standard.addresses import MAX_ADDRESSES, choose_addresses, is_public, resolve_host
from bascule.tools.standard.http import Network
from tests.unit.tools.standard.calling import NOBODY, call

PUBLIC = "93.184.216.34"
BOMB = gzip.compress(b" " * 40_000_000)


class Handler(BaseHTTPRequestHandler):
    """Answers by path."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str, dict[str, str], bytes]]

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        type(self).seen.append((self.command, self.path, dict(self.headers), body))
        path = self.path.split("?")[0]
        if path == "/page":
            self.give(
                "héllo".encode(),
                {"Content-Type": "text/html; charset=utf-8", "ETag": '"1"', "Set-Cookie": "a=b"},
            )
        elif path == "/latin":
            self.give("héllo".encode("latin-1"), {"Content-Type": "text/plain; charset=ISO-8859-1"})
        elif path == "/odd-charset":
            self.give(b"x" * 100, {"Content-Type": "text/plain; charset=idna"})
        elif path == "/binary":
            self.give(b"\x00\x01\x02", {"Content-Type": "image/png"})
        elif path == "/missing":
            self.give(b"no", status=404)
        elif path == "/large":
            self.give(b"x" * 500_000)
        elif path == "/gzip":
            self.give(gzip.compress(b"unpacked"), {"Content-Encoding": "gzip"})
        elif path == "/bomb":
            self.give(BOMB, {"Content-Encoding": "gzip"})
        elif path == "/bomb-deflate":
            self.give(zlib.compress(b" " * 20_000_000, 9), {"Content-Encoding": "deflate"})
        elif path == "/broken-gzip":
            self.give(b"this is no gzip", {"Content-Encoding": "gzip"})
        elif path == "/brotli":
            self.give(b"??", {"Content-Encoding": "br"})
        elif path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x" * 10)
            self.close_connection = True
        elif path.startswith("/to/"):
            self.give(b"", {"Location": path.removeprefix("/to/").replace("%2F", "/")}, status=302)
        elif path == "/loop":
            self.give(b"", {"Location": "/loop"}, status=302)
        elif path == "/307":
            self.give(b"", {"Location": "/page"}, status=307)
        elif path == "/drip":
            self.drip()
        else:
            self.give(json.dumps({"method": self.command, "body": body.decode()}).encode())

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = handle_any

    def drip(self) -> None:
        """Send a byte at a time without end."""
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.05)  # slowness is what this server is for
        except OSError:
            self.close_connection = True

    def give(self, body: bytes, headers: dict[str, str] | None = None, *, status: int = 200) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True


class Server:
    """A local server, and a network in which public names lead to it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        handler = type("Recording", (Handler,), {"seen": self.seen})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.port = self.http.server_address[1]
        self.answers: dict[str, Sequence[str]] = {"api.example.com": [PUBLIC], "other.example.org": [PUBLIC]}
        self.asked: list[str] = []
        self.connected: list[tuple[str, int]] = []

    def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host in self.answers:
            return self.answers[host]
        return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]

    def connect(self, address: str, port: int, timeout_s: float) -> socket.socket:
        self.connected.append((address, port))
        return socket.create_connection(("127.0.0.1", self.port), timeout_s)

    def network(self) -> Network:
        return Network(resolve=self.resolve, connect=self.connect)

    def tools(self, **options: Any) -> list[AnyTool]:
        hosts = options.pop("hosts", ["http://api.example.com", "http://*.example.org"])
        settings: dict[str, Any] = {"timeout_s": 5.0, **options}
        return http.tools(hosts=hosts, network=self.network(), **settings)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


def fetch(server: Server, path: str, **options: Any) -> dict[str, Any]:
    url = path if path.startswith("http") else f"http://api.example.com{path}"
    answer: dict[str, Any] = call(server.tools(**options), "http.fetch", url=url)
    return answer


def test_a_page_comes_as_text_with_the_headers_that_matter(server: Server) -> None:
    answer = fetch(server, "/page?q=a b".replace(" ", "%20") + "&ü=1#part")
    assert (answer["status"], answer["text"], answer["truncated"]) == (200, "héllo", False)
    assert answer["headers"] == {"content-type": "text/html; charset=utf-8", "etag": '"1"'}
    assert server.connected == [(PUBLIC, 80)]
    ((method, path, headers, _),) = server.seen
    assert (method, path, headers["Host"]) == ("GET", "/page?q=a%20b&%C3%BC=1", "api.example.com")
    assert "Cookie" not in headers
    assert fetch(server, "/latin")["text"] == "héllo"
    assert fetch(server, "/odd-charset")["text"] == "x" * 100
    assert fetch(server, "/binary")["base64"] == "AAEC"
    assert fetch(server, "/missing")["status"] == 404


def test_a_body_is_cut_at_its_bound(server: Server) -> None:
    answer = fetch(server, "/large", max_bytes=1000)
    assert (len(answer["text"]), answer["truncated"]) == (1000, True)


@pytest.mark.parametrize("path", ["/bomb", "/bomb-deflate"])
def test_what_is_compressed_is_unpacked_no_further_than_the_bound(server: Server, path: str) -> None:
    assert fetch(server, "/gzip")["text"] == "unpacked"
    answer = fetch(server, path, max_bytes=10_000)
    assert (len(answer["text"]), answer["truncated"]) == (10_000, True)


@pytest.mark.parametrize("path", ["/broken-gzip", "/brotli", "/short"])
def test_damaged_answers_are_errors(server: Server, path: str) -> None:
    with pytest.raises((ValueError, ConnectionError), match=r"damaged|not asked for|bytes early"):
        fetch(server, path)


REFUSED_URLS = [
    "https://api.example.com/",  # allowed by http only
    "http://api.example.com:8080/",
    "http://api.example.com.evil.com/",
    "http://evil-api.example.com/",
    "http://example.org/",  # only what is below
    "http://evilexample.org/",
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://0x7f.1/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://localhost/",
    "http://169.254.169.254/latest/meta-data",
    "http://metadata.google.internal/",
    "http://api.example.com@127.0.0.1/",
    "http://127.0.0.1#@api.example.com/",
    "http://127.0.0.1\\@api.example.com/",
    "http://api.example.com\\@127.0.0.1/",
    "http://user:pass@api.example.com/",
    "http://api.example.com%2f@127.0.0.1/",
    "http://ａpi.example.com.evil.com/",
    "http://api。example。com.evil.com/",
    "http://api.example.com\r\nHost: evil/",
    "http://api.example.com/\r\nX-Injected: 1",
    "http://api.example.com/ HTTP/1.1\r\n\r\n",
    "http://api.example.com/\x00",
    "http://api.example.com/a b",
    "http://api.example.com:99999/",
    "http://api.example.com:-1/",
    "http://api.example.com:80:80/",
    "file:///etc/passwd",
    "ftp://api.example.com/",
    "gopher://api.example.com/_x",
    "data:text/plain,x",
    "//api.example.com/",
    "api.example.com",
    "http://",
    "http:///path",
    "http://[api.example.com/",
    "",
    "http://api.example.com/" + "x" * 4000,
]


@pytest.mark.parametrize("url", REFUSED_URLS)
def test_urls_that_are_not_allowed_reach_nobody(server: Server, url: str) -> None:
    with pytest.raises((PermissionError, ValueError, ArgumentsInvalid)):
        call(server.tools(), "http.fetch", url=url)
    assert (server.connected, server.seen, server.asked) == ([], [], [])


def test_hosts_match_whole_names(server: Server) -> None:
    for url in ("http://API.Example.COM./page", "http://other.example.org/page"):
        assert call(server.tools(), "http.fetch", url=url)["status"] == 200
    with pytest.raises(PermissionError, match=r"allowed: http://api\.example\.com, http://\*\.example\.org"):
        call(server.tools(), "http.fetch", url="http://evil.com/")


PRIVATE = [
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1",
    "fe80::1", "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1",
    "::ffff:0:127.0.0.1", "no address", "",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_an_allowed_name_that_leads_to_a_private_address_is_refused(server: Server, address: str) -> None:
    assert not is_public(address)
    for answer in ([address], [PUBLIC, address], [address, PUBLIC]):
        server.answers["api.example.com"] = answer
        with pytest.raises(PermissionError, match="not public"):
            fetch(server, "/page")
    assert server.connected == []


@pytest.mark.parametrize("address", [PUBLIC, "1.1.1.1", "2606:4700::1111"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("host", ["2130706433", "0177.0.0.1", "0x7f000001", "127.1", "localhost"])
def test_odd_spellings_of_loopback_are_judged_by_what_they_resolve_to(host: str) -> None:
    with pytest.raises(PermissionError):
        choose_addresses(host, 80, resolve=resolve_host, private=False)


def refusing(server: Server, *refused: str) -> Network:
    """Return a network in which nothing listens at some addresses."""

    def connect(address: str, port: int, timeout_s: float) -> socket.socket:
        if address not in refused:
            return server.connect(address, port, timeout_s)
        server.connected.append((address, port))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            unused = free.getsockname()[1]
        return socket.create_connection(("127.0.0.1", unused), timeout_s)

    return Network(resolve=server.resolve, connect=connect)


def test_the_next_address_is_tried_when_one_refuses(server: Server) -> None:
    server.answers["api.example.com"] = ["2606:4700::1111", "1.1.1.1", PUBLIC]
    network = refusing(server, "2606:4700::1111", "1.1.1.1")
    tools = http.tools(
        hosts=["http://api.example.com"], methods=["GET", "POST"], network=network, timeout_s=5
    )
    tried = [("2606:4700::1111", 80), ("1.1.1.1", 80), (PUBLIC, 80)]
    assert call(tools, "http.fetch", url="http://api.example.com/page")["status"] == 200
    assert (server.asked, server.connected) == (["api.example.com"], tried)  # asked once
    assert call(tools, "http.send", method="POST", url="http://api.example.com/x", body="1")["status"] == 200
    assert [method for method, *_ in server.seen] == ["GET", "POST"]


def test_only_a_few_addresses_are_tried_and_one_bad_one_refuses_all(server: Server) -> None:
    many = [f"1.1.1.{n}" for n in range(1, 100)]
    server.answers["api.example.com"] = many
    tools = http.tools(hosts=["http://api.example.com"], network=refusing(server, *many), timeout_s=5)
    with pytest.raises(ConnectionRefusedError):
        call(tools, "http.fetch", url="http://api.example.com/page")
    assert [address for address, _ in server.connected] == many[:MAX_ADDRESSES]
    server.answers["api.example.com"] = [*many, "127.0.0.1"]
    server.connected.clear()
    with pytest.raises(PermissionError):
        call(tools, "http.fetch", url="http://api.example.com/page")
    assert server.connected == []


def test_an_address_that_never_answers_leaves_time_for_the_next(server: Server) -> None:
    server.answers["api.example.com"] = ["1.1.1.1", PUBLIC]

    def connect(address: str, port: int, timeout_s: float) -> socket.socket:
        if address == "1.1.1.1":
            time.sleep(timeout_s)  # as a network that drops what is sent to it
            raise TimeoutError
        return server.connect(address, port, timeout_s)

    network = Network(resolve=server.resolve, connect=connect)
    tools = http.tools(hosts=["http://api.example.com"], network=network, timeout_s=2)
    assert call(tools, "http.fetch", url="http://api.example.com/page")["status"] == 200


def test_a_name_that_answers_differently_the_second_time_gains_nothing(server: Server) -> None:
    answers = iter([[PUBLIC], ["127.0.0.1"]])

    def rebind(host: str, port: int) -> Sequence[str]:
        server.asked.append(host)
        return next(answers)

    tools = http.tools(
        hosts=["http://api.example.com"], network=Network(resolve=rebind, connect=server.connect), timeout_s=5
    )
    assert call(tools, "http.fetch", url="http://api.example.com/page")["status"] == 200
    assert (server.asked, server.connected) == (["api.example.com"], [(PUBLIC, 80)])  # asked once, kept to
    with pytest.raises(PermissionError):
        call(tools, "http.fetch", url="http://api.example.com/page")


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1/x",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://[::ffff:7f00:1]/",
        "http://evil.com/",
        "https://api.example.com/page",
        "//evil.com/page",
        "http://user@other.example.org/",
        "file:///etc/passwd",
        "http://inner.example.org/",
    ],
)
def test_every_redirect_is_judged_like_the_first_address(server: Server, target: str) -> None:
    server.answers["inner.example.org"] = ["10.0.0.1"]
    with pytest.raises((PermissionError, ValueError)):
        fetch(server, f"/to/{target}")
    assert len(server.connected) == 1


def test_redirects_to_allowed_hosts_are_followed_a_few_times(server: Server) -> None:
    assert fetch(server, "/to//page")["url"].endswith("/page")
    answer = fetch(server, "/to/http://other.example.org/page")
    assert (answer["url"], answer["status"]) == ("http://other.example.org/page", 200)
    with pytest.raises(ValueError, match="more than 5 redirects"):
        fetch(server, "/loop")


def test_headers_with_secrets_go_to_the_first_host_only(server: Server) -> None:
    tools = server.tools(headers={"Authorization": "Bearer {TOKEN}"}, secrets={"TOKEN"})
    context = ToolContext(secrets={"TOKEN": "s3cret"})
    call(tools, "http.fetch", context=context, url="http://api.example.com/to/http://other.example.org/page")
    assert [headers.get("Authorization") for _, _, headers, _ in server.seen] == ["Bearer s3cret", None]
    assert tools[0].secrets == ("TOKEN",)
    with pytest.raises(ToolDefinitionError, match="list it in secrets"):
        http.tools(hosts=["api.example.com"], headers={"A": "{TOKEN}"})


def test_sending_is_offered_by_method_and_never_follows(server: Server) -> None:
    assert [each.name for each in server.tools()] == ["http.fetch"]
    tools = server.tools(methods=["GET", "POST"])
    assert [(each.name, each.effects) for each in tools] == [("http.fetch", "read"), ("http.send", "once")]
    answer = call(tools, "http.send", method="POST", url="http://api.example.com/echo", body='{"a": 1}')
    assert json.loads(answer["text"]) == {"method": "POST", "body": '{"a": 1}'}
    assert server.seen[-1][2]["Idempotency-Key"] == "key-1"
    assert call(tools, "http.send", method="POST", url="http://api.example.com/307")["status"] == 307
    check = tools[1].check
    assert check is not None
    for values in (
        {"method": "DELETE", "url": "http://api.example.com/"},
        {"method": "POST", "url": "http://evil.com/"},
    ):
        with pytest.raises(PermissionError):
            check(values, NOBODY)
    for injected in ("a\r\nX: 1", "ü"):
        with pytest.raises(ValueError, match="no header may have"):
            call(tools, "http.send", method="POST", url="http://api.example.com/", content_type=injected)
        with pytest.raises(ValueError, match="no header may have"):
            call(tools, "http.fetch", url="http://api.example.com/", accept=injected)


def raw_server(behave: Callable[[socket.socket], None]) -> tuple[socket.socket, int]:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            accepted, _ = listener.accept()
            with accepted:
                behave(accepted)
        except OSError:
            return

    threading.Thread(target=serve, daemon=True).start()
    return listener, listener.getsockname()[1]


def silent(accepted: socket.socket) -> None:
    while accepted.recv(1000):
        continue


def endless_headers(accepted: socket.socket) -> None:
    accepted.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        accepted.sendall(b"X-More: " + b"y" * 1000 + b"\r\n")


def slow_headers(accepted: socket.socket) -> None:
    accepted.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        accepted.sendall(b"X")
        time.sleep(0.05)  # slowness is what this server is for


def endless_continue(accepted: socket.socket) -> None:
    while True:
        accepted.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def no_http(accepted: socket.socket) -> None:
    accepted.sendall(b"SSH-2.0-OpenSSH\r\n" * 10)


def bad_chunks(accepted: socket.socket) -> None:
    accepted.recv(1000)
    accepted.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\nabc")


def huge_chunk(accepted: socket.socket) -> None:
    accepted.recv(1000)
    accepted.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n")
    while True:
        accepted.sendall(b"x" * 60_000)


@pytest.mark.parametrize(
    ("behave", "secure"),
    [
        *((each, False) for each in (silent, endless_headers, slow_headers, endless_continue, no_http)),
        (bad_chunks, False),
        (huge_chunk, False),
        (silent, True),
        (endless_headers, True),
    ],
)
def test_servers_that_misbehave_end_in_time(behave: Callable[[socket.socket], None], secure: bool) -> None:
    listener, port = raw_server(behave)
    network = Network(
        resolve=lambda host, _: [PUBLIC],
        connect=lambda address, _, timeout_s: socket.create_connection(("127.0.0.1", port), timeout_s),
    )
    scheme = "https" if secure else "http"
    tools = http.tools(
        hosts=[f"{scheme}://api.example.com"], network=network, timeout_s=0.7, max_bytes=10_000
    )
    begun = time.monotonic()
    if behave is huge_chunk:
        assert call(tools, "http.fetch", url=f"{scheme}://api.example.com/")["truncated"]
    else:
        with pytest.raises((OSError, ValueError)):
            call(tools, "http.fetch", url=f"{scheme}://api.example.com/")
    assert time.monotonic() - begun < 10
    listener.close()


def test_a_body_that_drips_is_cut_off_at_the_deadline(server: Server) -> None:
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match="in time"):
        fetch(server, "/drip", timeout_s=0.5)
    assert time.monotonic() - begun < 10


def test_a_certificate_of_another_host_is_refused() -> None:
    listener, port = raw_server(silent)
    network = Network(
        resolve=lambda host, _: [PUBLIC],
        connect=lambda address, _, timeout_s: socket.create_connection(("127.0.0.1", port), timeout_s),
    )
    context = ssl.create_default_context()
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    with pytest.raises(OSError):
        call(
            http.tools(hosts=["api.example.com"], network=network, timeout_s=0.5),
            "http.fetch",
            url="https://api.example.com/",
        )
    listener.close()


def test_private_services_need_an_unsafe_word(server: Server) -> None:
    server.answers["api.example.com"] = ["10.0.0.1"]
    assert fetch(server, "/page", unsafe_private_addresses=True)["status"] == 200


@pytest.mark.parametrize(
    "host", ["", "*", "*.", "a b", "https://a/b", "a:x", "ftp://a", "A.com", "user@a.com", "[::1]"]
)
def test_hosts_are_written_in_one_way(host: str) -> None:
    with pytest.raises(ToolDefinitionError, match="is no host"):
        http.tools(hosts=[host])
