"""What a hostile page, name, client or text meets at the console: a real server, without a browser."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import re
import signal
import socket
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import requests
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from typer.testing import CliRunner

from bascule.bridge.display import show
from bascule.cli.main import app
from tests.integration.console_server import Server, make_server, wait_until

SECRET = "a-proxy-secret-of-some-length"
KEY = base64.b64encode(b"k" * 32).decode()
MAIL = 'mail.send(to="ada@example.com", subject="Hello")'

HOSTILE = {
    "bidi": "pay \u202e001 \u2066x\u2069 \u200f",
    "invisible": "a\u200bb\u2060c\ufeffd\u00ade\U000e0041f\u3164g",
    "look-alike": "p\u0430ypal.com \uff41dmin \u13aa",
    "terminal": "\x1b[2J\x1b]0;title\x07\x1b]8;;http://evil\x07x\x9b31m\r\x08\x00",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>\"'></textarea><form action=//evil>",
    "template": "{{ 7*7 }}{% raw %}${7*7}",
    "spaces": "a" + " " * 40 + "b\tc\n\n\nd ",
    "zalgo": "e" + "\u0301" * 30,
}


class Receiver(ThreadingHTTPServer):
    """Takes webhooks; fails as often as it is told to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.failures = 1
        self.taken: list[tuple[str, dict[str, str], bytes]] = []
        self.begun: list[tuple[str, bytes]] = []
        self.answers = threading.Event()
        self.answers.set()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/hooks":
            self.server.begun.append((self.headers["webhook-id"], body))
        self.server.answers.wait(120)
        if self.path == "/hooks" and self.server.failures > 0:
            self.server.failures -= 1
            self.send_response(500)
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.server.taken.append((self.path, headers, body))
            self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("safety")
    (folder / "secret").write_text(SECRET, "utf-8")
    address = f"http://127.0.0.1:{receiver.server_address[1]}"
    (folder / "hooks.yaml").write_text(
        f"ops: {{url: '{address}/hooks', secret: whsec_{KEY}, groups: [ops]}}\n"
        f"chat: {{url: '{address}/slack', kind: slack}}\n"
        f"other: {{url: '{address}/other', secret: whsec_{KEY}, groups: [others]}}\n",
        "utf-8",
    )
    made = make_server(
        folder,
        *("--trusted-proxies", "127.0.0.1/32", "--proxy-secret-file", str(folder / "secret")),
        *("--webhooks-file", str(folder / "hooks.yaml"), "--body-s", "2"),
    )
    yield made
    made.stop()


def ask(server: Server, script: str = MAIL) -> tuple[str, dict[str, Any]]:
    """Submit a script that asks, and return run and approval."""
    run = server.submit(script)["id"]
    (approval,) = server.pending(1, run=run)
    return run, approval


def log_in(server: Server, who: str) -> tuple[requests.Session, str]:
    """Return a browser's session and its form token."""
    session = requests.Session()
    answer = session.post(
        f"{server.url}/login",
        data={"token": server.tokens[who]},
        headers={"origin": server.url},
        allow_redirects=False,
        timeout=20,
    )
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"].split(";")[0]
    session.cookies.clear()
    session.headers["cookie"] = cookie
    page = session.get(server.url, timeout=20).text
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', page)
    assert found is not None
    return session, found.group(1)


def state_of(server: Server, approval: dict[str, Any]) -> str:
    return str(server.api("olga", "GET", f"/v1/approvals/{approval['id']}").json()["state"])


# ------------------------------------------------------------ pages of other sites


def test_a_form_of_another_site_decides_nothing(server: Server) -> None:
    run, approval = ask(server)
    session, token = log_in(server, "olga")
    form = {"verdict": "approve", "digest": approval["digest"], "form_token": token}
    url = f"{server.url}/approvals/{approval['id']}"
    foreign: list[tuple[dict[str, str], dict[str, str]]] = [
        ({"origin": "https://evil.example"}, form),
        ({"origin": "null"}, form),
        ({"sec-fetch-site": "cross-site"}, form),
        ({"sec-fetch-site": "same-site", "origin": server.url}, form),
        ({"sec-fetch-site": "none"}, form),
        ({}, form),
        ({"origin": server.url}, {**form, "form_token": "0" * 64}),
        ({"origin": server.url}, {"verdict": "approve", "digest": approval["digest"]}),
        ({"sec-fetch-site": "same-origin", "origin": "https://evil.example"}, form),
    ]
    for headers, data in foreign:
        answer = session.post(url, data=data, headers=headers, timeout=20)
        assert answer.status_code == 403, headers
    as_json = session.post(url, json=form, headers={"origin": server.url}, timeout=20)
    assert as_json.status_code == 415
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        answer = session.request(method, url, params=form, headers={"origin": server.url}, timeout=20)
        assert answer.status_code in (200, 405)
    assert state_of(server, approval) == "pending"
    fine = session.post(
        url, data=form, headers={"sec-fetch-site": "same-origin", "origin": server.url}, timeout=20
    )
    assert fine.status_code == 200
    server.finished(run)


def test_a_form_token_of_somebody_else_is_refused(server: Server) -> None:
    run, approval = ask(server)
    _, token_of_otto = log_in(server, "otto")
    session, _ = log_in(server, "olga")
    form = {"verdict": "approve", "digest": approval["digest"], "form_token": token_of_otto}
    answer = session.post(
        f"{server.url}/approvals/{approval['id']}", data=form, headers={"origin": server.url}, timeout=20
    )
    assert answer.status_code == 403
    assert state_of(server, approval) == "pending"
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


def test_a_cookie_opens_no_door_of_the_api(server: Server) -> None:
    session, _ = log_in(server, "olga")
    assert session.get(f"{server.url}/v1/approvals", timeout=20).status_code == 401
    assert session.post(f"{server.url}/v1/runs", json={"script": "1"}, timeout=20).status_code == 401


def test_no_page_can_be_framed_and_none_runs_foreign_code(server: Server) -> None:
    session, _ = log_in(server, "olga")
    for path in ("/", "/login", "/runs", "/nowhere", "/static/console.js", "/v1/me", "/healthz"):
        headers = session.get(server.url + path, timeout=20).headers
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == ("max-age=300" if path.startswith("/static/") else "no-store")
    templates = Path(__file__).parents[2] / "bridge" / "bascule" / "console" / "templates"
    for template in templates.glob("*.html"):
        text = template.read_text("utf-8")
        assert not re.search(r"\son[a-z]+=|<script(?! src=\"/static/)|style=|javascript:|\|\s*safe", text), (
            template
        )


def test_a_name_that_was_made_to_point_here_is_refused(server: Server) -> None:
    """DNS rebinding: the browser believes it speaks to another site, and says so in Host."""
    port = urlsplit(server.url).port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", ""):
        answer = requests.get(f"{server.url}/login", headers={"host": host}, timeout=20)
        assert answer.status_code == 421 or answer.status_code == 400, host
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}"):
        assert requests.get(f"{server.url}/login", headers={"host": host}, timeout=20).status_code == 200


def test_a_session_that_somebody_planted_is_not_taken_over(server: Server) -> None:
    planted = "__Host-bascule=planted-by-an-attacker"
    answer = requests.post(
        f"{server.url}/login",
        data={"token": server.tokens["olga"], "next": "//evil.example/"},
        headers={"origin": server.url, "cookie": planted},
        allow_redirects=False,
        timeout=20,
    )
    given = answer.headers["set-cookie"]
    assert answer.headers["location"] == "/"
    assert given.startswith("__Host-bascule=")
    assert "planted" not in given
    assert all(word in given for word in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/"))
    refused = requests.get(server.url, headers={"cookie": planted}, allow_redirects=False, timeout=20)
    assert refused.headers["location"].startswith("/login")


def test_logging_out_ends_the_session_on_the_server(server: Server) -> None:
    session, token = log_in(server, "olga")
    session.post(
        f"{server.url}/logout",
        data={"form_token": token},
        headers={"origin": server.url},
        allow_redirects=False,
        timeout=20,
    )
    again = session.get(server.url, allow_redirects=False, timeout=20)
    assert again.headers["location"].startswith("/login")


def test_guessing_tokens_is_slowed_down(server: Server) -> None:
    """From an address of its own: whoever comes from one that guesses is locked out, and nobody else."""
    host = urlsplit(server.url).netloc

    def send(method: str, path: str, body: str = "", **headers: str) -> int:
        connection = http.client.HTTPConnection(host, timeout=60, source_address=("127.0.0.9", 0))
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            return connection.getresponse().status

    statuses = [send("GET", "/v1/me", authorization=f"Bearer bsc_{number}") for number in range(14)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert send("GET", "/v1/me", authorization=f"Bearer {server.tokens['olga']}") == 429
    form = {"content-type": "application/x-www-form-urlencoded", "origin": server.url}
    assert send("POST", "/login", "token=x", **form) == 429
    assert server.api("olga", "GET", "/v1/me").status_code == 200


# ------------------------------------------------------------ trusted proxies


def test_a_proxy_vouches_only_with_its_secret(server: Server) -> None:
    run, approval = ask(server)
    vouched = {
        "x-forwarded-user": "olga",
        "x-forwarded-groups": "bascule-operators",
        "x-bascule-proxy-secret": SECRET,
    }
    for wrong in (
        {"x-bascule-proxy-secret": "guess"},
        {"x-forwarded-user": ""},
        {"x-forwarded-user": "a\u00e4\x01"},
    ):
        headers = {name: value.encode("latin-1") for name, value in {**vouched, **wrong}.items()}
        answer = requests.get(server.url, headers=headers, allow_redirects=False, timeout=20)
        assert answer.status_code in (303, 400)
    page = requests.get(f"{server.url}/approvals/{approval['id']}", headers=vouched, timeout=20).text
    token = re.search(r'name="form_token" value="([0-9a-f]{64})"', page)
    assert token is not None
    form = {"verdict": "approve", "digest": approval["digest"], "form_token": token.group(1)}
    url = f"{server.url}/approvals/{approval['id']}"
    viewer = {**vouched, "x-forwarded-groups": ""}
    origin = {"origin": server.url}
    assert requests.post(url, data=form, headers={**viewer, **origin}, timeout=20).status_code == 403
    assert requests.post(url, data=form, headers={**vouched, **origin}, timeout=20).status_code == 200
    result = server.finished(run)["result"]
    assert result["calls"][0]["approved_by"] == "olga"
    api = requests.get(f"{server.url}/v1/approvals", headers=vouched, timeout=20)
    assert api.status_code == 401  # the API takes tokens only


# ------------------------------------------------------------ clients that misbehave


def test_a_slow_client_is_let_go(server: Server) -> None:
    """A body that does not come keeps a connection for two seconds here, not for ever."""
    port = urlsplit(server.url).port
    with socket.create_connection(("127.0.0.1", port or 0), timeout=20) as raw:
        raw.sendall(
            f"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {server.tokens['app']}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
        )
        answer = raw.recv(4096)
    assert b" 408 " in answer.split(b"\r\n")[0]


def test_others_are_served_while_many_are_slow(server: Server) -> None:
    """Headers and bodies that do not come, on a hundred connections: each is closed, nobody else waits."""
    host = urlsplit(server.url).netloc
    post = f"POST /{{}} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n{{}}\r\n{{{{"
    token = f"Authorization: Bearer {server.tokens['app']}\r\n"
    kinds = ["", f"GET / HTTP/1.1\r\nHost: {host}\r\n", post.format("v1/me", ""), post.format("mcp", token)]
    address = ("127.0.0.1", urlsplit(server.url).port or 0)
    slow = [socket.create_connection(address, timeout=60) for _ in range(100)]
    for number, each in enumerate(slow):
        each.sendall(kinds[number % len(kinds)].encode())
    assert requests.get(f"{server.url}/readyz", timeout=60).status_code == 200
    for each in slow:
        while each.recv(4096):
            pass
        each.close()


def test_headers_without_end_are_refused(server: Server) -> None:
    port = urlsplit(server.url).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", "/login", headers={"x-long": "x" * (4 << 20)})
        status = connection.getresponse().status
    except (ConnectionError, http.client.HTTPException):
        status = 400
    finally:
        connection.close()
    assert status in (400, 431)


# ------------------------------------------------------------ notifications


def test_webhooks_are_signed_repeated_and_tell_no_arguments(server: Server, receiver: Receiver) -> None:
    run, approval = ask(server, 'mail.send(to="private@example.com", subject="very private")')

    def arrived(path: str) -> list[tuple[dict[str, str], bytes]]:
        return [
            (headers, body)
            for to, headers, body in receiver.taken
            if to == path and approval["id"].encode() in body
        ]

    headers, body = wait_until(lambda: arrived("/hooks"), within_s=60)[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(b"k" * 32, signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    told = json.loads(body)
    assert told["type"] == "approval.requested"
    assert told["data"]["url"] == f"{server.url}/approvals/{approval['id']}"
    _, slack = wait_until(lambda: arrived("/slack"), within_s=60)[0]
    assert f"<{server.url}/approvals/{approval['id']}|" in json.loads(slack)["text"]
    assert all(b"private" not in each for _, _, each in receiver.taken)
    assert receiver.failures == 0  # the first one failed and was sent again
    assert arrived("/other") == []
    receiver.failures = 1_000_000
    quick, second = ask(server)
    assert server.decide("olga", second, "approve").status_code == 200  # no approval waits for a delivery
    server.finished(quick)
    receiver.failures = 0
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


def test_a_notification_that_was_under_way_when_the_console_was_killed_is_sent_again(
    server: Server, receiver: Receiver
) -> None:
    receiver.answers.clear()
    try:
        run, approval = ask(server)

        def begun() -> list[str]:
            return [each for each, body in receiver.begun if approval["id"].encode() in body]

        (first,) = wait_until(begun, within_s=60)
        server.stop(signal.SIGKILL)
    finally:
        receiver.answers.set()
    server.start()
    assert set(wait_until(lambda: begun()[1:], within_s=60)) == {first}  # its id tells that it is the same
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


# ------------------------------------------------------------ texts


class Texts(HTMLParser):
    """Collects what a page shows, and every element that is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text += data


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_text_changes_what_an_operator_sees(server: Server, kind: str, capfd: Any) -> None:
    """In an argument, a key, the script, the output and the reason, on every page and in the log."""
    text = HOSTILE[kind]
    script = f"t = {text!r}\nprint(t)\nmail.send(to=t, subject='fixed', body=t)\nprint(t)"
    run, approval = ask(server, script)
    session, token = log_in(server, "olga")
    card = f"/approvals/{approval['id']}"
    answer = session.post(
        server.url + card,
        data={"verdict": "approve", "digest": approval["digest"], "form_token": token, "reason": text},
        headers={"origin": server.url},
        timeout=60,
    )
    assert answer.status_code == 200
    server.finished(run)
    raw = [char for char in text if show(char) != char and char not in "\n\t \\\u0301"]
    for path in (card, "/", f"/runs/{run}", "/history", "/audit", "/runs", "/tools", "/policy"):
        body = session.get(server.url + path, timeout=60).text
        page = Texts()
        page.feed(body)
        assert [char for char in raw if char in body] == [], path
        assert {tag for tag, _ in page.tags}.isdisjoint({"img", "iframe", "object", "embed", "base"}), path
        scripts = [attrs.get("src") for tag, attrs in page.tags if tag == "script"]
        assert scripts == ["/static/console.js"], path
        forms = {attrs.get("action", "") or "" for tag, attrs in page.tags if tag == "form"}
        assert all(action.startswith("/") and not action.startswith("//") for action in forms), path
        assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs), path
        if path == card:
            assert "fixed" in page.text
            for line in text.split("\n"):
                assert show(line) in page.text
    log = (server.folder / "serve.log").read_bytes()
    assert re.search(rb"[^\x20-\x7e\n]", log) is None  # ASCII lines of JSON and nothing else
    approved = session.get(server.url + card, timeout=60).text
    assert approval["digest"][:16] in approved


def surfaces(server: Server, run: str, approval: dict[str, Any], receiver: Receiver) -> dict[str, str]:
    """Return what each surface that is no page says of a call that waits."""
    where = {"server": ("--server", server.url), "store": ("--store", str(server.store))}
    commands = [
        ("approvals", "list"), ("approvals", "list", "--all", "--json"), ("approvals", "watch", "--once"),
        ("approvals", "show", approval["id"]), ("runs", "list"), ("runs", "show", run),
        ("runs", "show", run, "--journal"), ("runs", "show", run, "--journal", "--json"),
    ]  # fmt: skip
    said: dict[str, str] = {}
    for name, place in where.items():
        for words in commands:
            done = CliRunner().invoke(app, [*words, *place], env={"BASCULE_TOKEN": server.tokens["olga"]})
            assert done.exit_code == 0, done.output
            said[f"{name}: {' '.join(words)}"] = done.stdout

    def told(path: str) -> str:
        found = [body for to, _, body in receiver.taken if to == path and approval["id"].encode() in body]
        return found[0].decode() if found else ""

    said["webhook"] = wait_until(lambda: told("/hooks"), within_s=60)
    said["slack"] = wait_until(lambda: told("/slack"), within_s=60)
    said["log"] = (server.folder / "serve.log").read_text("utf-8")
    return said


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_text_changes_what_is_said_of_a_call_off_the_pages(
    server: Server, kind: str, receiver: Receiver
) -> None:
    """In arguments and script: cards and lists of both kinds of store, journal, webhooks, log."""
    text = HOSTILE[kind]
    run, approval = ask(server, f"t = {text!r}\nprint(t)\nmail.send(to=t, subject='fixed', body=t)")
    raw = [char for char in text if show(char) != char and char not in "\n\t \\\u0301"]
    for name, said in surfaces(server, run, approval, receiver).items():
        assert [char for char in raw if char in said] == [], name
        assert "\r" not in said, name
        if "approvals" in name:
            assert "mail.send" in said, name
            assert "approvals show" not in name or "fixed" in said, name
        if name.endswith("--json"):
            assert said.isascii(), name
            assert all(json.loads(line) for line in said.splitlines()), name
        if name in ("webhook", "slack"):
            assert text not in json.dumps(json.loads(said), ensure_ascii=False), name
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


def test_a_model_reads_what_was_printed_as_it_is_and_of_a_call_that_waits_no_text(server: Server) -> None:
    """Over MCP: the display function is for people; a model's next script needs the very characters."""
    text = "\n".join(HOSTILE.values())
    code = f"t = {text!r}\nprint(t)\nmail.send(to=t, subject='fixed', body=t)"

    async def speak() -> Any:
        http = httpx2.AsyncClient(headers={"authorization": f"Bearer {server.tokens['app']}"}, timeout=60)
        async with http, Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client:
            return await client.call_tool("run_script", {"code": code})

    answer = asyncio.run(speak())
    data = dict(answer.structured_content)
    assert data["status"] == "pending_approval"
    assert data.pop("output") == text + "\n"
    told = "".join(each.text for each in answer.content) + json.dumps(data, ensure_ascii=False)
    assert "mail.send" in told
    assert [char for char in text if show(char) != char and char in told and char not in "\n \\"] == []
    assert not any(each in told for each in HOSTILE.values())
    server.api("olga", "POST", f"/v1/runs/{data['run_id']}/cancel")


def test_names_of_people_are_shown_as_codes_where_they_look_like_others(
    server: Server, receiver: Receiver
) -> None:
    server.add_token("\u0430dmin <!here>", "run", key="impostor")
    run = server.submit(MAIL, "impostor")["id"]
    (approval,) = server.pending(1, run=run)
    for name, said in surfaces(server, run, approval, receiver).items():
        assert "\u0430" not in said, name
        if name == "slack":
            assert "<!here>" not in said  # would call everybody of a channel
    session, _ = log_in(server, "olga")
    for path in ("/", f"/approvals/{approval['id']}", f"/runs/{run}", "/runs", "/audit"):
        page = Texts()
        page.feed(session.get(server.url + path, timeout=60).text)
        assert "\u0430" not in page.text  # the value of a filter is no text
        assert "\\u0430dmin <!here>" in page.text
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


def test_a_text_of_a_megabyte_is_cut_with_length_and_hash(server: Server) -> None:
    run, approval = ask(server, "mail.send(to='a@b.de', subject='x' * 500_000)")
    session, _ = log_in(server, "olga")
    page = session.get(f"{server.url}/approvals/{approval['id']}", timeout=60)
    digest = hashlib.sha256(b"x" * 500_000).hexdigest()
    assert f"of 500000 characters left out, sha256 {digest[:16]}" in page.text
    assert len(page.text) < 2_000_000
    inbox = session.get(server.url, timeout=60)
    assert len(inbox.text) < 100_000
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


def test_large_and_deep_values_hide_nothing_off_the_pages(server: Server, receiver: Receiver) -> None:
    deep = "v = 1\nfor _ in range(50):\n    v = [v]\nprint(v)\n"
    script = deep + "mail.send(to='a@b.de', subject='s', body='x' * 500_000)"
    run, approval = ask(server, script)
    for name, said in surfaces(server, run, approval, receiver).items():
        # The log is as long as the life of its server: what counts is a line.
        said = max(said.splitlines(), key=len) if name == "log" else said
        assert len(said) < (2_000_000 if name.endswith("--json") else 50_000), (name, len(said))
        if "approvals" in name or name in ("webhook", "slack"):
            assert "mail.send" in said, name
        if "approvals show" in name:
            assert "a@b.de" in said, name
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


def test_deep_values_are_shown(server: Server) -> None:
    script = "v = 1\nfor _ in range(50):\n    v = [v]\nprint(v)\nv"
    run = server.submit(script, wait=30)
    assert run["outcome"] == "ok"
    session, _ = log_in(server, "olga")
    assert "[" * 50 in session.get(f"{server.url}/runs/{run['id']}", timeout=60).text


def test_a_registered_secret_is_on_no_page() -> None:
    """Pages show texts only through a `Shower`, which takes secrets out first."""
    from bascule.bridge.redaction import Redactor
    from bascule.console.shown import Shower

    shower = Shower(Redactor(["hunter2-secret"]).text)
    shown = [
        shower.text("x hunter2-secret"),
        shower.block("a\nhunter2-secret"),
        shower.json('{"a":"hunter2-secret"}'),
        str(shower.arguments('{"a":"hunter2-secret","b":["hunter2-secret"]}')),
    ]
    assert all("hunter2" not in each and "[redacted]" in each for each in shown)
