"""Notifications over the time of an approval, by a clock that is moved by hand and real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bascule.bridge import Executor, LimitsError, ask_elsewhere
from bascule.bridge.approvals_table import ApprovalMove
from bascule.bridge.memory_store import MemoryStore
from bascule.console.database import Database
from bascule.console.outbox import RETRY_S, Outbox, Target, read_targets
from bascule.console.settings import Settings
from tests.unit.bridge.cards import make_record

pytestmark = pytest.mark.anyio


class Receiver(ThreadingHTTPServer):
    """Takes webhooks, answering with a status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.taken: list[dict[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.taken.append(json.loads(body))
        self.send_response(self.server.status)
        self.send_header("location", "http://127.0.0.1:1/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


class Clock:
    """A clock that is moved by hand."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Story:
    """One approval that lasts for a thousand seconds, and the outbox that tells of it."""

    def __init__(self, folder: Path, receiver: Receiver, *, lasts_s: float | None = 1000.0) -> None:
        self.store = MemoryStore()
        self.record = make_record(expires_at=None if lasts_s is None else 1000.0 + lasts_s)
        self.store.approvals.insert(self.record)
        self.clock = Clock(self.record.created_at)
        self.database = Database(folder / "console")
        url = f"http://127.0.0.1:{receiver.server_address[1]}/"
        target = Target(name="ops", url=url, kind="standard", secret=b"k" * 32)
        executor = Executor([], approver=ask_elsewhere, store=self.store)
        self.outbox = Outbox(
            self.database, executor, [target], base_url="https://console.example", now=self.clock
        )
        self.receiver = receiver

    async def at(self, seconds: float) -> list[str]:
        """Move the clock to so many seconds after the question, and return the types of what is then sent."""
        self.clock.now = self.record.created_at + seconds
        before = len(self.receiver.taken)
        self.outbox.note()
        await self.outbox.send_due()
        return [each["type"] for each in self.receiver.taken[before:]]


@pytest.fixture
def story(tmp_path: Path, receiver: Receiver) -> Iterator[Story]:
    made = Story(tmp_path, receiver)
    with closing(made.database):
        yield made


async def test_people_are_reminded_at_half_and_at_nine_tenths_once_each(story: Story) -> None:
    assert await story.at(0) == ["approval.requested"]
    assert await story.at(499) == []
    assert await story.at(500) == ["approval.reminder.50"]
    assert await story.at(899) == []
    assert await story.at(900) == ["approval.reminder.90"]
    assert "expires in 1 min 40 s" in story.receiver.taken[-1]["data"]["text"]
    assert await story.at(950) == []
    assert await story.at(1000) == []  # it is over: who comes now is too late


async def test_a_console_that_was_away_sends_the_last_reminder_only(story: Story) -> None:
    assert set(await story.at(950)) == {"approval.requested", "approval.reminder.90"}


async def test_what_never_expires_is_told_once(tmp_path: Path, receiver: Receiver) -> None:
    story = Story(tmp_path, receiver, lasts_s=None)
    with closing(story.database):
        assert await story.at(0) == ["approval.requested"]
        assert await story.at(10_000_000) == []


async def test_nobody_is_reminded_of_what_was_decided_while_the_webhook_was_away(story: Story) -> None:
    assert await story.at(0) == ["approval.requested"]
    story.receiver.status = 500
    assert await story.at(500) == ["approval.reminder.50"]  # and it failed
    story.store.approvals.move(ApprovalMove(id=story.record.id, version=1, state="approved"))
    story.receiver.status = 200
    assert await story.at(500 + RETRY_S[0]) == []


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_a_failed_delivery_is_tried_again_and_given_up_in_the_end(story: Story, status: int) -> None:
    """A redirect counts as failed: where it leads to, nobody has allowed."""
    story.receiver.status = status
    at = 0.0
    assert await story.at(at) == ["approval.requested"]
    for wait_s in RETRY_S:
        assert (await story.at(at + wait_s - 1)).count("approval.requested") == 0
        at += wait_s
        assert (await story.at(at)).count("approval.requested") == 1
    assert await story.at(at + 10_000_000) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/x", "http://127.0.0.1.evil.example/", "http://localhost@evil.example/",
        "http://127.0.0.1:80@evil.example/", "https://user:password@example.com/", "https:///x", "file:///etc/passwd",
        "ftp://127.0.0.1/", "https://exa mple.com/", "https://example.com/\\x0d\\x0aHost: x", "gopher://localhost/",
    ],
)  # fmt: skip
async def test_only_webhooks_that_keep_a_message_secret_are_taken(tmp_path: Path, url: str) -> None:
    hooks = tmp_path / "hooks.yaml"
    hooks.write_text(f'ops: {{url: "{url}", kind: slack}}\n', encoding="utf-8")
    with pytest.raises(LimitsError, match=r"hooks\.yaml cannot be used"):
        read_targets(Settings(webhooks_file=str(hooks)))


@pytest.mark.parametrize(
    "url", ["https://hooks.example/x", "http://127.0.0.1:9/x", "http://[::1]:9/", "http://localhost/"]
)
async def test_webhooks_by_https_and_on_this_machine_are_taken(tmp_path: Path, url: str) -> None:
    hooks = tmp_path / "hooks.yaml"
    hooks.write_text(f'ops: {{url: "{url}", kind: slack}}\n', encoding="utf-8")
    (target,) = read_targets(Settings(webhooks_file=str(hooks)))
    assert target.url == url
