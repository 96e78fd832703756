"""The person at the terminal: batches in full, edits, answers, grants with their exact rule."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bascule.bridge import ApprovalRequest, Decision
from bascule.bridge.terminal import converse, converse_about_all, edit_arguments, whoami
from tests.unit.bridge.terminals import Terminal

pytestmark = pytest.mark.anyio

REQUEST = ApprovalRequest(
    run_id="run-1",
    seq=7,
    tool="mail.send",
    description="Send a mail.",
    digest="d" * 64,
    arguments=b'{"body":"hi","to":{"name":"x"}}',
    effects="once",
    why=("mail",),
    line=3,
    source="mail.send('x')",
    may=("approve", "edit", "reject", "respond", "terminate"),
    editable=("body",),
    grantable=("args_in_run", "tool_in_run"),
    evidence=("to was seen in the result of call 1 (crm.find) at its top\x1b[2J",),
    approvers=("rule mail: group ops, 2 people",),
    tools=("mail.send",),
)


@pytest.fixture(autouse=True)
def _quick_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bascule.bridge.terminal.READ_S", 0.01)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


async def ask(terminal: Terminal, *typed: str, request: ApprovalRequest = REQUEST) -> Decision:
    asking = asyncio.ensure_future(converse(request, read=terminal.slave, write=terminal.shown))
    await asyncio.wait_for(terminal.answer(*typed), 10)
    return await asyncio.wait_for(asking, 10)


async def test_the_card_shows_evidence_and_approvers_made_safe(terminal: Terminal) -> None:
    await ask(terminal, "n")
    shown = terminal.shown.getvalue()
    assert "seen       to was seen in the result of call 1 (crm.find)" in shown
    assert "approvers  rule mail: group ops, 2 people" in shown
    assert "\x1b" not in shown


async def test_an_edit_changes_one_value(terminal: Terminal) -> None:
    decision = await ask(terminal, 'e body="better"')
    assert (decision.verdict, decision.by) == ("edit", whoami())
    assert decision.arguments == {"body": "better", "to": {"name": "x"}}


async def test_an_edit_that_is_none_is_asked_about_again(terminal: Terminal) -> None:
    decision = await ask(terminal, "e body", "n")
    assert "write PATH=JSON" in terminal.shown.getvalue()
    assert decision.verdict == "reject"


async def test_an_answer_is_json(terminal: Terminal) -> None:
    decision = await ask(terminal, 'r {"id": 1}')
    assert (decision.verdict, decision.response) == ("respond", {"id": 1})


async def test_terminate_ends_the_run(terminal: Terminal) -> None:
    decision = await ask(terminal, "t wrong script")
    assert (decision.verdict, decision.reason) == ("terminate", "wrong script")


async def test_a_grant_is_shown_before_it_is_given(terminal: Terminal) -> None:
    decision = await ask(terminal, "yt 3", "y")
    assert (
        "any call of mail.send, whatever its arguments, at most 3 more in this run"
        in terminal.shown.getvalue()
    )
    assert (decision.verdict, decision.grant, decision.grant_count) == ("approve", "tool_in_run", 3)


async def test_a_grant_that_is_not_confirmed_is_not_given(terminal: Terminal) -> None:
    decision = await ask(terminal, "ya", "n", "n")
    assert decision.verdict == "reject"


@pytest.mark.parametrize("typed", ["ys", "e body=1", "r 1", "t"])
async def test_what_may_not_be_answered_is_asked_again(terminal: Terminal, typed: str) -> None:
    request = replace(REQUEST, may=("approve", "reject"), grantable=())
    assert (await ask(terminal, typed, "n", request=request)).verdict == "reject"


async def decide_all(terminal: Terminal, *typed: str) -> list[Decision]:
    requests = [REQUEST, replace(REQUEST, seq=8, arguments=b'{"body":"second"}')]
    asking = asyncio.ensure_future(converse_about_all(requests, read=terminal.slave, write=terminal.shown))
    await asyncio.wait_for(terminal.answer(*typed), 10)
    return await asyncio.wait_for(asking, 10)


async def test_a_batch_shows_every_call_in_full_and_is_decided_at_once(terminal: Terminal) -> None:
    assert [each.verdict for each in await decide_all(terminal, "a")] == ["approve", "approve"]
    shown = terminal.shown.getvalue()
    assert "2 calls were issued together" in shown
    assert '{"body":"hi","to":{"name":"x"}}' in shown
    assert '{"body":"second"}' in shown


async def test_a_batch_is_denied_with_one_reason_or_decided_one_by_one(terminal: Terminal) -> None:
    denied = await decide_all(terminal, "n not today")
    assert [(each.verdict, each.reason) for each in denied] == [("reject", "not today")] * 2
    other = Terminal()
    chosen = await decide_all(other, "what", "o", "y", "n")
    assert [each.verdict for each in chosen] == ["approve", "reject"]
    os.close(other.master)
    os.close(other.slave)


@pytest.mark.parametrize("text", ["body", "to.name.first=1", "body=no json", "missing.deep=1"])
def test_an_edit_that_leads_nowhere_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        edit_arguments(REQUEST.arguments, text)
