"""Inbox, card and batch: what waits for somebody, what it is about, and the forms that decide."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from bascule.bridge.approval_card import ApprovalState, Card, Grade, read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.decide import describe_demand
from bascule.bridge.edits import find_changes
from bascule.bridge.requests import describe_record
from bascule.bridge.result import JsonValue
from bascule.console.api_approvals import decide_one, find_approval
from bascule.console.approval_views import may_decide, select
from bascule.console.edit_fields import make_fields, read_fields
from bascule.console.live import follow_approval, follow_inbox
from bascule.console.pages import Visit, back, page
from bascule.console.problems import Problem, problem_of
from bascule.console.reading import parse_json
from bascule.console.run_views import CallView, read_run_view
from bascule.console.schemas import ApprovalsQuery, Body
from bascule.console.state import Console
from bascule.tools import canonical_json
from bascule.wire import BasculeError

ROWS: Final = 100
"""Approvals on one page of the inbox; filters and the next page give the others."""

CALLS_SHOWN: Final = 50
"""Calls before this one that a card shows, the newest."""

CONTEXT_LINES: Final = 6


@dataclass(frozen=True, slots=True)
class Rung:
    """One way of how far an approval may reach, with the exact rule it would save."""

    name: Grade
    text: str


class InboxQuery(ApprovalsQuery):
    """Filters of the page."""

    limit: int = ROWS


async def inbox(visit: Visit) -> Response:
    """Show what waits, soonest to expire first."""
    query = visit.query(InboxQuery)
    hub = visit.console.hub
    await hub.look()
    found = select(hub.pending, query, visit.principal)
    start = 0
    if query.cursor is not None:
        ids = [each.record.id for each in found]
        start = ids.index(query.cursor) + 1 if query.cursor in ids else len(ids)
    rows = found[start : start + ROWS]
    filters = {
        name: value for name in ("run", "tool", "user", "rule") if (value := getattr(query, name)) is not None
    }
    return visit.page(
        "inbox.html",
        rows=[(each.record, each.card, may_decide(each.card, visit.principal)) for each in rows],
        found=len(found),
        more=rows[-1].record.id if start + ROWS < len(found) else None,
        filters=filters,
        mine=query.mine,
        tools=sorted({each.card.tool for each in hub.pending})[:200],
        users=sorted({each.card.requester for each in hub.pending if each.card.requester is not None})[:200],
        rules=sorted({rule for each in hub.pending for rule in each.card.requirement.rules})[:200],
        since=time.time(),
    )


class LiveInboxQuery(ApprovalsQuery):
    """Filters of the page that listens, and when it was rendered."""

    since: float = 0.0


async def live_inbox(visit: Visit) -> Response:
    """Stream how the inbox changes."""
    query = visit.query(LiveInboxQuery)
    return follow_inbox(visit.console, visit.principal, query, query.since, allowed=visit.allowed)


class VersionQuery(Body):
    """The version a page shows."""

    version: int = 0


async def live_approval(visit: Visit) -> Response:
    """Stream whether a card is out of date."""
    return follow_approval(
        visit.console, visit.path("approval"), visit.query(VersionQuery).version, allowed=visit.allowed
    )


async def card(visit: Visit) -> Response:
    """Show one approval with everything somebody needs to decide."""
    record = find_approval(visit.console, visit.path("approval"))
    return await _show_card(visit, record)


async def _show_card(
    visit: Visit, record: ApprovalRecord, *, status: int = 200, problem: str = ""
) -> Response:
    console, card = visit.console, read_card(record)
    row = console.store.run(record.run_id)
    view = None if row is None else await asyncio.to_thread(read_run_view, row, console.store)
    calls = [] if view is None else [call for call in view.calls.values() if call.seq < record.seq]
    siblings = _siblings(console, record)
    script = [] if view is None else view.script.split("\n")
    arguments: dict[str, JsonValue] = json.loads(card.arguments)
    return visit.page(
        "card.html",
        status=status,
        problem=problem,
        record=record,
        card=card,
        shown=describe_record(record),
        row=row,
        demands=[describe_demand(demand) for demand in card.requirement.demands],
        changes=_changes(card),
        calls=calls[-CALLS_SHOWN:],
        calls_left_out=max(0, len(calls) - CALLS_SHOWN),
        siblings=siblings,
        script=script,
        context=_context(script, card.line),
        labels=_labels(console, calls),
        rungs=rungs_of(card),
        fields=make_fields(arguments, card.requirement.editable),
        open_=record.state == ApprovalState.PENDING,
        mine=may_decide(card, visit.principal),
    )


def _siblings(console: Console, record: ApprovalRecord) -> list[tuple[ApprovalRecord, Card]]:
    if not record.batch:
        return []
    found = console.store.approvals.find(run_id=record.run_id, limit=20_000)
    return [(each, read_card(each)) for each in found if each.batch == record.batch and each.id != record.id]


def _changes(card: Card) -> list[tuple[str, str, str]]:
    """Return what an edit changed so far: path, before, after."""
    if card.original is None:
        return []
    return diff(json.loads(card.original), json.loads(card.arguments))


def diff(before: dict[str, JsonValue], after: dict[str, JsonValue]) -> list[tuple[str, str, str]]:
    """Return what differs: path, JSON before, JSON after; a dash where there is nothing."""
    return [(path, _at(before, path), _at(after, path)) for path in find_changes(before, after)]


def _at(arguments: dict[str, JsonValue], path: str) -> str:
    value: JsonValue = arguments
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return "-" if value is arguments else canonical_json(value).decode()
        value = value[name]
    return canonical_json(value).decode()


def _context(script: list[str], line: int) -> list[tuple[int, str]]:
    first = max(1, line - CONTEXT_LINES)
    return list(enumerate(script[first - 1 : line + CONTEXT_LINES], first))


def _labels(console: Console, calls: Iterable[CallView]) -> list[str]:
    found: set[str] = set()
    for call in calls:
        tool = console.executor.registry.get(call.tool)
        if tool is not None and call.started_at is not None:
            found |= tool.labels
    return sorted(found)


def rungs_of(card: Card) -> list[Rung]:
    """Return the grants that can be given with an approval, each with its exact rule."""
    words = "as many more as stand below"
    return [Rung(rung, card.make_grant(rung, 1).describe(words)) for rung in card.requirement.grantable]


async def decide_card(visit: Visit) -> Response:
    """Take the decision of a card's form; an edit is shown as a diff before it is written."""
    record = find_approval(visit.console, visit.path("approval"))
    form = visit.form
    try:
        answer = _read_answer(form, read_card(record))
        if answer["verdict"] == "edit" and form.get("confirmed") != "yes":
            return _confirm_edit(visit, record, answer)
        await asyncio.to_thread(
            lambda: visit.console.decide(visit.principal, record.id, answer, digest=form.get("digest", ""))
        )
    except (BasculeError, Problem) as error:
        problem = error if isinstance(error, Problem) else problem_of(error)
        after = find_approval(visit.console, record.id)
        return await _show_card(visit, after, status=problem.status, problem=problem.detail)
    return back(f"/approvals/{record.id}")


def _read_answer(form: dict[str, str], card: Card) -> dict[str, Any]:
    verdict = form.get("verdict", "")
    if verdict not in ("approve", "edit", "reject", "respond", "terminate"):
        raise Problem(422, "body_invalid", "press one of the buttons")
    answer: dict[str, Any] = {"verdict": verdict, "reason": _lines(form.get("reason", ""))}
    if verdict == "approve":
        answer["grant"] = form.get("grant", "once")
        count = form.get("grant_count", "25")
        answer["grant_count"] = int(count) if count.isdecimal() and len(count) < 5 else 0
    elif verdict == "edit" and "arguments" in form:
        answer["arguments"] = parse_json(form["arguments"].encode())
    elif verdict == "edit":
        answer["arguments"] = read_fields(json.loads(card.arguments), form)
    elif verdict == "respond":
        answer["response"] = parse_json(form.get("response", "").encode())
    return answer


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _confirm_edit(visit: Visit, record: ApprovalRecord, answer: dict[str, Any]) -> Response:
    card = read_card(record)
    changes = diff(json.loads(card.arguments), answer["arguments"])
    if not changes:
        raise Problem(422, "edit_not_allowed", "the arguments are unchanged; approve instead")
    return visit.page(
        "edit.html",
        record=record,
        card=card,
        digest=visit.form.get("digest", ""),
        changes=changes,
        reason=answer["reason"],
        arguments=json.dumps(answer["arguments"], ensure_ascii=True),
    )


async def batch(visit: Visit) -> Response:
    """Show every call of a batch that is pending, in full."""
    return await _show_batch(visit, {})


async def _show_batch(visit: Visit, results: dict[str, str], *, status: int = 200) -> Response:
    name = f"{visit.path('run')}/{visit.path('seq')}"
    every = await asyncio.to_thread(
        lambda: visit.console.store.approvals.find(run_id=visit.path("run"), limit=20_000)
    )
    records = sorted((each for each in every if each.batch == name), key=lambda each: each.seq)
    if not records:
        raise Problem(404, "batch_not_found", f"there is no batch {name}")
    items = [(record, read_card(record)) for record in records]
    return visit.page(
        "batch.html",
        status=status,
        name=name,
        run_id=visit.path("run"),
        items=[
            (record, card, describe_record(record), may_decide(card, visit.principal))
            for record, card in items
        ],
        open_count=sum(record.state == ApprovalState.PENDING for record in records),
        results=results,
    )


async def decide_batch(visit: Visit) -> Response:
    """Take the decisions of a batch's form, each by itself, and say what became of each."""
    form = visit.form
    chosen = {name.partition(":")[2]: value for name, value in form.items() if name.startswith("verdict:")}
    answers = {
        approval_id: {"verdict": verdict, "reason": _lines(form.get(f"reason:{approval_id}", ""))}
        for approval_id, verdict in chosen.items()
        if verdict in ("approve", "reject")
    }

    def write() -> dict[str, str]:
        results: dict[str, str] = {}
        for approval_id, answer in answers.items():
            digest = form.get(f"digest:{approval_id}", "")
            done = decide_one(visit.console, visit.principal, approval_id, answer, digest)
            results[approval_id] = f"written: {done.state}" if done.state else f"not written: {done.detail}"
        return results

    return await _show_batch(visit, await asyncio.to_thread(write))


ROUTES = (
    page("/", inbox),
    page("/live/inbox", live_inbox),
    page("/live/approvals/{approval}", live_approval),
    page("/approvals/{approval}", card),
    page("/approvals/{approval}", decide_card, "decide", method="POST"),
    page("/batches/{run}/{seq:int}", batch),
    page("/batches/{run}/{seq:int}", decide_batch, "decide", method="POST"),
)
