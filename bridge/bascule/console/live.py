"""Live news for pages: how many approvals are new, which are gone, whether a card or a run has changed.

Only numbers and ids of ours go over these streams, never a text that stems from a script.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from sse_starlette import EventSourceResponse, JSONServerSentEvent
from starlette.responses import Response

from bascule.console.approval_views import select
from bascule.console.hub import SEND_TIMEOUT_S
from bascule.console.principal import Principal
from bascule.console.schemas import ApprovalsQuery
from bascule.console.state import Console

_LOOK_S = 15.0


def follow_inbox(console: Console, principal: Principal, query: ApprovalsQuery, since: float) -> Response:
    """Stream how the inbox differs from the page that was rendered at ``since``."""
    return _stream(console, _inbox(console, principal, query, since))


def follow_run(console: Console, run_id: str, count: int) -> Response:
    """Stream a run's progress: its status and how many events are new since a page that had ``count``."""
    return _stream(console, _run(console, run_id, count))


def follow_approval(console: Console, approval_id: str, version: int) -> Response:
    """Stream whether an approval is still what a page shows."""
    return _stream(console, _approval(console, approval_id, version))


def _stream(console: Console, events: AsyncGenerator[JSONServerSentEvent]) -> Response:
    console.hub.check_place()
    return EventSourceResponse(_leaving(console, events), ping=15, send_timeout=SEND_TIMEOUT_S)


async def _leaving(
    console: Console, events: AsyncGenerator[JSONServerSentEvent]
) -> AsyncGenerator[JSONServerSentEvent]:
    with console.hub.place():
        async for event in events:
            yield event


async def _inbox(
    console: Console, principal: Principal, query: ApprovalsQuery, since: float
) -> AsyncGenerator[JSONServerSentEvent]:
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
        await console.hub.next(_LOOK_S)


async def _run(console: Console, run_id: str, count: int) -> AsyncGenerator[JSONServerSentEvent]:
    told = count
    while not console.hub.closed:
        row, entries = await console.hub.read_run(run_id)
        if row is None:
            return
        if len(entries) != told:
            told = len(entries)
            yield JSONServerSentEvent({"status": row.outcome or row.status, "events": told}, event="run")
        if row.status == "finished":
            return
        await console.hub.next(_LOOK_S)


async def _approval(console: Console, approval_id: str, version: int) -> AsyncGenerator[JSONServerSentEvent]:
    while not console.hub.closed:
        record = console.store.approvals.get(approval_id)
        if record is None or record.version != version:
            state = "gone" if record is None else str(record.state)
            yield JSONServerSentEvent({"state": state}, event="approval")
            return
        await console.hub.next(_LOOK_S)
