"""Who is let in where: every route of the application is tried without a token, and with one that submits."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from starlette.routing import Route

from bascule.bridge import Executor, ask_elsewhere
from bascule.bridge.sqlite_store import SqliteStore
from bascule.cli.serve_mcp import mount_mcp
from bascule.console import build_app
from bascule.console.app import OPERATIONS
from bascule.console.database import Database
from bascule.console.live import CHECK_S
from bascule.console.settings import Settings
from bascule.console.tokens import Tokens
from tests.integration.console_server import Server

OPEN: Final = {"/healthz", "/readyz", "/v1/openapi.json", "/static/{path:path}", "/login"}
"""Whoever can reach the console may see these."""

MAIL: Final = 'print(mail.send(to="ada@example.com", subject="Hello"))'
BODIES: Final[dict[str, Any]] = {
    "/v1/approvals/{approval}/decision": {"verdict": "approve"},
    "/v1/batches/{run}/{seq:int}/decisions": {"decisions": [{"verdict": "approve"}]},
    "/v1/runs/{run}/calls/{seq:int}/outcome": {"answer": "tell_script", "attempt": 1},
}


@pytest.fixture(scope="module")
def server(console: Server) -> Server:
    return console


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Return method and path of each route, from the application itself."""
    folder = tmp_path_factory.mktemp("routes")
    with closing(SqliteStore(folder / "x.db")) as store, closing(Database(folder / "x.console")) as database:
        app = build_app(Executor([], approver=ask_elsewhere, store=store), database, Settings())
        assert mount_mcp(app)
        found: list[tuple[str, str]] = []
        for route in app.routes:
            assert isinstance(route, Route)  # a mount would hide what is below it from this test
            methods = (route.methods or {"GET", "POST", "DELETE"}) - {"HEAD"}
            found += [(method, route.path) for method in sorted(methods)]
    assert len(found) > len(OPERATIONS) + 20
    return found


def fill(path: str, approval: dict[str, Any] | None = None) -> str:
    """Put something into each place of a path."""
    values = {"approval": "apr-x", "run": "run-x", "seq": "1"}
    if approval is not None:
        values = {"approval": approval["id"], "run": approval["run_id"], "seq": str(approval["seq"])}
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda found: values.get(found.group(1), "x"), path)


def test_nobody_gets_anything_without_a_token(server: Server, routes: list[tuple[str, str]]) -> None:
    for method, path in routes:
        if path in OPEN:
            continue
        answer = requests.request(
            method, server.url + fill(path), headers={"origin": server.url}, allow_redirects=False, timeout=60
        )
        if path.startswith(("/v1/", "/mcp")):
            assert answer.status_code == 401, (method, path)
        else:
            assert answer.status_code == 303, (method, path)
            assert answer.headers["location"].startswith("/login"), (method, path)
        assert "set-cookie" not in answer.headers
        assert len(answer.content) < 300


def test_a_token_that_submits_decides_by_no_route(server: Server, routes: list[tuple[str, str]]) -> None:
    """Everything that is no GET is tried, with bodies that would decide; in the approvers' group, too."""
    server.add_token("olga", "run", "ops", key="olga-run")
    run = server.submit(MAIL)["id"]
    (approval,) = server.pending(1, run=run)
    submits = {(row.method, row.path) for row in OPERATIONS if "submit" in row.rights}
    session = requests.Session()
    for who in ("app", "olga-run"):
        session.headers.update({"authorization": f"Bearer {server.tokens[who]}", "origin": server.url})
        login = session.post(
            f"{server.url}/login", data={"token": server.tokens[who]}, allow_redirects=False, timeout=60
        )
        assert (login.status_code, "set-cookie" in login.headers) == (403, False)
        for method, path in routes:
            if path in OPEN or path == "/mcp" or (method, path) in submits:
                continue
            target = server.url + fill(path, approval)
            if path.startswith("/v1/"):
                body = BODIES.get(path)
                if body is not None:
                    body = {**body, "digest": approval["digest"], "id": approval["id"]}
                answer = session.request(method, target, json=body, timeout=60)
                assert (answer.status_code, answer.json()["code"]) == (403, "right_missing"), (method, path)
            else:
                form = {"verdict": "approve", "digest": approval["digest"]} if method == "POST" else None
                answer = session.request(method, target, data=form, allow_redirects=False, timeout=60)
                assert answer.status_code == 303, (method, path)
                assert answer.headers["location"].startswith("/login"), (method, path)
    session.close()
    after = server.api("olga", "GET", f"/v1/approvals/{approval['id']}").json()
    assert (after["state"], after["decisions"]) == ("pending", [])
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


def test_open_streams_end_with_the_token_or_login(server: Server) -> None:
    """Within `CHECK_S` and the time to look; what is waited for is the end of each stream."""
    run = server.submit(MAIL)["id"]
    (approval,) = server.pending(1, run=run)
    pages = ["/live/inbox", f"/live/runs/{run}?count=1", f"/live/approvals/{approval['id']}?version=1"]
    api = ["/v1/approvals/events", f"/v1/runs/{run}/events"]
    streams: list[requests.Response] = []
    cookies: dict[str, dict[str, str]] = {}
    for how in ("revoked", "expired", "logged out"):
        server.add_token(how, "view")
        login = requests.post(
            f"{server.url}/login", data={"token": server.tokens[how]}, headers={"origin": server.url},
            allow_redirects=False, timeout=60,
        )  # fmt: skip
        cookies[how] = {"cookie": login.headers["set-cookie"].split(";")[0]}
        bearer = {"authorization": f"Bearer {server.tokens[how]}"}
        asked = [(path, cookies[how]) for path in pages]
        asked += [(path, bearer) for path in api if how != "logged out"]
        streams += [
            requests.get(server.url + path, headers=headers, stream=True, timeout=CHECK_S + 60)
            for path, headers in asked
        ]
    assert [each.status_code for each in streams] == [200] * 13
    with closing(Database.beside(server.store)) as database:
        tokens = Tokens(database)
        ids = {each.name: each.id for each in tokens.all()}
        assert tokens.revoke(ids["revoked"])
        database.write("UPDATE tokens SET expires_at = ? WHERE id = ?", time.time(), ids["expired"])
    page = requests.get(f"{server.url}/tools", headers=cookies["logged out"], timeout=60).text
    found = re.search('form_token" value="([0-9a-f]+)"', page)
    assert found is not None
    requests.post(
        f"{server.url}/logout", data={"form_token": found.group(1)},
        headers={**cookies["logged out"], "origin": server.url}, allow_redirects=False, timeout=60,
    )  # fmt: skip
    until = time.monotonic() + 120
    for each in streams:
        for _ in each.iter_content(None):
            assert time.monotonic() < until
        each.close()
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--tools", "nothing.py"), "nothing.py"),
        (("--policy", "rules.yaml"), "rules.yaml"),
        (("--webhooks-file", "hooks.yaml"), "url must be https"),
        (("--trusted-proxies", "10.0.0.1/32", "--proxy-secret-file", "none"), "cannot be read"),
    ],
)
def test_a_console_that_cannot_begin_leaves_no_files(
    tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    (tmp_path / "rules.yaml").write_text("version: 1\nrules: [{id: x, effect: maybe}]\n")
    (tmp_path / "hooks.yaml").write_text("ops: {url: 'http://192.0.2.1/x', kind: slack}\n")
    before = sorted(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "bascule.cli.main", "serve", "--store", "runs.db", "--port", "0", *flags],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode not in (0, 70), done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_the_first_token_is_of_an_admin_and_ends(server: Server) -> None:
    with closing(Database.beside(server.store)) as database:
        first = Tokens(database).all()[0]
    assert (first.name, first.scope) == ("admin", "admin")
    assert first.expires_at is not None
    assert first.expires_at - first.created_at == 90 * 86_400
