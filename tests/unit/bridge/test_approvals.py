"""Approvals inside a run: asked in batches, decided from anywhere, checked again before the tool starts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from bascule.bridge import (
    ApprovalRequest,
    Decision,
    Event,
    Executor,
    Limits,
    Policy,
    Result,
    User,
    approve_all,
    ask_elsewhere,
)
from bascule.bridge.approval import Approver
from bascule.bridge.approval_card import ApprovalState
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.requests import describe_record
from bascule.tools import AnyTool, tool
from tests.unit.bridge.guests import Guest, GuestBackend, Line, calls, sequence

pytestmark = pytest.mark.anyio


class Mail:
    """Tools that note what they did."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

        @tool(effects="once", name="mail.send", labels={"external"})
        def send(to: str, body: str = "") -> dict[str, int]:
            """Send mail."""
            self.sent.append((to, body))
            return {"id": len(self.sent)}

        @tool(effects="read", name="crm.find", labels={"private"})
        def find(name: str) -> str:
            """Find an address."""
            return f"{name}@example.com"

        self.tools: tuple[AnyTool, ...] = (send, find)


def ask_rule(approval: str = "", match: str = "tool: mail.send") -> str:
    section = f", approval: {{{approval}}}" if approval else ""
    return f"version: 1\nrules: [{{id: r, effect: ask, match: {{{match}}}{section}}}]"


async def run(
    guest: Guest,
    mail: Mail,
    *,
    policy: str | None = None,
    approver: Approver = ask_elsewhere,
    meanwhile: Callable[[Executor, MemoryStore], Awaitable[None]] | None = None,
    user: str | User | None = None,
    events: list[Event] | None = None,
) -> tuple[Result, MemoryStore]:
    store = MemoryStore()
    executor = Executor(
        mail.tools,
        policy=None if policy is None else Policy.parse(policy),
        approver=approver,
        store=store,
        user=user,
        limits=Limits(run_s=20),
        backend=GuestBackend(guest),
    )
    if events is not None:
        executor.subscribe(events.append)
    async with executor, asyncio.timeout(20):
        running = asyncio.ensure_future(executor.run("mail.send(...)\n" * 30))
        if meanwhile is not None:
            await meanwhile(executor, store)
        result = await running
    return result, store


async def pending(store: MemoryStore, count: int = 1) -> list[ApprovalRecord]:
    """Return what waits, once it is as many."""
    while True:
        found = store.approvals.find(states=(ApprovalState.PENDING,))
        if len(found) >= count:
            return found
        await store.changed(1.0)


def decide(executor: Executor, record: ApprovalRecord, verdict: Any, **more: Any) -> ApprovalRecord:
    more.setdefault("by", "olga")
    return executor.decide(record.id, Decision(verdict=verdict, **more), digest=record.digest)


TO_X = ("mail.send", {"to": "x", "body": "hi"})


async def test_a_decision_from_elsewhere_lets_the_call_through_and_is_used_up() -> None:
    mail = Mail()

    async def approve(executor: Executor, store: MemoryStore) -> None:
        decide(executor, (await pending(store))[0], "approve")

    result, store = await run(calls(TO_X), mail, meanwhile=approve)
    assert mail.sent == [("x", "hi")]
    assert result.calls[0].approved_by == "olga"
    assert [each.state for each in store.approvals.find()] == [ApprovalState.CONSUMED]


async def test_calls_issued_together_are_one_batch_and_are_decided_one_by_one() -> None:
    mail = Mail()
    shown: list[Sequence[ApprovalRequest]] = []

    class Batches:
        async def __call__(self, request: ApprovalRequest) -> Decision:
            raise AssertionError("asked one by one")

        async def ask_batch(self, requests: Sequence[ApprovalRequest]) -> Sequence[Decision]:
            shown.append(requests)
            return [
                Decision(verdict="approve" if b'"a"' in request.arguments else "reject", reason="no")
                for request in requests
            ]

    wanted = [("mail.send", {"to": to}) for to in ("a", "b", "c")]
    result, _ = await run(calls(*wanted), mail, approver=Batches())
    assert [len(each) for each in shown] == [3]
    assert len({request.batch for request in shown[0]}) == 1
    assert [call.state for call in result.calls] == ["done", "denied", "denied"]
    assert mail.sent == [("a", "")]


async def test_an_edited_call_runs_as_edited_and_the_script_is_told() -> None:
    mail = Mail()

    async def edit(executor: Executor, store: MemoryStore) -> None:
        decide(executor, (await pending(store))[0], "edit", arguments={"to": "x", "body": "better"})

    policy = ask_rule("may: [approve, edit], editable: [body]")
    result, _ = await run(calls(TO_X), mail, policy=policy, meanwhile=edit)
    assert mail.sent == [("x", "better")]
    assert result.calls[0].edited_by == "olga"
    assert result.calls[0].arguments == b'{"body":"better","to":"x"}'
    assert [note.code for note in result.notes] == ["call_edited"]


async def test_an_edit_that_another_rule_denies_does_not_run() -> None:
    mail = Mail()

    async def edit(executor: Executor, store: MemoryStore) -> None:
        decide(executor, (await pending(store))[0], "edit", arguments={"to": "x", "body": "bad"})

    policy = """
version: 1
rules:
  - {id: r, effect: ask, match: {tool: mail.send}, approval: {may: [edit], editable: [body]}}
  - {id: d, effect: deny, match: {tool: mail.send, args: {body: {eq: bad}}}}
"""
    result, store = await run(calls(TO_X), mail, policy=policy, meanwhile=edit)
    assert mail.sent == []
    assert result.calls[0].state == "denied"
    assert result.notes == ()
    assert [each.state for each in store.approvals.find()] == [ApprovalState.INVALIDATED]


async def test_an_edit_that_does_not_fit_the_tool_is_refused_at_once() -> None:
    mail = Mail()
    said: list[str] = []

    async def edit(executor: Executor, store: MemoryStore) -> None:
        record = (await pending(store))[0]
        with pytest.raises(Exception, match="body") as refused:
            decide(executor, record, "edit", arguments={"to": "x", "body": 3})
        said.append(str(refused.value))
        decide(executor, record, "reject")

    policy = ask_rule("may: [edit, reject], editable: [body]")
    await run(calls(TO_X), mail, policy=policy, meanwhile=edit)
    assert said
    assert mail.sent == []


async def test_a_person_can_answer_in_the_tools_place() -> None:
    mail = Mail()

    async def respond(executor: Executor, store: MemoryStore) -> None:
        decide(executor, (await pending(store))[0], "respond", response={"id": 99})

    result, _ = await run(calls(TO_X), mail, meanwhile=respond)
    assert result.value == {"1": '{"id":99}'}
    assert mail.sent == []
    assert (result.calls[0].state, result.calls[0].answered_by) == ("answered", "olga")


async def test_an_answer_of_the_wrong_type_is_asked_about_again() -> None:
    mail = Mail()
    notes: list[str] = []

    async def respond(executor: Executor, store: MemoryStore) -> None:
        decide(executor, (await pending(store))[0], "respond", response="text")
        again = (await pending(store))[0]
        notes.append(describe_record(again).note)
        decide(executor, again, "reject")

    result, _ = await run(calls(TO_X), mail, meanwhile=respond)
    assert "not what the tool returns" in notes[0]
    assert result.calls[0].state == "denied"


async def test_terminate_ends_the_run() -> None:
    mail = Mail()

    async def terminate(executor: Executor, store: MemoryStore) -> None:
        decide(executor, (await pending(store))[0], "terminate", reason="wrong customer")

    result, _ = await run(calls(TO_X), mail, meanwhile=terminate)
    assert result.status == "cancelled"
    assert result.error is not None
    assert "wrong customer" in result.error.message
    assert mail.sent == []


async def test_an_approval_expires_as_denied_after_reminders() -> None:
    mail = Mail()
    events: list[Event] = []
    result, store = await run(calls(TO_X), mail, policy=ask_rule("expires_in: 1s"), events=events)
    assert result.calls[0].state == "denied"
    assert result.calls[0].error is not None
    assert "in time" in result.calls[0].error.message
    assert [each.state for each in store.approvals.find()] == [ApprovalState.EXPIRED]
    assert "approval.reminder" in [event.name for event in events]


async def test_an_expiry_ends_the_run_where_policy_says_so() -> None:
    mail = Mail()
    policy = ask_rule("expires_in: 1s, on_expiry: terminate")
    result, _ = await run(calls(TO_X), mail, policy=policy)
    assert result.status == "cancelled"


async def test_two_people_are_needed_and_the_one_it_is_for_is_none_of_them() -> None:
    mail = Mail()
    refused: list[str] = []

    async def approve(executor: Executor, store: MemoryStore) -> None:
        record = (await pending(store))[0]
        for by in ("ada", "olga", "olga"):
            try:
                decide(executor, record, "approve", by=by)
            except Exception as error:
                refused.append(str(error))
        assert mail.sent == []
        decide(executor, record, "approve", by="otto")

    policy = "version: 1\ngroups: {ops: [ada, olga, otto]}\n" + ask_rule(
        "approvers: {groups: [ops]}, quorum: 2"
    ).removeprefix("version: 1\n")
    result, _ = await run(calls(TO_X), mail, policy=policy, meanwhile=approve, user="ada")
    assert len(refused) == 2
    assert result.calls[0].approved_by == "olga, otto"


async def test_a_new_deny_wins_over_an_approval_that_was_given() -> None:
    mail = Mail()

    async def change(executor: Executor, store: MemoryStore) -> None:
        record = (await pending(store))[0]
        executor.replace_policy(
            Policy.parse("version: 1\nrules: [{id: no, effect: deny, match: {tool: mail.send}}]")
        )
        decide(executor, record, "approve")

    result, store = await run(calls(TO_X), mail, meanwhile=change)
    assert mail.sent == []
    assert result.calls[0].state == "denied"
    assert [each.state for each in store.approvals.find()] == [ApprovalState.INVALIDATED]


async def test_another_rule_that_asks_makes_an_approval_useless() -> None:
    mail = Mail()

    async def change(executor: Executor, store: MemoryStore) -> None:
        record = (await pending(store))[0]
        executor.replace_policy(Policy.parse(ask_rule("quorum: 2, self_approval: true")))
        decide(executor, record, "approve")
        again = (await pending(store))[0]
        assert again.id != record.id
        decide(executor, again, "reject")

    result, _ = await run(calls(TO_X), mail, meanwhile=change)
    assert mail.sent == []
    assert result.calls[0].state == "denied"


async def test_a_grant_lets_a_loop_through_as_often_as_it_says() -> None:
    mail = Mail()
    asked: list[int] = []

    async def approver(request: ApprovalRequest) -> Decision:
        asked.append(request.seq)
        return Decision(verdict="approve", grant="tool_in_run", grant_count=2, by="olga")

    loop = sequence(*[("mail.send", {"to": str(index)}) for index in range(5)])
    result, _ = await run(loop, mail, approver=approver)
    assert asked == [1, 4]
    assert len(mail.sent) == 5
    assert [call.approved_by for call in result.calls] == [
        "olga",
        *["olga (grant)"] * 2,
        "olga",
        "olga (grant)",
    ]


async def test_a_grant_for_arguments_is_for_exactly_these() -> None:
    mail = Mail()
    asked: list[int] = []

    async def approver(request: ApprovalRequest) -> Decision:
        asked.append(request.seq)
        return Decision(verdict="approve", grant="args_in_run")

    wanted = [TO_X, TO_X, ("mail.send", {"to": "x", "body": "hi "}), TO_X]
    result, _ = await run(sequence(*wanted), mail, approver=approver)
    assert asked == [1, 3]
    assert [call.duplicate for call in result.calls] == [False, True, False, True]


async def test_a_grant_does_not_answer_what_another_rule_asks() -> None:
    mail = Mail()
    asked: list[int] = []

    async def approver(request: ApprovalRequest) -> Decision:
        asked.append(request.seq)
        return Decision(verdict="approve", grant="tool_in_run" if request.seq == 1 else "once")

    policy = """
version: 1
rules:
  - {id: r, effect: ask, match: {tool: mail.send}, approval: {grantable: [tool_in_run]}}
  - {id: big, effect: ask, match: {tool: mail.send, args: {body: {eq: big}}}}
"""
    wanted = [("mail.send", {"to": "x", "body": body}) for body in ("a", "b", "big", "c")]
    await run(sequence(*wanted), mail, approver=approver, policy=policy)
    assert asked == [1, 3]


async def test_labels_of_what_was_read_decide_about_what_is_sent() -> None:
    mail = Mail()
    policy = """
version: 1
rules:
  - {id: free, effect: allow, match: {tool: mail.send}}
  - {id: leak, effect: deny, match: {label: external, run_labels: {all: [private]}}}
"""
    wanted = [TO_X, ("crm.find", {"name": "ada"}), TO_X]
    result, _ = await run(sequence(*wanted), mail, policy=policy)
    assert [call.state for call in result.calls] == ["done", "done", "denied"]


async def test_the_card_says_where_an_argument_was_seen() -> None:
    mail = Mail()
    seen: list[tuple[str, ...]] = []

    def approver(request: ApprovalRequest) -> Decision:
        seen.append(request.evidence)
        return Decision(verdict="approve")

    wanted = [("crm.find", {"name": "ada"}), ("mail.send", {"to": "ada@example.com"})]
    await run(sequence(*wanted), mail, approver=approver)
    assert seen == [("to was seen in the result of call 1 (crm.find) at its top",)]


async def test_a_budget_holds_across_calls_issued_at_once_and_asks_for_the_rest() -> None:
    mail = Mail()
    asked: list[int] = []

    async def approver(request: ApprovalRequest) -> Decision:
        asked.append(request.seq)
        return Decision(verdict="reject", reason="enough")

    policy = """
version: 1
rules: [{id: few, effect: allow, match: {tool: mail.send}, budget: {calls_per_run: 2, on_exhausted: ask}}]
"""
    wanted = [("mail.send", {"to": str(index)}) for index in range(4)]
    result, _ = await run(calls(*wanted), mail, approver=approver, policy=policy)
    assert len(mail.sent) == 2
    assert asked == [3, 4]
    assert [call.state for call in result.calls] == ["done", "done", "denied", "denied"]


async def test_a_budget_that_is_used_up_is_told_as_such() -> None:
    mail = Mail()
    policy = (
        "version: 1\nrules: [{id: few, effect: allow, match: {tool: mail.send}, budget: {calls_per_run: 1}}]"
    )
    result, _ = await run(sequence(TO_X, TO_X), mail, policy=policy)
    assert result.calls[1].error is not None
    assert result.calls[1].error.kind == "budget_exceeded"
    assert "1 calls per run (rule few)" in result.calls[1].error.message


async def test_an_approver_that_may_not_decide_denies() -> None:
    mail = Mail()
    policy = ask_rule("approvers: {groups: [ops]}")
    result, _ = await run(calls(TO_X), mail, policy=policy, approver=approve_all)
    assert mail.sent == []
    assert result.calls[0].error is not None
    assert "approve_all may not decide" in result.calls[0].error.message


async def test_what_still_waits_when_the_run_ends_is_taken_back() -> None:
    mail = Mail()

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("mail.send", to="x"), line.call("crm.find", name="a")])
        await line.done()
        line.finish()

    result, store = await run(guest, mail)
    assert result.status == "ok"
    assert mail.sent == []
    assert [each.state for each in store.approvals.find()] in ([], [ApprovalState.CANCELLED])


async def test_what_a_run_has_read_and_heard_is_known_after_it_was_resumed() -> None:
    mail = Mail()
    policy = """
version: 1
rules:
  - {id: leak, effect: deny, match: {tool: mail.send, args: {to: {eq: evil}}, run_labels: {all: [private]}}}
"""
    wanted = [
        ("crm.find", {"name": "ada"}),
        ("mail.send", {"to": "no"}),
        ("mail.send", {"to": "ada@example.com"}),
        ("mail.send", {"to": "no"}),
        ("mail.send", {"to": "evil"}),
    ]
    store = MemoryStore()

    def make() -> Executor:
        return Executor(
            mail.tools,
            policy=Policy.parse(policy),
            approver=ask_elsewhere,
            store=store,
            limits=Limits(hold_warm_s=0.0),
            backend=GuestBackend(sequence(*wanted)),
        )

    async with make() as executor, asyncio.timeout(20):
        suspended = await executor.run("mail.send(...)\n" * 9, wait=False)
        assert suspended.status == "suspended"
        decide(executor, (await pending(store))[0], "reject", reason="not to them")
    async with make() as executor, asyncio.timeout(20):
        suspended = await executor.resume(suspended.run_id, wait=False)
        assert suspended.status == "suspended"
        record = (await pending(store))[0]
        assert "call 1 (crm.find)" in describe_record(record).evidence[0]
        decide(executor, record, "approve")
    async with make() as executor, asyncio.timeout(20):
        result = await executor.resume(suspended.run_id)
    assert [call.state for call in result.calls] == ["done", "denied", "done", "denied", "denied"]
    assert result.calls[3].error is not None
    assert "not to them" in result.calls[3].error.message
    assert result.calls[4].error is not None
    assert "rule leak" in result.calls[4].error.message
    assert mail.sent == [("ada@example.com", "")]


async def test_an_approval_of_a_tool_that_was_changed_since_is_worth_nothing() -> None:
    mail = Mail()
    store = MemoryStore()
    ran: list[str] = []

    @tool(effects="once", name="mail.send")
    def changed(to: str, body: str = "") -> dict[str, int]:
        """Send mail to everybody."""
        ran.append(to)
        return {"id": 1}

    def make(*tools: AnyTool) -> Executor:
        limits = Limits(hold_warm_s=0.0)
        backend = GuestBackend(calls(TO_X))
        return Executor(tools, approver=ask_elsewhere, store=store, limits=limits, backend=backend)

    async with make(*mail.tools) as executor, asyncio.timeout(20):
        suspended = await executor.run("mail.send(...)\n", wait=False)
        first = (await pending(store))[0]
        decide(executor, first, "approve")
    async with make(changed) as executor, asyncio.timeout(20):
        again = await executor.resume(suspended.run_id, wait=False)
        assert again.status == "suspended"
        assert ran == []
        second = (await pending(store))[0]
        decide(executor, second, "approve")
    async with make(changed) as executor, asyncio.timeout(20):
        result = await executor.resume(suspended.run_id)
    assert result.calls[0].state == "done"
    assert (mail.sent, ran) == ([], ["x"])
    assert [each.state for each in store.approvals.find()] == [
        ApprovalState.INVALIDATED,
        ApprovalState.CONSUMED,
    ]


async def test_time_that_people_take_does_not_count() -> None:
    mail = Mail()

    async def slow(request: ApprovalRequest) -> Decision:
        await asyncio.sleep(0.6)
        return Decision(verdict="approve")

    limits = Limits(run_s=0.5, wall_s=0.5)
    executor = Executor(mail.tools, approver=slow, limits=limits, backend=GuestBackend(calls(TO_X)))
    async with executor:
        result = await executor.run("mail.send(...)\n")
    assert result.status == "ok"
    assert mail.sent == [("x", "hi")]
