"""Notifications: an outbox in the console's own tables, filled from the store, emptied with retries.

Nothing waits for a delivery, and a lost outbox is filled anew. Messages hold no arguments: who is notified
sees which tool asks, until when, and a link; the card itself needs a login. Webhooks are signed as Standard
Webhooks (https://www.standardwebhooks.com) says; incoming webhooks as Slack has them get a text with a link.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import requests

from bascule.bridge.approval_card import ApprovalState, read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.display import show
from bascule.bridge.errors import LimitsError
from bascule.bridge.executor import Executor
from bascule.console.database import Database
from bascule.console.settings import Settings
from bascule.console.shown import span
from bascule.wire import BasculeError

Kind = Literal["standard", "slack"]

RETRY_S: Final = (5.0, 30.0, 120.0, 600.0, 3600.0, 10_800.0)
"""Waits between attempts; after the last one a message is given up."""

REMIND_AT: Final = (0.5, 0.9)
"""Shares of an approval's time after which people are reminded of it."""

TIMEOUT_S: Final = 10.0
KEPT_S: Final = 7 * 86_400.0
_LOOK_S: Final = 1.0
_AT_ONCE: Final = 8
_log = logging.getLogger("bascule.console")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to deliver.

    Attributes:
        name: names it in the file and the outbox.
        secret: key of the signature; empty for slack.
        groups: only approvals that one of these groups may decide; empty for all.
    """

    name: str
    url: str
    kind: Kind
    secret: bytes = b""
    groups: frozenset[str] = frozenset()


def read_targets(settings: Settings) -> tuple[Target, ...]:
    """Read the file of webhooks.

    Raises:
        LimitsError: it cannot be used.
    """
    if not settings.webhooks_file:
        return ()
    from bascule.bridge.plain_yaml import parse_yaml

    path = Path(settings.webhooks_file)
    try:
        read: Any = parse_yaml(path.read_bytes())
        return tuple(_read_target(str(name), row) for name, row in read.items())
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise LimitsError(f"{path} cannot be used: {error}") from error


def _read_target(name: str, row: Any) -> Target:
    unknown = set(row) - {"url", "kind", "secret", "groups"}
    if unknown:
        raise ValueError(f"{name}: no such key: {', '.join(sorted(unknown))}")
    url, kind, secret = str(row["url"]), row.get("kind", "standard"), str(row.get("secret", ""))
    parts = urlsplit(url)
    local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
    if not (local or parts.scheme == "https") or not parts.hostname or not url.isprintable() or " " in url:
        raise ValueError(f"{name}: url must be https, or http on this machine")
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"{name}: url must hold no user and no password")
    if kind not in ("standard", "slack"):
        raise ValueError(f"{name}: kind must be standard or slack")
    key = b""
    if kind == "standard":
        if not secret.startswith("whsec_"):
            raise ValueError(f"{name}: secret must be whsec_ and base64, as Standard Webhooks has it")
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        if len(key) < 24:
            raise ValueError(f"{name}: secret must have 24 bytes or more")
    return Target(name=name, url=url, kind=kind, secret=key, groups=frozenset(row.get("groups", ())))


class Outbox:
    """Notes what is to be told to whom, and tells it at least once.

    Args:
        now: seconds since the epoch.
    """

    def __init__(
        self,
        database: Database,
        executor: Executor,
        targets: Sequence[Target],
        *,
        base_url: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._now = now
        self._database = database
        self._executor = executor
        self._targets = {target.name: target for target in targets}
        self._base_url = base_url

    async def deliver(self) -> None:
        """Note and send, until cancelled."""
        if not self._targets:
            return
        while True:
            try:
                await asyncio.to_thread(self.note)
                await self.send_due()
            except BasculeError as error:
                _log.error("notifications: %s", error)
            await self._executor.store.changed(_LOOK_S)
            await asyncio.sleep(0.1)

    def note(self) -> None:
        """Put what is new into the outbox: approvals that ask, reminders of those that expire. Blocks."""
        now = self._now()
        for record in self._executor.store.approvals.find(states=(ApprovalState.PENDING,), limit=10_000):
            self._note(record, "approval.requested", now)
            if record.expires_at is None:
                continue
            share = (now - record.created_at) / max(record.expires_at - record.created_at, 1.0)
            due = [at for at in REMIND_AT if share >= at]
            if due and now < record.expires_at:
                self._note(record, f"approval.reminder.{int(due[-1] * 100)}", now)
        self._database.write("DELETE FROM outbox WHERE sent_at < ?", now - KEPT_S)

    def _note(self, record: ApprovalRecord, kind: str, now: float) -> None:
        card = read_card(record)
        groups = {group for demand in card.requirement.demands for group in demand.groups}
        for target in self._targets.values():
            if target.groups and target.groups.isdisjoint(groups):
                continue
            known = self._database.read(
                "SELECT 1 FROM outbox WHERE target = ? AND kind = ? AND subject = ?",
                target.name,
                kind,
                record.id,
            )
            if known:
                continue
            body = self._body(target, record, kind)
            self._database.write(
                "INSERT OR IGNORE INTO outbox VALUES (?, ?, ?, ?, ?, ?, 0, ?, NULL, '')",
                *(f"msg_{secrets.token_hex(12)}", target.name, kind, record.id, body, now, now),
            )

    def _body(self, target: Target, record: ApprovalRecord, kind: str) -> bytes:
        card = read_card(record)
        link = f"{self._base_url}/approvals/{record.id}"
        tool = show(self._executor.redact(card.tool), max_chars=100)
        requester = show(card.requester or "nobody in particular", max_chars=100)
        left = "" if record.expires_at is None else f", expires in {span(record.expires_at - self._now())}"
        text = f"{tool} waits for a decision (run for {requester}{left})"
        if kind != "approval.requested":
            text = f"Reminder: {text}"
        if target.kind == "slack":
            plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            return json.dumps({"text": f"{plain}\n<{link}|Look at it>"}).encode()
        data = {
            "approval": record.id,
            "run": record.run_id,
            "seq": record.seq,
            "tool": tool,
            "requester": requester,
            "digest": record.digest,
            "expires_at": record.expires_at,
            "url": link,
            "text": text,
        }
        return json.dumps({"type": kind, "timestamp": _iso(self._now()), "data": data}).encode()

    async def send_due(self) -> None:
        """Send what is due, each target by itself."""
        rows = await asyncio.to_thread(
            self._database.read,
            "SELECT id, target, body, attempts, kind, subject FROM outbox WHERE sent_at IS NULL"
            " AND next_at <= ? ORDER BY next_at LIMIT 100",
            self._now(),
        )
        places = asyncio.Semaphore(_AT_ONCE)

        async def send(row: tuple[Any, ...]) -> None:
            async with places:
                await asyncio.to_thread(self._send, *row)

        await asyncio.gather(*map(send, rows))

    def _send(
        self, message_id: str, target_name: str, body: bytes, attempts: int, kind: str, subject: str
    ) -> None:
        target = self._targets.get(target_name)
        if target is None:
            problem = "its webhook is not in the file any more"
        elif kind != "approval.requested" and not self._is_pending(subject):
            problem = ""  # decided, or over, while its webhook was away
        else:
            problem = post(target, message_id, body)
        now = self._now()
        if not problem:
            self._database.write("UPDATE outbox SET sent_at = ?, failed = '' WHERE id = ?", now, message_id)
        elif target is None or attempts >= len(RETRY_S):
            _log.error("a notification to %s is given up: %s", target_name, problem)
            self._database.write(
                "UPDATE outbox SET sent_at = ?, failed = ? WHERE id = ?", now, problem, message_id
            )
        else:
            self._database.write(
                "UPDATE outbox SET attempts = attempts + 1, next_at = ?, failed = ? WHERE id = ?",
                *(now + RETRY_S[attempts], problem, message_id),
            )

    def _is_pending(self, approval_id: str) -> bool:
        record = self._executor.store.approvals.get(approval_id)
        over = record is None or (record.expires_at is not None and self._now() >= record.expires_at)
        return record is not None and not over and record.state == ApprovalState.PENDING


def post(target: Target, message_id: str, body: bytes) -> str:
    """Send one message; return what went wrong, or nothing."""
    headers = {"content-type": "application/json", "user-agent": "bascule"}
    if target.kind == "standard":
        headers |= sign(target.secret, message_id, int(time.time()), body)
    try:
        with requests.post(
            target.url, data=body, headers=headers, timeout=TIMEOUT_S, allow_redirects=False, stream=True
        ) as answer:
            return "" if answer.status_code < 300 else f"it answered {answer.status_code}"
    except requests.RequestException as error:
        return f"{type(error).__name__}"


def sign(secret: bytes, message_id: str, at: int, body: bytes) -> dict[str, str]:
    """Return the headers of Standard Webhooks."""
    digest = hmac.digest(secret, f"{message_id}.{at}.".encode() + body, hashlib.sha256)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _iso(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
