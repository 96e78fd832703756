"""The API's operations about runs and sessions."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncGenerator
from typing import Final

from sse_starlette import JSONServerSentEvent
from starlette.responses import Response, StreamingResponse

from bascule.bridge.errors import RunNotFound
from bascule.bridge.journal import EventKind, Journal, JournalEntry
from bascule.bridge.store import Answer, RunRecord
from bascule.console.live import CHECK_S, stream
from bascule.console.operation import Call, Operation, reply
from bascule.console.problems import Problem
from bascule.console.run_views import find_unknown, list_reply, read_run_view, run_reply, unknown_reply
from bascule.console.schemas import (
    DoneReply,
    OutcomeBody,
    RunBody,
    RunReply,
    RunsQuery,
    RunsReply,
    SessionReply,
    UnknownsReply,
    WaitQuery,
)
from bascule.console.state import require
from bascule.tools import canonical_json

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
_ANCHOR: Final = re.compile(r"[0-9]{1,9}")


async def submit(call: Call) -> Response:
    """Begin a run, or find the one that was begun with the same key."""
    body = call.given(RunBody)
    wait_s = call.given(WaitQuery).wait
    key = call.request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise Problem(422, "key_invalid", "Idempotency-Key: 1 to 255 visible ASCII characters")
    run_id, fresh = await call.console.desk.submit(
        call.principal,
        body.script,
        seed=body.seed,
        session=body.session,
        key=key,
        body_sha256=hashlib.sha256(call.raw).hexdigest(),
    )
    row = await _settled(call, run_id, wait_s)
    status = 200 if row.status == "finished" else 202
    headers = {"Location": f"/v1/runs/{run_id}"}
    if not fresh:
        headers["Idempotent-Replayed"] = "true"
    return reply(await _detail(call, row), status, **headers)


async def _settled(call: Call, run_id: str, wait_s: float) -> RunRecord:
    """Return the row of a run once it is finished or suspended, or the time is over."""
    until = time.monotonic() + wait_s
    while True:
        row = call.console.find_run(call.principal, run_id)
        left_s = until - time.monotonic()
        if row.status != "running" or left_s <= 0 or call.console.hub.closed:
            return row
        await call.console.store.changed(min(left_s, 0.2))


async def _detail(call: Call, row: RunRecord) -> RunReply:
    store = call.console.store
    view = await asyncio.to_thread(read_run_view, row, store)
    return run_reply(row, view, store)


async def list_runs(call: Call) -> RunsReply:
    """List runs, the newest first."""
    query = call.given(RunsQuery)
    user = query.user
    if not call.principal.may("read"):
        if user not in (None, call.principal.name):
            raise Problem(403, "right_missing", "this token sees the runs of its own user only")
        user = call.principal.name

    def read() -> tuple[list[RunRecord], list[RunReply]]:
        store = call.console.store
        rows = store.runs(
            status=query.status, session=query.session, limit=query.limit, user=user, before=query.cursor
        )
        return rows, [list_reply(row, store) for row in rows[: query.limit]]

    rows, replies = await asyncio.to_thread(read)
    cursor = rows[-1].run_id if len(rows) >= query.limit and query.session is None else None
    return RunsReply(runs=replies, cursor=cursor)


async def get_run(call: Call) -> Response:
    """Show one run, waiting for its end if asked to."""
    row = await _settled(call, call.path("run"), call.given(WaitQuery).wait)
    return reply(await _detail(call, row), 200)


async def stream_events(call: Call) -> Response:
    """Stream what a run's journal says, from the beginning or after Last-Event-ID; ends with the run."""
    row = call.console.find_run(call.principal, call.path("run"))
    given = call.request.headers.get("last-event-id", "")
    if given and not _ANCHOR.fullmatch(given):
        raise Problem(422, "event_id_invalid", "Last-Event-ID: the number of an event of this run")
    after = int(given) if given else -1
    return stream(call.console, _follow(call, row.run_id, after), allowed=call.allowed)


async def _follow(call: Call, run_id: str, after: int) -> AsyncGenerator[JSONServerSentEvent | None]:
    hub = call.console.hub
    while not hub.closed:
        row, entries = await hub.read_run(run_id)
        for entry in entries[after + 1 :]:
            yield _event(entry)
            after = entry.index
        if row is None or row.status == "finished":
            return
        yield None
        await hub.next(CHECK_S)


def _event(entry: JournalEntry) -> JSONServerSentEvent:
    data: dict[str, object] = {"kind": str(entry.kind), "at": entry.at, "facts": dict(entry.facts)}
    if entry.kind is EventKind.OUTPUT and entry.payload is not None:
        data["text"] = entry.payload.decode("utf-8", "replace")
    if entry.kind is EventKind.FINISHED and entry.payload is not None:
        data["result"] = json.loads(entry.payload)
    return JSONServerSentEvent(data, event=str(entry.kind), id=str(entry.index))


async def cancel(call: Call) -> DoneReply:
    """End a run, wherever it is; effects that were started end first."""
    row = call.console.find_run(call.principal, call.path("run"))
    return DoneReply(done=await call.console.executor.cancel(row.run_id))


async def resume(call: Call) -> DoneReply:
    """Have a run go on now that would go on by itself later."""
    row = call.console.find_run(call.principal, call.path("run"))
    return DoneReply(done=await call.console.desk.resume(row.run_id))


async def download(call: Call) -> Response:
    """Download a run's journal; a finished one is a recording for `bascule runs replay`."""
    row = call.console.find_run(call.principal, call.path("run"))
    return await journal_response(call.console.store.journal(row.run_id), row)


async def journal_response(journal: Journal | None, row: RunRecord) -> Response:
    """Return the journal of a run as a file."""
    if journal is None:
        raise RunNotFound(row.run_id)
    entries = await asyncio.to_thread(lambda: journal.entries)
    lines = (_line(entry) for entry in entries)
    name = f'attachment; filename="{row.run_id}.jsonl"'
    return StreamingResponse(lines, media_type="application/x-ndjson", headers={"content-disposition": name})


def _line(entry: JournalEntry) -> bytes:
    payload = None if entry.payload is None else entry.payload.decode("utf-8", "replace")
    line = {
        "index": entry.index,
        "kind": str(entry.kind),
        "at": entry.at,
        "facts": dict(entry.facts),
        "payload": payload,
    }
    return json.dumps(line).encode() + b"\n"


async def list_unknown(call: Call) -> UnknownsReply:
    """List calls that were started and whose end nobody saw."""
    found = await asyncio.to_thread(find_unknown, call.console.store)
    return UnknownsReply(unknown=[unknown_reply(row, each) for row, each in found])


async def answer_unknown(call: Call) -> DoneReply:
    """Say what became of a call; False when somebody said so before."""
    require(call.principal, "decide")
    body = call.given(OutcomeBody)
    seq = int(call.path("seq"))
    value = canonical_json(body.value) if body.answer == "happened" else None
    answer = Answer(kind=body.answer, value=value, by=call.principal.name)
    run_id = call.console.find_run(call.principal, call.path("run")).run_id
    done = await asyncio.to_thread(
        lambda: call.console.executor.resolve(run_id, seq, answer, attempt=body.attempt)
    )
    return DoneReply(done=done)


async def open_session(call: Call) -> Response:
    """Begin a session: scripts that share their variables."""
    session = call.console.desk.open_session(call.principal)
    return reply(SessionReply(id=session), 201, Location=f"/v1/sessions/{session}")


async def get_session(call: Call) -> SessionReply:
    """Show a session and its runs."""
    session = call.path("session")
    call.console.desk.find_session(call.principal, session)
    rows = await asyncio.to_thread(lambda: call.console.store.runs(session=session))
    return SessionReply(id=session, runs=[run_reply(row) for row in rows])


async def close_session(call: Call) -> DoneReply:
    """Give a session's sandbox back; its runs stay."""
    await call.console.desk.close_session(call.principal, call.path("session"))
    return DoneReply(done=True)


_SEEN: Final = ("read", "submit")
_MAY_END: Final = ("submit", "decide")

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        method="POST", path="/v1/runs", handler=submit, summary="Run a script.", rights=("submit",),
        body=RunBody, query=WaitQuery, reply=RunReply, status=202, also=(200, 503, 404, 409),
        headers=(("Idempotency-Key", "Names the submission; sent again, it gives the same run."),),
    ),
    Operation(
        method="GET", path="/v1/runs", handler=list_runs, summary="List runs.", rights=_SEEN,
        query=RunsQuery, reply=RunsReply,
    ),
    Operation(
        method="GET", path="/v1/runs/{run}", handler=get_run, summary="Show a run.", rights=_SEEN,
        query=WaitQuery, reply=RunReply, also=(404,),
    ),
    Operation(
        method="GET", path="/v1/runs/{run}/events", handler=stream_events, rights=_SEEN,
        summary="Stream a run's events.", media_type="text/event-stream", also=(404, 503),
        headers=(("Last-Event-ID", "Only events after this one."),),
    ),
    Operation(
        method="GET", path="/v1/runs/{run}/journal", handler=download, rights=_SEEN, also=(404,),
        summary="Download a run's journal.", media_type="application/x-ndjson",
    ),
    Operation(
        method="POST", path="/v1/runs/{run}/cancel", handler=cancel, rights=_MAY_END,
        summary="End a run.", reply=DoneReply, also=(404,),
    ),
    Operation(
        method="POST", path="/v1/runs/{run}/resume", handler=resume, rights=_MAY_END,
        summary="Have a run go on.", reply=DoneReply, also=(404,),
    ),
    Operation(
        method="GET", path="/v1/unknown", handler=list_unknown, rights=("read",),
        summary="List calls whose outcome is unknown.", reply=UnknownsReply,
    ),
    Operation(
        method="POST", path="/v1/runs/{run}/calls/{seq:int}/outcome", handler=answer_unknown,
        rights=("decide",), summary="Say what became of a call.", body=OutcomeBody, reply=DoneReply,
        also=(404, 409),
    ),
    Operation(
        method="POST", path="/v1/sessions", handler=open_session, summary="Begin a session.",
        rights=("submit",), reply=SessionReply, status=201,
    ),
    Operation(
        method="GET", path="/v1/sessions/{session}", handler=get_session, summary="Show a session.",
        rights=_SEEN, reply=SessionReply, also=(404,),
    ),
    Operation(
        method="DELETE", path="/v1/sessions/{session}", handler=close_session, rights=("submit",),
        summary="Give a session's sandbox back.", reply=DoneReply, also=(404,),
    ),
)  # fmt: skip
"""Everything about runs."""
