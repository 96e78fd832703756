"""Registered secrets are kept nowhere: not in the store, in events, logs, results or what a console shows.

The scripts put their secrets together, as an injected one would: one that stands in the text is refused.
"""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bascule.bridge import Decision, Executor, Limits, Policy, Result, approve_all, ask_elsewhere
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.events import Event
from bascule.bridge.redaction import Redactor
from bascule.bridge.run_view import read_view
from bascule.bridge.sqlite_store import SqliteStore
from bascule.sandbox import Backend, open_backend
from bascule.tools import ToolContext, tool
from bascule.wire import Output
from tests.unit.bridge.guests import GuestBackend, Line, sequence

pytestmark = pytest.mark.anyio

SECRET = "sk-live-4f9a81c2"
ENCODED = base64.b64encode(SECRET.encode()).decode().rstrip("=")
FORMS = (SECRET.encode(), ENCODED.encode())
MADE = "key = 'sk-live' + '-4f9a81c2'\n"

SENDING = f"""{MADE}
print('key', key, end='')
print(key[:9], end='')
print(key[9:])
for use in (lambda: put(key), lambda: put({{'deep': [key]}}), lambda: put({{key: 1}})):
    try:
        use()
    except ToolDenied as denied:
        print(denied)
print(put('fine'))
raise ValueError(key)
"""


@tool(effects="once")
def put(value: Any) -> str:
    """Put."""
    return f"put {value} with {SECRET}"


@tool(effects="read", check=lambda values, context: None)
def look(name: str) -> str:
    """Look."""
    if name == "bug":
        raise AttributeError(SECRET)
    return SECRET


def holds_secret(data: bytes) -> bool:
    return any(form in data for form in FORMS)


def files_with_secrets(folder: Path) -> list[str]:
    return [path.name for path in sorted(folder.iterdir()) if holds_secret(path.read_bytes())]


async def run(
    store: SqliteStore, backend: Backend, script: str, events: list[Event], run_id: str | None = None
) -> Result:
    async with Executor(
        [put, look],
        policy=Policy.default(),
        approver=ask_elsewhere,
        secrets=[SECRET],
        backend=backend,
        store=store,
        limits=Limits(hold_warm_s=0.0),
    ) as executor:
        executor.subscribe(events.append)
        if run_id is None:
            return await executor.run(script, seed=1, wait=False)
        return await executor.resume(run_id, wait=False)


async def see_through(store: SqliteStore, script: str, events: list[Event]) -> Result:
    """Run a script to its end, with another executor after every approval."""
    result = await run(store, open_backend("process"), script, events)
    while result.status == "suspended":
        for record in store.approvals.find(states=["pending"]):
            async with Executor([put], backend=open_backend("process"), store=store) as executor:
                executor.decide(record.id, Decision(verdict="approve", by="ops"), digest=record.digest)
        result = await run(store, open_backend("process"), script, events, result.run_id)
    return result


async def test_what_a_script_does_with_a_secret_is_kept_nowhere_and_replays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    events: list[Event] = []
    with caplog.at_level(logging.DEBUG, "bascule"):
        result = await see_through(store, SENDING, events)
    assert result.status == "failed", result.error  # and not diverged: what is compared is what was sent
    refused = [call for call in result.calls if call.state == "denied"]
    assert len(refused) == 3
    assert all(b"[redacted]" in call.arguments for call in refused)
    assert "key [redacted]" in result.output
    assert "put fine with [redacted]" in result.output
    assert result.error is not None
    assert "[redacted]" in result.error.message
    view = read_view(store, result.run_id)
    for kept in (result.to_json(), msgspec.json.encode(view.to_json()), repr(events).encode()):
        assert not holds_secret(kept)
    assert not holds_secret(caplog.text.encode())
    store.writer.run_now(lambda connection: None, True)
    assert files_with_secrets(tmp_path) == []
    store.close()
    assert files_with_secrets(tmp_path) == []
    assert (tmp_path / "runs.db").stat().st_size > 0


@pytest.mark.parametrize("end", ["return key", "return {'a': [key]}", "key", "return {key: 1}"])
async def test_a_secret_does_not_come_back_as_a_value(end: str, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    result = await run(store, open_backend("process"), MADE + end, [])
    assert result.status == "ok", result.error
    assert "[redacted]" in repr(result.value)
    store.close()
    assert files_with_secrets(tmp_path) == []


@pytest.mark.parametrize("form", [SECRET, ENCODED])
async def test_a_script_that_holds_a_secret_is_refused_before_it_is_kept(form: str, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    events: list[Event] = []
    result = await run(store, open_backend("process"), f"x = 1\nput('{form}')", events)
    assert result.status == "refused"
    assert result.error is not None
    assert (result.error.kind, result.error.line) == ("secret_in_script", 2)
    assert [event.name for event in events] == ["run.finished"]
    started = store.started(result.run_id)
    assert started is not None
    assert started.script == "x = 1\nput('[redacted]')"
    store.close()
    assert files_with_secrets(tmp_path) == []


async def test_a_session_goes_on_after_a_script_that_held_a_secret(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    backend = open_backend("process")
    async with Executor([put], secrets=[SECRET], backend=backend, store=store) as executor:
        async with executor.session("s") as session:
            assert (await session.run("n = 1")).status == "ok"
            assert (await session.run(f"n = '{SECRET}'")).status == "refused"
            assert (await session.run("n")).value == 1
        async with executor.session("s") as again:
            assert (await again.run("n")).value == 1
    store.close()
    assert files_with_secrets(tmp_path) == []


async def test_a_name_of_a_tool_cannot_carry_one_out(tmp_path: Path) -> None:
    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call(f"tool.{SECRET}")])
        await line.receive()

    store = SqliteStore(tmp_path / "runs.db")
    result = await run(store, GuestBackend(guest), "...", [])
    assert result.error is not None
    assert result.error.kind == "protocol_violation"
    store.close()
    assert files_with_secrets(tmp_path) == []


async def test_what_tools_say_of_one_is_kept_nowhere(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    backend = open_backend("process")
    async with Executor(
        [look], approver=approve_all, secrets=[SECRET], backend=backend, store=store
    ) as executor:
        result = await executor.run("try:\n    look('bug')\nexcept Exception as e:\n    print(e)\nlook('x')")
        assert result.value == "[redacted]"
    store.close()
    assert files_with_secrets(tmp_path) == []


def test_a_secret_is_found_in_both_alphabets_of_base64() -> None:
    secret = "s>>>?~~~key"
    redactor = Redactor([secret])
    forms = {encode(secret.encode()).decode() for encode in (base64.b64encode, base64.urlsafe_b64encode)}
    assert len(forms) == 2
    for form in forms:
        assert redactor.text(f"key={form}") in ("key=[redacted]", "key=[redacted]=")


async def test_progress_that_tells_of_one_is_shown_without_it() -> None:
    @tool(effects="once")
    def put(context: ToolContext) -> None:
        """Put."""
        context.progress(1, 2, f"signed in with {SECRET}")

    seen: list[str] = []
    backend = GuestBackend(sequence(("put", {})))
    async with Executor([put], approver=approve_all, secrets=[SECRET], backend=backend) as executor:
        executor.subscribe(lambda event: seen.append(event.text) if event.name == "call.progress" else None)
        await executor.run("put()")
    assert seen == ["1 of 2: signed in with [redacted]"]


async def test_an_edit_cannot_put_one_in(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    policy = Policy.parse(
        "version: 1\nrules: [{id: a, effect: ask, match: {tool: put},"
        " approval: {may: [edit], editable: [value]}}]"
    )
    async with Executor(
        [put],
        policy=policy,
        approver=ask_elsewhere,
        secrets=[SECRET],
        backend=open_backend("process"),
        store=store,
        limits=Limits(hold_warm_s=0.0),
    ) as executor:
        await executor.run("put(1)", wait=False)
        (record,) = store.approvals.find()
        edit = Decision(verdict="edit", by="ops", arguments={"value": [SECRET]})
        with pytest.raises(DecisionRefused, match="hold a secret"):
            executor.decide(record.id, edit, digest=record.digest)
    store.close()
    assert files_with_secrets(tmp_path) == []


async def test_a_run_replays_where_the_secret_is_not_registered_any_more(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    result = await run(store, open_backend("process"), f"{MADE}print(key)\nput(1)\nprint('end')", [])
    assert result.status == "suspended"
    async with Executor([put], approver=approve_all, backend=open_backend("process"), store=store) as other:
        resumed = await other.resume(result.run_id)
    assert (resumed.status, resumed.output) == ("ok", "[redacted]\nend\n"), resumed.error
    store.close()


async def test_what_was_printed_is_compared_although_it_is_not_kept(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    same = [True]

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([Output(text=f"{SECRET} {same[0]}"), line.call("put", value=1)])
        await line.receive()
        line.finish()

    result = await run(store, GuestBackend(guest), "...", [])
    assert result.status == "suspended"
    same[0] = False
    changed = await run(store, GuestBackend(guest), "...", [], result.run_id)
    assert changed.status == "diverged"
    assert SECRET not in repr(changed)
    store.close()
