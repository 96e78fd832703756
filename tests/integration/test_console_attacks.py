"""Ideas of somebody who reaches the console, each as one raw request: none decides, leaks or breaks anything.

``{…}`` in a request stands for what the attacker knows: the address, an approval and its digest, tokens of
people who may look or submit, a cookie of somebody who may only look.
"""

from __future__ import annotations

import http.client
import re
import socket
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import requests

from tests.integration.console_server import Server

PATH: Final = "/v1/approvals/{id}/decision"
JSON: Final = "Content-Type: application/json\r\n"
FORM: Final = "Content-Type: application/x-www-form-urlencoded\r\n"
ORIGIN: Final = "Origin: http://{host}\r\n"
EVIL: Final = "Origin: https://evil.example\r\n"


def get(path: str, headers: str = "") -> str:
    return f"GET {path} HTTP/1.1\r\nHost: {{host}}\r\n{headers}\r\n"


def post(path: str, body: str, headers: str = "", *, method: str = "POST") -> str:
    return f"{method} {path} HTTP/1.1\r\nHost: {{host}}\r\nContent-Length: LENGTH\r\n{headers}\r\n{body}"


def say(verdict: str, digest: str) -> str:
    return f'{{{{"verdict":"{verdict}","digest":"{digest}"}}}}'


DECIDE: Final = say("approve", "{digest}")
VIEW: Final = "Authorization: Bearer {view}\r\n"
RUN: Final = "Authorization: Bearer {run_token}\r\n"
COOKIE: Final = "Cookie: __Host-bascule={cookie}\r\n"
APPROVE: Final = "Authorization: Bearer {approve}\r\n"
SUBMIT: Final = RUN + JSON

ATTACKS: Final[dict[str, tuple[str, set[int]]]] = {
    # who asks
    "a token in the query": (get("/v1/approvals?access_token={approve}"), {401}),
    "a token as a user's name": (get("/v1/me", "Authorization: Basic {approve}\r\n"), {401}),
    "a token as a cookie": (get("/", "Cookie: __Host-bascule={approve}\r\n"), {303}),
    "a cookie as a token": (get("/v1/me", "Authorization: Bearer {cookie}\r\n"), {401}),
    "a cookie of another name": (get("/", "Cookie: bascule={cookie}; host-bascule={cookie}\r\n"), {303}),
    "two authorizations": (post(PATH, DECIDE, VIEW + APPROVE + JSON), {400, 401, 403}),
    "a token of NUL": (get("/v1/me", "Authorization: Bearer bsc_\\x00\r\n"), {401}),
    "a very long token": (get("/v1/me", "Authorization: Bearer bsc_" + "x" * 20_000 + "\r\n"), {401}),
    "an identity of no proxy": (get("/", "X-Forwarded-User: olga\r\nX-Forwarded-Groups: ops\r\n"), {303}),
    "a viewer's token decides": (post(PATH, DECIDE, VIEW + JSON), {403}),
    "a viewer's cookie decides": (post("/approvals/{id}", "verdict=approve", COOKIE + FORM + ORIGIN), {403}),
    "a viewer asks by override": (post(PATH, DECIDE, VIEW + JSON + "X-HTTP-Method-Override: GET\r\n"), {403}),
    # other methods
    "a decision by GET": (get("/approvals/{id}?verdict=approve&digest={digest}", COOKIE), {200}),
    "an override by header": (get(PATH, APPROVE + "X-HTTP-Method-Override: POST\r\n"), {405}),
    "an override by field": (post("/approvals/{id}?_method=DELETE", "_method=DELETE", COOKIE + FORM), {403}),
    "TRACE": (post("/", "", method="TRACE"), {405}),
    "CONNECT": ("CONNECT evil.example:443 HTTP/1.1\r\nHost: {host}\r\n\r\n", {400, 404, 405, 421}),
    "OPTIONS of another origin": (post(PATH, "", EVIL, method="OPTIONS"), {405}),
    # names
    "no host": ("GET / HTTP/1.0\r\n\r\n", {400, 421}),
    "two hosts": ("GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n", {400, 421}),
    "a user in the host": ("GET / HTTP/1.1\r\nHost: x@{host}\r\n\r\n", {400, 421}),
    "an address in IPv6": ("GET / HTTP/1.1\r\nHost: [::ffff:127.0.0.1]:{port}\r\n\r\n", {421}),
    "an address as a number": ("GET / HTTP/1.1\r\nHost: 2130706433:{port}\r\n\r\n", {421}),
    "a dot behind the host": ("GET / HTTP/1.1\r\nHost: localhost.:{port}\r\n\r\n", {421}),
    "an absolute target": ("GET http://evil.example/ HTTP/1.1\r\nHost: {host}\r\n\r\n", {303, 404}),
    "a forwarded host": (get("/", "X-Forwarded-Host: evil.example\r\nForwarded: host=x\r\n"), {303}),
    # paths
    "up from static": (get("/static/../templates/base.html"), {303, 404}),
    "up from static, encoded": (get("/static/%2e%2e/%2e%2e/app.py"), {404}),
    "up from static, encoded twice": (get("/static/%252e%252e/app.py"), {404}),
    "up from static, other slash": (get("/static/..%5capp.py"), {404}),
    "from the root of static": (get("/static//etc/passwd"), {404}),
    "NUL in static": (get("/static/console.css%00.html"), {404}),
    "a journal of another folder": (get("/v1/runs/..%2f..%2fetc%2fpasswd/journal", VIEW), {404}),
    "a line feed in a run": (get("/v1/runs/a%0d%0aSet-Cookie:x=1/journal", VIEW), {404}),
    "a number without end": (get("/v1/batches/x/" + "9" * 400, VIEW), {404}),
    # where people are sent to
    "next elsewhere": (get("/login?next=//evil.example/", COOKIE), {303}),
    "next elsewhere, other slash": (get("/login?next=/%5cevil.example/", COOKIE), {303}),
    "next elsewhere, hidden": (get("/login?next=/%09/evil.example/", COOKIE), {303}),
    "next as a script": (get("/login?next=javascript:alert(1)", COOKIE), {303}),
    "next with a header": (get("/login?next=/%0d%0aSet-Cookie:%20x=1", COOKIE), {303}),
    # filters
    "NUL in a filter": (get("/v1/approvals?tool=%00", VIEW), {200}),
    "any tool in a filter": (get("/v1/approvals?tool=%25", VIEW), {200}),
    "SQL in a cursor": (get("/v1/runs?cursor=x'%20OR%201=1--", VIEW), {200}),
    "a filter given twice": (get("/v1/approvals?tool=a&tool=b", VIEW), {422}),
    "a limit below zero": (get("/v1/runs?limit=-1", VIEW), {422}),
    "a wait without end": (get("/v1/runs/x?wait=1000000000", VIEW), {422}),
    "an event of another kind": (get("/v1/runs/{run}/events", VIEW + "Last-Event-ID: 9e999\r\n"), {422}),
    # bodies
    "a key twice": (post("/v1/runs", '{{"script":"1","script":"2"}}', SUBMIT), {400}),
    "an integer without end": (post("/v1/runs", '{{"script":"1","seed":' + "9" * 5000 + "}}", SUBMIT), {400}),
    "no number": (post("/v1/runs", '{{"script":"1","seed":NaN}}', SUBMIT), {400}),
    "half a character": (post("/v1/runs", '{{"script":"\\ud800"}}', SUBMIT), {400}),
    "ten thousand levels": (post("/v1/policy/explain", "[" * 10_000, VIEW + JSON), {400}),
    "an unknown key": (post("/v1/runs", '{{"script":"1","user":"olga"}}', SUBMIT), {422}),
    "JSON as text": (post(PATH, DECIDE, APPROVE + "Content-Type: text/plain\r\n"), {415}),
    "a form for the API": (post(PATH, "verdict=approve", APPROVE + FORM), {415}),
    "JSON for a page": (post("/approvals/{id}", DECIDE, COOKIE + JSON + ORIGIN), {415}),
    "a packed body": (post("/v1/runs", "\x1f\x8b", SUBMIT + "Content-Encoding: gzip\r\n"), {400}),
    "two lengths": (post("/", "ab", "Content-Length: 1\r\n"), {400}),
    "a length and chunks": (
        "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        {303, 400, 405},
    ),
    "a header in two lines": (get("/", "X-A: b\r\n Authorization: c\r\n"), {303, 400}),
    # what was displayed
    "another digest": (post(PATH, say("approve", "0" * 64), APPROVE + JSON), {409}),
    "part of the digest": (post(PATH, say("approve", "{short}"), APPROVE + JSON), {422}),
    "the digest in capitals": (post(PATH, say("approve", "{upper}"), APPROVE + JSON), {422}),
    "a verdict that is none": (post(PATH, say("allow", "{digest}"), APPROVE + JSON), {422}),
    "a batch of somebody else": (
        post("/v1/batches/run-x/1/decisions",
             '{{"decisions":[{{"id":"{id}","verdict":"approve","digest":"{digest}"}}]}}', APPROVE + JSON),
        {404},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def server(console: Server) -> Server:
    return console


@pytest.fixture(scope="module")
def known(server: Server) -> dict[str, Any]:
    """Return what the attacker knows."""
    run = server.submit('print(mail.send(to="ada@example.com", subject="Hello"))')["id"]
    (approval,) = server.pending(1, run=run)
    login = requests.post(
        f"{server.url}/login", data={"token": server.tokens["vera"]}, headers={"origin": server.url},
        allow_redirects=False, timeout=60,
    )  # fmt: skip
    cookie = login.headers["set-cookie"].split(";")[0].partition("=")[2]
    host = urlsplit(server.url).netloc
    return {
        "host": host, "port": host.rpartition(":")[2], "id": approval["id"], "run": run, "cookie": cookie,
        "digest": approval["digest"], "short": approval["digest"][:16], "upper": approval["digest"].upper(),
        "view": server.tokens["vera"], "approve": server.tokens["olga"], "run_token": server.tokens["app"],
    }  # fmt: skip


def send(server: Server, request: str, source: str) -> http.client.HTTPResponse:
    """Send a request as it is, from an address of its own, and read the answer to its end."""
    head, _, body = request.partition("\r\n\r\n")
    data = f"{head}\r\n\r\n{body}".replace("LENGTH", str(len(body.encode("latin-1")))).encode("latin-1")
    address = ("127.0.0.1", urlsplit(server.url).port or 0)
    with closing(socket.create_connection(address, timeout=60, source_address=(source, 0))) as stream:
        stream.sendall(data)
        answer = http.client.HTTPResponse(stream)
        answer.begin()
        answer.close()
        return answer


@pytest.mark.parametrize("number", range(len(ATTACKS)), ids=list(ATTACKS))
def test_nothing_is_gained(server: Server, known: dict[str, Any], number: int) -> None:
    request, statuses = list(ATTACKS.values())[number]
    # An address for each: wrong tokens lock out the one they come from.
    answer = send(server, request.format(**known), f"127.0.1.{number + 1}")
    assert answer.status in statuses
    assert answer.getheader("set-cookie") is None
    assert answer.getheader("etag") is None
    assert answer.getheader("access-control-allow-origin") is None
    location = answer.getheader("location")
    assert location is None or re.fullmatch(r"/(login(\?next=[\w%./-]*)?)?", location)
    if answer.status != 400 or answer.getheader("content-security-policy"):
        assert answer.getheader("cache-control") == "no-store"
    after = server.api("vera", "GET", f"/v1/approvals/{known['id']}").json()
    assert (after["state"], after["decisions"], after["digest"]) == ("pending", [], known["digest"])


def test_no_attack_was_a_crash(server: Server, known: dict[str, Any]) -> None:
    assert "Traceback" not in (server.folder / "serve.log").read_text("utf-8")
    assert server.api("vera", "GET", f"/v1/runs/{known['run']}").json()["status"] != "finished"


def test_what_static_files_say_of_themselves_is_the_same_for_everybody(server: Server) -> None:
    """They may be cached, and hold nothing of anybody."""
    answer = requests.get(f"{server.url}/static/console.css", timeout=60)
    assert answer.headers["cache-control"] == "max-age=300"
    assert "set-cookie" not in answer.headers
    again = requests.get(
        f"{server.url}/static/console.css", headers={"if-none-match": answer.headers["etag"]}, timeout=60
    )
    assert (again.status_code, again.content) == (304, b"")
