"""The API's operations about approvals. Whatever the route, `Console.decide` writes the decision."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.responses import Response

from bascule.bridge.approval_card import ApprovalState, read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.console.approval_views import DECIDED, matches, reply_of, select
from bascule.console.live import follow_pending
from bascule.console.operation import Call, Operation
from bascule.console.principal import Principal
from bascule.console.problems import Problem, problem_of
from bascule.console.schemas import (
    ApprovalReply,
    ApprovalsQuery,
    ApprovalsReply,
    BatchBody,
    BatchItemReply,
    BatchReply,
    DecisionBody,
)
from bascule.console.state import Console
from bascule.wire import BasculeError

_READ_AT_ONCE: Final = 500


async def list_approvals(call: Call) -> ApprovalsReply:
    """List approvals."""
    query = call.given(ApprovalsQuery)
    pending = call.console.hub.pending
    if query.state == "pending":
        await call.console.hub.look()
        pending = call.console.hub.pending
        records = [each.record for each in select(pending, query, call.principal)]
        if query.cursor is not None:
            ids = [record.id for record in records]
            records = records[ids.index(query.cursor) + 1 :] if query.cursor in ids else []
    else:
        records = await asyncio.to_thread(find_decided, call.console, query, call.principal, query.limit + 1)
    page = records[: query.limit]
    cursor = page[-1].id if len(records) > query.limit else None
    return ApprovalsReply(approvals=[reply_of(each) for each in page], cursor=cursor, pending=len(pending))


def find_decided(
    console: Console, query: ApprovalsQuery, principal: Principal, limit: int
) -> list[ApprovalRecord]:
    """Return decided approvals, the newest first. Blocks."""
    states = DECIDED if query.state == "decided" else (ApprovalState(query.state),)
    found: list[ApprovalRecord] = []
    before = query.cursor
    while len(found) < limit:
        records = console.store.approvals.find(
            run_id=query.run, states=states, limit=_READ_AT_ONCE, newest=True, before=before
        )
        found += [each for each in records if matches(each, read_card(each), query, principal)]
        if len(records) < _READ_AT_ONCE:
            break
        before = records[-1].id
    return found[:limit]


async def stream_approvals(call: Call) -> Response:
    """Stream that the pending approvals have changed, now or since Last-Event-ID."""
    last = call.request.headers.get("last-event-id", "")
    return follow_pending(call.console, last, allowed=call.allowed)


async def get_approval(call: Call) -> ApprovalReply:
    """Show one approval."""
    return reply_of(find_approval(call.console, call.path("approval")))


def find_approval(console: Console, approval_id: str) -> ApprovalRecord:
    """Return an approval.

    Raises:
        Problem: 404.
    """
    record = console.store.approvals.get(approval_id)
    if record is None:
        raise Problem(404, "approval_not_found", f"there is no approval {approval_id}")
    return record


async def decide(call: Call) -> ApprovalReply:
    """Decide about one call."""
    body = call.given(DecisionBody)
    answer = answer_of(body)
    record = await asyncio.to_thread(
        lambda: call.console.decide(call.principal, call.path("approval"), answer, digest=body.digest)
    )
    return reply_of(record)


def answer_of(body: DecisionBody) -> dict[str, Any]:
    """Return what somebody answers, without who."""
    return body.model_dump(include={"verdict", "reason", "arguments", "response", "grant", "grant_count"})


async def get_batch(call: Call) -> ApprovalsReply:
    """Show the calls of a batch that are pending."""
    records = await asyncio.to_thread(call.console.find_batch, _batch(call))
    return ApprovalsReply(
        approvals=[reply_of(each) for each in records], cursor=None, pending=len(call.console.hub.pending)
    )


async def decide_batch(call: Call) -> BatchReply:
    """Decide about calls of a batch, each by itself; one that is refused does not stop the others."""
    items = call.given(BatchBody).decisions
    members = {record.id for record in await asyncio.to_thread(call.console.find_batch, _batch(call))}

    def write() -> list[BatchItemReply]:
        results: list[BatchItemReply] = []
        for item in items:
            if item.id not in members:
                detail = "it is not pending in this batch"
                results.append(BatchItemReply(id=item.id, state=None, code="not_in_batch", detail=detail))
                continue
            results.append(decide_one(call.console, call.principal, item.id, answer_of(item), item.digest))
        return results

    return BatchReply(results=await asyncio.to_thread(write))


def decide_one(
    console: Console, principal: Principal, approval_id: str, answer: dict[str, Any], digest: str
) -> BatchItemReply:
    """Write one decision of several, and say what became of it."""
    try:
        record = console.decide(principal, approval_id, answer, digest=digest)
    except BasculeError as error:
        problem = problem_of(error)
        return BatchItemReply(id=approval_id, state=None, code=problem.code, detail=problem.detail)
    return BatchItemReply(id=approval_id, state=reply_of(record).state)


def _batch(call: Call) -> str:
    return f"{call.path('run')}/{call.path('seq')}"


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        method="GET", path="/v1/approvals", handler=list_approvals, summary="List approvals.",
        rights=("read",), query=ApprovalsQuery, reply=ApprovalsReply,
    ),
    Operation(
        method="GET", path="/v1/approvals/events", handler=stream_approvals, rights=("read",),
        summary="Stream that the pending approvals have changed.", media_type="text/event-stream",
        also=(503,),
        headers=(("Last-Event-ID", "Nothing is told as long as they are those of this event."),),
    ),
    Operation(
        method="GET", path="/v1/approvals/{approval}", handler=get_approval, summary="Show an approval.",
        rights=("read",), reply=ApprovalReply, also=(404,),
    ),
    Operation(
        method="POST", path="/v1/approvals/{approval}/decision", handler=decide, rights=("decide",),
        summary="Decide about a call.", body=DecisionBody, reply=ApprovalReply, also=(404, 409),
    ),
    Operation(
        method="GET", path="/v1/batches/{run}/{seq:int}", handler=get_batch, rights=("read",),
        summary="Show the calls of a batch.", reply=ApprovalsReply, also=(404,),
    ),
    Operation(
        method="POST", path="/v1/batches/{run}/{seq:int}/decisions", handler=decide_batch,
        rights=("decide",), summary="Decide about calls of a batch.", body=BatchBody, reply=BatchReply,
        also=(404,),
    ),
)  # fmt: skip
"""Everything about approvals."""
