"""A real ``bascule serve`` in a process of its own, on a free port, with tools, rules and tokens."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import requests

from bascule.console.database import Database
from bascule.console.principal import Scope
from bascule.console.tokens import Tokens

T = TypeVar("T")

TOOLS: Final = '''
import os
import time
from pathlib import Path
from bascule.tools import tool

HERE = Path(__file__).parent

@tool(effects="read", name="crm.find", labels={"untrusted"})
def find(name: str) -> dict[str, str]:
    """Look a customer up."""
    return {"id": "C-1042", "email": "ada@example.com", "note": "x" * 2000}

@tool(effects="once", name="mail.send", labels={"external"})
def send(to: str, subject: str, body: str = "") -> str:
    """Send an e-mail to a customer."""
    with (HERE / "sent.txt").open("a") as file:
        file.write(f"{to} {subject}\\n")
    return "sent"

@tool(effects="once", name="billing.refund")
def refund(customer: str, amount: int) -> dict[str, str]:
    """Pay money back to a customer."""
    with (HERE / "refunds.txt").open("a") as file:
        file.write(f"{customer} {amount}\\n")
    return {"refund": "R-1"}

@tool(effects="once", name="slow.job")
def job(name: str) -> str:
    """Do something that takes long the first time, and dies with its host."""
    mark = HERE / "job.started"
    first = not mark.exists()
    with mark.open("a") as file:
        file.write(name + "\\n")
    if first:
        time.sleep(600)
    return "done"
'''

POLICY: Final = """
version: 1
groups:
  ops: [olga, otto]
rules:
  - {id: jobs, effect: allow, match: {tool: slow.job}}
  - id: mail
    effect: ask
    match: {tool: mail.send}
    approval:
      approvers: {groups: [ops]}
      expires_in: 24h
      may: [approve, edit, reject, respond, terminate]
      editable: [subject, body]
      grantable: [args_in_run, tool_in_run]
  - id: money
    effect: ask
    match: {tool: billing.refund}
    budget: {calls_per_day: 20, sum: {arg: amount, per: day, max: 5000}, on_exhausted: deny}
    approval: {approvers: {groups: [ops]}, quorum: 2, expires_in: null, may: [approve, reject]}
"""


@dataclass
class Server:
    """One server and the tokens of the people around it."""

    folder: Path
    flags: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    url: str = ""
    tokens: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def store(self) -> Path:
        """File of the store."""
        return self.folder / "runs.db"

    def start(self) -> Server:
        """Start it, and return when it is ready."""
        log = self.folder / "serve.log"
        with log.open("ab") as stream:
            begin = stream.tell()
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "bascule.cli.main", "serve", "--store", str(self.store),
                    "--tools", str(self.folder / "tools.py"), "--policy", str(self.folder / "policy.yaml"),
                    "--isolation", "process", "--unsafe-process-isolation", "--hold-warm-s", "0.3",
                    "--port", self.url.rpartition(":")[2] or "0", "--search-tools", "--scratch", *self.flags,
                ],
                stderr=stream,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip

        def ready() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, log.read_text("utf-8")[-3000:]
            text = log.read_bytes()[begin:].decode()
            found = re.search(r"console is at (http\S+)", text)
            if found is None:
                return False
            self.url = found.group(1)
            try:
                return requests.get(f"{self.url}/readyz", timeout=5).status_code == 200
            except requests.ConnectionError:
                return False

        wait_until(ready, within_s=60)
        return self

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it with a signal and return its exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(60)

    def add_token(self, name: str, scope: Scope, *groups: str, key: str = "", lasts_s: float = 3600.0) -> str:
        """Create a token and keep it under a key (its name otherwise)."""
        database = Database.beside(self.store)
        with contextlib.closing(database):
            secret, _ = Tokens(database).create(name, scope, groups=frozenset(groups), lasts_s=lasts_s)
        self.tokens[key or name] = secret
        return secret

    def api(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        """Send one request as somebody."""
        sent = {"authorization": f"Bearer {self.tokens[who]}", **headers}
        return requests.request(method, self.url + path, json=body, headers=sent, timeout=90)

    def submit(self, script: str, who: str = "app", *, wait: int = 0, **headers: str) -> dict[str, Any]:
        """Submit a script, and return the run."""
        answer = self.api(who, "POST", f"/v1/runs?wait={wait}", {"script": script}, **headers)
        assert answer.status_code in (200, 202), answer.text
        found: dict[str, Any] = answer.json()
        return found

    def pending(self, count: int, *, run: str | None = None) -> list[dict[str, Any]]:
        """Return the pending approvals once there are so many."""
        path = "/v1/approvals?limit=500" + (f"&run={run}" if run else "")

        def look() -> list[dict[str, Any]] | None:
            found = self.api("olga", "GET", path).json()["approvals"]
            return found if len(found) >= count else None

        return wait_until(look, within_s=60)

    def finished(self, run: str, who: str = "olga") -> dict[str, Any]:
        """Return a run once it is finished."""

        def look() -> dict[str, Any] | None:
            found = self.api(who, "GET", f"/v1/runs/{run}?wait=5").json()
            return found if found["status"] == "finished" else None

        return wait_until(look, within_s=90)

    def decide(self, who: str, approval: dict[str, Any], verdict: str, **more: Any) -> requests.Response:
        """Decide about an approval as it was read."""
        body = {"verdict": verdict, "digest": approval["digest"], **more}
        return self.api(who, "POST", f"/v1/approvals/{approval['id']}/decision", body)


def make_server(folder: Path, *flags: str, policy: str = POLICY) -> Server:
    """Start a server with the people of the tests: app submits, olga and otto approve, vera looks."""
    (folder / "tools.py").write_text(TOOLS, "utf-8")
    (folder / "policy.yaml").write_text(policy, "utf-8")
    server = Server(folder, flags).start()
    server.add_token("app", "run")
    server.add_token("olga", "approve")
    server.add_token("otto", "approve")
    server.add_token("vera", "view")
    server.add_token("ada", "admin", "ops")
    return server


def wait_until(look: Callable[[], T | None], *, within_s: float) -> T:
    """Return the first answer that is true."""
    until = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)
