"""Runs: the list, one run in full, what can be done with it, and the queue of unknown outcomes."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from bascule.bridge.approval_card import ApprovalState
from bascule.bridge.store import Answer
from bascule.console.api_runs import journal_response
from bascule.console.charts import draw_bytes, draw_calls
from bascule.console.live import follow_run
from bascule.console.pages import Visit, back, page
from bascule.console.problems import Problem
from bascule.console.reading import parse_json
from bascule.console.run_views import find_unknown, read_run_view
from bascule.console.schemas import Body, RunsQuery
from bascule.tools import canonical_json

EVENTS_SHOWN = 500


async def runs(visit: Visit) -> Response:
    """List runs, the newest first."""
    query = visit.query(RunsQuery)
    rows = await asyncio.to_thread(
        lambda: visit.console.store.runs(
            status=query.status,
            session=query.session,
            user=query.user,
            before=query.cursor,
            limit=query.limit + 1,
        )
    )
    more = len(rows) > query.limit and query.session is None
    return visit.page("runs.html", rows=rows[: query.limit], query=query, more=more)


async def run(visit: Visit) -> Response:
    """Show one run: what waits, its calls, its script, its events."""
    row = visit.console.find_run(visit.principal, visit.path("run"))
    store = visit.console.store
    view = await asyncio.to_thread(read_run_view, row, store)
    waiting = store.approvals.find(run_id=row.run_id, states=(ApprovalState.PENDING,), limit=20_000)
    marks: dict[int, list[int]] = {}
    for call in view.calls.values():
        marks.setdefault(call.line, []).append(call.seq)
    return visit.page(
        "run.html",
        row=row,
        view=view,
        waiting=waiting,
        marks=marks,
        calls_chart=draw_calls(view),
        bytes_chart=draw_bytes(view),
        script=view.script.split("\n") if view.script else [],
        events=view.entries[-EVENTS_SHOWN:],
        events_left_out=max(0, len(view.entries) - EVENTS_SHOWN),
    )


async def call(visit: Visit) -> Response:
    """Show one call of a run with its arguments and result in full."""
    row = visit.console.find_run(visit.principal, visit.path("run"))
    view = await asyncio.to_thread(read_run_view, row, visit.console.store)
    found = view.calls.get(int(visit.path("seq")))
    if found is None:
        raise Problem(404, "call_not_found", f"{row.run_id} has no such call")
    return visit.page("call_page.html", row=row, call=found)


class CountQuery(Body):
    """How many events a page shows."""

    count: int = 0


async def live_run(visit: Visit) -> Response:
    """Stream that a run has changed."""
    row = visit.console.find_run(visit.principal, visit.path("run"))
    return follow_run(visit.console, row.run_id, visit.query(CountQuery).count, allowed=visit.allowed)


async def cancel(visit: Visit) -> Response:
    """End a run."""
    row = visit.console.find_run(visit.principal, visit.path("run"))
    await visit.console.executor.cancel(row.run_id)
    return back(f"/runs/{row.run_id}")


async def resume(visit: Visit) -> Response:
    """Have a run go on now."""
    row = visit.console.find_run(visit.principal, visit.path("run"))
    await visit.console.desk.resume(row.run_id)
    return back(f"/runs/{row.run_id}")


async def journal(visit: Visit) -> Response:
    """Download a run's journal."""
    row = visit.console.find_run(visit.principal, visit.path("run"))
    return await journal_response(visit.console.store.journal(row.run_id), row)


async def unknown(visit: Visit) -> Response:
    """Show the calls that were started and whose end nobody saw."""
    found = await asyncio.to_thread(find_unknown, visit.console.store)
    return visit.page("unknown.html", found=found)


async def answer_unknown(visit: Visit) -> Response:
    """Take an operator's answer about one start of a call."""
    row = visit.console.find_run(visit.principal, visit.path("run"))
    form, seq = visit.form, int(visit.path("seq"))
    attempt = form.get("attempt", "")
    if not attempt.isdecimal() or len(attempt) > 6:
        raise Problem(422, "body_invalid", "load the page again, then answer")
    by = visit.principal.name
    match form.get("answer", ""):
        case "happened":
            value = canonical_json(parse_json(form.get("value", "").encode()))
            answer = Answer(kind="happened", value=value, by=by)
        case "did_not_happen":
            answer = Answer(kind="did_not_happen", by=by)
        case "tell_script":
            answer = Answer(kind="tell_script", by=by)
        case _:
            raise Problem(422, "body_invalid", "press one of the buttons")
    executor = visit.console.executor
    first = await asyncio.to_thread(lambda: executor.resolve(row.run_id, seq, answer, attempt=int(attempt)))
    if not first:
        raise Problem(409, "answered", f"somebody answered about call {seq} of {row.run_id} before")
    return back("/unknown")


ROUTES = (
    page("/runs", runs),
    page("/runs/{run}", run),
    page("/runs/{run}/calls/{seq:int}", call),
    page("/live/runs/{run}", live_run),
    page("/runs/{run}/journal", journal),
    page("/runs/{run}/cancel", cancel, "decide", method="POST"),
    page("/runs/{run}/resume", resume, "decide", method="POST"),
    page("/unknown", unknown),
    page("/runs/{run}/calls/{seq:int}/outcome", answer_unknown, "decide", method="POST"),
)
