"""Calls that were started and whose end nobody saw: whatever changed meanwhile, nothing of them is made up.

The host is one that died while its tool ran; its store is a real file, copied at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bascule.bridge import ApprovalRequest, Decision, Executor, Limits, Policy, Result
from bascule.bridge import jobs as jobs_module
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.runs import resolve_call
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.store import Answer
from bascule.tools import AnyTool, DidNotHappen, Happened, Pending, tool
from tests.unit.bridge.crashes import keep_as_it_is
from tests.unit.bridge.guests import GuestBackend, sequence

pytestmark = pytest.mark.anyio

ALLOW = "version: 1\nrules: [{id: free, effect: allow, match: {tool: '*'}}]"
EDIT = """
version: 1
rules: [{id: r, effect: ask, match: {tool: '*'}, approval: {may: [approve, edit, reject], editable: [value]}}]
"""
SECRET = "sk-live-4f9a81c2"


def execute(store: SqliteStore, made: AnyTool, **more: Any) -> Executor:
    more.setdefault("policy", Policy.parse(ALLOW))
    backend = GuestBackend(sequence(("put", {"value": 1})))
    return Executor([made], store=store, backend=backend, limits=Limits(hold_warm_s=0.0), **more)


def putter(body: Callable[[int], object], **more: Any) -> AnyTool:
    @tool(effects="once", **more)
    def put(value: int) -> str:
        """Put."""
        body(value)
        return "put"

    return put


class Crash:
    """A run whose host died in the middle of ``put``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.run_id = ""

    async def happen(self, make: Callable[..., AnyTool] = putter, **more: Any) -> SqliteStore:
        """Return the store as the dead host left it."""
        first, left = SqliteStore(self._folder / "first.db"), self._folder / "left.db"

        def die(value: int) -> None:
            keep_as_it_is(first, left)

        async with execute(first, make(die), **more) as executor:
            self.run_id = (await executor.run("put(1)")).run_id
        first.close()
        self.store = SqliteStore(left)
        return self.store

    async def resume(self, made: AnyTool, **more: Any) -> Result:
        async with execute(self.store, made, **more) as executor:
            return await executor.resume(self.run_id, wait=False)

    def say(self, kind: Any, value: bytes | None = None, **more: Any) -> bool:
        return resolve_call(self.store, self.run_id, 1, Answer(kind=kind, value=value, by="olga"), **more)


@pytest.fixture
def crash(tmp_path: Path) -> Iterator[Crash]:
    made = Crash(tmp_path)
    yield made
    made.store.close()


def states(result: Result) -> list[str]:
    return [receipt.state for receipt in result.calls]


@tool(effects="once", name="put")
def changed(amount: str) -> str:
    """Put something else."""
    raise AssertionError("nobody asked for this one")


@tool(effects="once")
def other() -> str:
    """Do something else."""
    raise AssertionError("nobody asked for this one")


@pytest.mark.parametrize("now", [changed, other], ids=["changed", "gone"])
@pytest.mark.parametrize(
    ("said", "value", "state"),
    [
        ("happened", b'"put"', "done"),
        ("did_not_happen", None, "not_started"),
        ("tell_script", None, "unknown"),
    ],
)
async def test_an_operator_says_what_became_of_a_call_whose_tool_changed_or_is_gone(
    crash: Crash, now: AnyTool, said: str, value: bytes | None, state: str
) -> None:
    await crash.happen()
    waits = await crash.resume(now)
    assert (waits.status, states(waits)) == ("suspended", ["unknown"]), waits.error
    assert crash.say(said, value)
    result = await crash.resume(now)
    assert (result.status, states(result)) == ("ok", [state])
    assert (result.value == ['"put"']) is (said == "happened")
    error = result.calls[0].error
    kinds = {
        "done": (None,),
        "not_started": ("invalid_arguments", "unknown_tool"),
        "unknown": ("unknown_outcome",),
    }
    assert (None if error is None else error.kind) in kinds[state]


@pytest.mark.parametrize("error", [ConnectionError("down"), ValueError("no"), TimeoutError()])
async def test_a_reconcile_that_fails_says_nothing_and_the_operator_is_asked(
    crash: Crash, error: Exception
) -> None:
    def reconcile(key: str) -> Happened | DidNotHappen:
        raise error

    def make(body: Callable[[int], object]) -> AnyTool:
        return putter(body, reconcile=reconcile)

    await crash.happen(make)
    ran: list[int] = []
    waits = await crash.resume(make(ran.append))
    assert (waits.status, states(waits), ran) == ("suspended", ["unknown"], [])


async def test_an_edited_call_that_runs_again_runs_as_edited_and_its_receipt_says_by_whom(
    crash: Crash,
) -> None:
    def approver(request: ApprovalRequest) -> Decision:
        return Decision(verdict="edit", by="olga", arguments={"value": 7})

    policy = Policy.parse(EDIT)
    await crash.happen(policy=policy, approver=approver)
    ran: list[int] = []
    assert (await crash.resume(putter(ran.append), policy=policy)).status == "suspended"
    assert crash.say("did_not_happen")
    result = await crash.resume(putter(ran.append), policy=policy)
    (receipt,) = result.calls
    assert ran == [7]
    assert (receipt.arguments, receipt.edited_by, receipt.approved_by) == (b'{"value":7}', "olga", "olga")


# ---------------------------------------------------------------- what an operator answers


@pytest.mark.parametrize("value", [b"NaN", b'"\\ud800"', b"[" * 65 + b"]" * 65, b'{"a":', b"", b"1e999"])
async def test_a_result_that_is_no_json_is_refused_and_a_better_one_taken(crash: Crash, value: bytes) -> None:
    await crash.happen()
    await crash.resume(putter(lambda _: None))
    with pytest.raises(DecisionRefused) as refused:
        crash.say("happened", value)
    assert refused.value.code == "response_invalid"
    assert crash.say("happened", b'"put"')
    assert (await crash.resume(putter(lambda _: None))).value == ['"put"']


async def test_a_result_of_the_wrong_type_is_refused_where_the_tool_is_known(crash: Crash) -> None:
    await crash.happen()
    async with execute(crash.store, putter(lambda _: None)) as executor:
        await executor.resume(crash.run_id, wait=False)
        with pytest.raises(DecisionRefused, match="not what put returns"):
            executor.resolve(crash.run_id, 1, Answer(kind="happened", value=b"5", by="olga"))
    assert crash.say("happened", b"5")  # a command line that does not know the tools
    result = await crash.resume(putter(lambda _: None))
    assert states(result) == ["done"]
    assert result.value == [
        ["failed", "put was done, but the result that an operator gave for it is not what it returns"]
    ]


async def test_a_secret_in_a_result_that_an_operator_gives_is_not_kept(crash: Crash) -> None:
    await crash.happen()
    async with execute(crash.store, putter(lambda _: None), secrets=[SECRET]) as executor:
        await executor.resume(crash.run_id, wait=False)
        answer = Answer(kind="happened", value=f'"it says {SECRET}"'.encode(), by="olga")
        assert executor.resolve(crash.run_id, 1, answer)
    crash.store.close()
    assert SECRET.encode() not in (crash.store.path).read_bytes()


# ---------------------------------------------------------------- jobs elsewhere


def job(check: Callable[[Any], Any]) -> AnyTool:
    @tool(effects="once", check_back=check)
    def put(value: int) -> str | Pending:
        """Put."""
        return Pending(check_after_s=0.0, token={"job": value})

    return put


async def run_job(folder: Path, failures: list[Exception]) -> tuple[Result, int]:
    asked: list[Any] = []

    def check(token: Any) -> str:
        asked.append(token)
        if len(asked) <= len(failures):
            raise failures[len(asked) - 1]
        return "ready"

    store = SqliteStore(folder / "runs.db")
    async with execute(store, job(check)) as executor:
        result = await executor.run("put(1)")
    store.close()
    return result, len(asked)


async def test_a_job_is_asked_for_again_when_its_service_was_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "FIRST_PAUSE_S", 0.001)
    result, asked = await run_job(tmp_path, [ConnectionError("down"), TimeoutError("slow")])
    assert (result.value, states(result), asked) == (['"ready"'], ["done"], 3)


async def test_a_job_that_nobody_can_tell_about_is_unknown_and_one_that_failed_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "FIRST_PAUSE_S", 0.0001)
    away: list[Exception] = [ConnectionError("down")] * (jobs_module.MAX_FAILED_CHECKS + 1)
    cases: list[tuple[list[Exception], str]] = [
        (away, "unknown"),
        ([AttributeError("x")], "unknown"),
        ([ValueError("it failed")], "failed"),
    ]
    for failures, state in cases:
        folder = tmp_path / type(failures[0]).__name__
        folder.mkdir()
        result, asked = await run_job(folder, failures)
        assert (states(result), asked) == ([state], len(failures))
