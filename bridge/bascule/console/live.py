"""Live news for pages: how many approvals are new, which are gone, whether a card or a run has changed.

Only numbers and ids of ours go over these streams, never a text that stems from a script. A stream ends with
the token or login it was opened with.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from typing import Final

from sse_starlette import EventSourceResponse, JSONServerSentEvent
from starlette.responses import Response

from bascule.console.approval_views import select
from bascule.console.hub import SEND_TIMEOUT_S
from bascule.console.principal import Principal
from bascule.console.schemas import ApprovalsQuery
from bascule.console.state import Console

CHECK_S: Final = 5.0
"""How long a stream may go on after its token was revoked, or its login has ended."""

Allowed = Callable[[], bool]
"""Tells whether whoever opened a stream would be let in again."""

Event = JSONServerSentEvent | None
"""None where nothing is told: a look whether the stream may go on."""


def follow_inbox(
    console: Console, principal: Principal, query: ApprovalsQuery, since: float, *, allowed: Allowed
) -> Response:
    """Stream how the inbox differs from the page that was rendered at ``since``."""
    return stream(console, _inbox(console, principal, query, since), allowed=allowed)


def follow_run(console: Console, run_id: str, count: int, *, allowed: Allowed) -> Response:
    """Stream a run's progress: its status and how many events are new since a page that had ``count``."""
    return stream(console, _run(console, run_id, count), allowed=allowed)


def follow_approval(console: Console, approval_id: str, version: int, *, allowed: Allowed) -> Response:
    """Stream whether an approval is still what a page shows."""
    return stream(console, _approval(console, approval_id, version), allowed=allowed)


def follow_pending(console: Console, last: str, *, allowed: Allowed) -> Response:
    """Stream that the pending approvals are others than at an earlier event; programs then list them."""
    return stream(console, _pending(console, last), allowed=allowed)


def stream(console: Console, events: AsyncGenerator[Event], *, allowed: Allowed) -> Response:
    """Return events as a response, as long as whoever asked is let in.

    Raises:
        Problem: 503: all places are taken.
    """
    console.hub.check_place()
    return EventSourceResponse(_leaving(console, events, allowed), ping=15, send_timeout=SEND_TIMEOUT_S)


async def _leaving(
    console: Console, events: AsyncGenerator[Event], allowed: Allowed
) -> AsyncGenerator[JSONServerSentEvent]:
    checked_at = time.monotonic()
    with console.hub.place():
        async for event in events:
            if time.monotonic() - checked_at >= CHECK_S:
                if not allowed():
                    return
                checked_at = time.monotonic()
            if event is not None:
                yield event


async def _pending(console: Console, last: str) -> AsyncGenerator[Event]:
    hub = console.hub
    while not hub.closed:
        now = hub.revision
        if now != last:
            last = now
            yield JSONServerSentEvent({"pending": len(hub.pending_ids)}, event="approvals", id=now)
        else:
            yield None
        await hub.next(CHECK_S)


async def _inbox(
    console: Console, principal: Principal, query: ApprovalsQuery, since: float
) -> AsyncGenerator[Event]:
    hub = console.hub
    shown, seen = hub.pending_ids, hub.looks
    filtered = query.mine or any((query.run, query.tool, query.user, query.rule))
    told: object = None
    while not hub.closed:
        ids = hub.pending_ids
        if filtered:
            fresh = sum(each.record.created_at > since for each in select(hub.pending, query, principal))
        else:
            fresh = hub.count_since(since)
        left = hub.left_since(seen)
        gone = sorted(shown - ids if left is None else shown & left)
        seen = hub.looks
        news = {"pending": len(ids), "fresh": fresh, "gone": gone}
        if news != told:
            told = {**news, "gone": []}
            yield JSONServerSentEvent(news, event="inbox")
        else:
            yield None
        await hub.next(CHECK_S)


async def _run(console: Console, run_id: str, count: int) -> AsyncGenerator[Event]:
    told = count
    while not console.hub.closed:
        row, entries = await console.hub.read_run(run_id)
        if row is None:
            return
        if len(entries) != told:
            told = len(entries)
            yield JSONServerSentEvent({"status": row.outcome or row.status, "events": told}, event="run")
        else:
            yield None
        if row.status == "finished":
            return
        await console.hub.next(CHECK_S)


async def _approval(console: Console, approval_id: str, version: int) -> AsyncGenerator[Event]:
    while not console.hub.closed:
        record = console.store.approvals.get(approval_id)
        if record is None or record.version != version:
            state = "gone" if record is None else str(record.state)
            yield JSONServerSentEvent({"state": state}, event="approval")
            return
        yield None
        await console.hub.next(CHECK_S)
