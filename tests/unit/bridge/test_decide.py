"""Decisions: what `decide` writes, and everything it refuses to write."""

from __future__ import annotations

from typing import Any

import pytest

from bascule.bridge.approval import Decision
from bascule.bridge.approval_card import ApprovalState, read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.decide import decide
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.requirement import Demand
from tests.unit.bridge.cards import make_record

OPS = Demand(rule="r", groups=("ops",), self_approval=False)
TWO = Demand(rule="r", groups=("ops",), quorum=2, self_approval=False)
ALL = ("approve", "edit", "reject", "respond", "terminate")


def put(record: ApprovalRecord) -> MemoryStore:
    store = MemoryStore()
    store.approvals.insert(record)
    return store


def say(store: MemoryStore, record: ApprovalRecord, verdict: Any = "approve", **more: Any) -> ApprovalRecord:
    """Decide as olga of ops, unless told otherwise, about what the record says now."""
    now = store.approvals.get(record.id)
    assert now is not None
    digest = more.pop("digest", now.digest)
    at = more.pop("at", 1001.0)
    decision = Decision(
        verdict=verdict, by=more.pop("by", "olga"), groups=more.pop("groups", frozenset({"ops"})), **more
    )
    return decide(store.approvals, record.id, decision, digest=digest, channel="test", now=lambda: at)


def refusal(store: MemoryStore, record: ApprovalRecord, verdict: Any = "approve", **more: Any) -> str:
    with pytest.raises(DecisionRefused) as refused:
        say(store, record, verdict, **more)
    return refused.value.code


def test_an_approval_is_written_with_who_why_and_how() -> None:
    record = make_record(OPS)
    after = say(put(record), record, reason="agreed by phone")
    assert after.state == ApprovalState.APPROVED
    voice = read_card(after).voices[0]
    assert (voice.by, voice.groups, voice.channel, voice.reason) == (
        "olga",
        ("ops",),
        "test",
        "agreed by phone",
    )


@pytest.mark.parametrize("verdict", ["reject", "terminate"])
def test_a_rejection_ends_it(verdict: str) -> None:
    record = make_record(OPS)
    store = put(record)
    assert say(store, record, verdict).state == ApprovalState.REJECTED
    assert refusal(store, record) == "approval_closed"


def test_a_decision_about_something_else_than_displayed_is_refused() -> None:
    record = make_record(OPS)
    assert refusal(put(record), record, digest="0" * 64) == "digest_mismatch"


def test_an_unknown_approval_is_refused() -> None:
    with pytest.raises(DecisionRefused, match="no approval"):
        decide(MemoryStore().approvals, "apr-1", Decision(verdict="approve"), digest="", channel="test")


def test_only_approvers_decide_and_nobody_about_an_own_run() -> None:
    record = make_record(OPS, requester="olga")
    store = put(record)
    assert refusal(store, record, by="eve", groups=frozenset({"dev"})) == "not_an_approver"
    assert refusal(store, record, by="") == "not_an_approver"
    assert refusal(store, record, "reject", by="eve", groups=frozenset[str]()) == "not_an_approver"
    assert refusal(store, record) == "self_approval"
    assert say(store, record, by="otto").state == ApprovalState.APPROVED


def test_the_one_a_run_is_for_may_reject_it() -> None:
    record = make_record(OPS, requester="olga")
    assert say(put(record), record, "reject").state == ApprovalState.REJECTED


def test_self_approval_is_possible_where_policy_says_so() -> None:
    record = make_record(Demand(rule="r", users=("olga",), self_approval=True), requester="olga")
    assert say(put(record), record).state == ApprovalState.APPROVED


def test_four_eyes_are_two_people() -> None:
    record = make_record(TWO)
    store = put(record)
    assert say(store, record).state == ApprovalState.PENDING
    assert refusal(store, record) == "already_decided"
    assert say(store, record, by="otto").state == ApprovalState.APPROVED
    after = store.approvals.get(record.id)
    assert after is not None
    assert read_card(after).approved_by == "olga, otto"


def test_each_rule_that_asks_needs_its_own_approvers() -> None:
    record = make_record(OPS, Demand(rule="s", users=("chef",)))
    store = put(record)
    assert say(store, record).state == ApprovalState.PENDING
    assert say(store, record, by="chef", groups=frozenset[str]()).state == ApprovalState.APPROVED


def test_only_what_may_be_answered_is_taken() -> None:
    record = make_record(OPS, may=("approve", "reject"))
    store = put(record)
    for verdict in ("edit", "respond", "terminate"):
        assert refusal(store, record, verdict) == "move_not_allowed"


def test_an_edit_changes_what_is_approved_and_its_digest() -> None:
    record = make_record(OPS, may=ALL, editable=("body",))
    store = put(record)
    after = say(store, record, "edit", arguments={"to": "x@example.com", "body": "hello"})
    card = read_card(after)
    assert after.state == ApprovalState.APPROVED
    assert after.digest != record.digest
    assert card.arguments == '{"body":"hello","to":"x@example.com"}'
    assert card.original == '{"body":"hi","to":"x@example.com"}'


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        {"to": "x@example.com", "body": "hi"},
        {"to": "y@example.com", "body": "hello"},
        {"body": "hello"},
        {"to": "x@example.com", "body": "hello", "bcc": "z"},
        {"to": "x@example.com", "body": float("nan")},
    ],
)
def test_an_edit_touches_editable_arguments_only(arguments: Any) -> None:
    record = make_record(OPS, may=ALL, editable=("body",))
    assert refusal(put(record), record, "edit", arguments=arguments) == "edit_not_allowed"


def test_an_edit_sees_the_difference_between_1_and_true() -> None:
    record = make_record(OPS, arguments={"body": "hi", "flags": [1]}, may=ALL, editable=("body",))
    edited = {"body": "ho", "flags": [True]}
    assert refusal(put(record), record, "edit", arguments=edited) == "edit_not_allowed"


def test_after_an_edit_the_others_decide_about_what_it_says_now() -> None:
    record = make_record(TWO, may=ALL, editable=("body",))
    store = put(record)
    say(store, record)
    after = say(store, record, "edit", by="otto", arguments={"to": "x@example.com", "body": "hello"})
    assert after.state == ApprovalState.PENDING
    assert [voice.by for voice in read_card(after).voices] == ["otto"]
    assert refusal(store, record, by="olga", digest=record.digest) == "digest_mismatch"
    assert say(store, record, by="olga").state == ApprovalState.APPROVED


def test_a_response_is_kept_as_json() -> None:
    record = make_record(OPS, may=ALL, editable=("body",))
    after = say(put(record), record, "respond", response={"id": 7})
    assert (after.state, read_card(after).response) == (ApprovalState.RESPONDED, '{"id":7}')


def test_one_person_cannot_answer_where_two_must_approve() -> None:
    record = make_record(TWO, may=ALL, editable=("body",))
    assert refusal(put(record), record, "respond", response=1) == "move_not_allowed"


def test_a_response_that_is_no_json_is_refused() -> None:
    record = make_record(OPS, may=ALL, editable=("body",))
    assert refusal(put(record), record, "respond", response=float("inf")) == "response_invalid"


def test_a_decision_after_the_expiry_comes_too_late() -> None:
    record = make_record(OPS, expires_at=1500.0)
    store = put(record)
    assert refusal(store, record, at=1500.0) == "approval_closed"
    after = store.approvals.get(record.id)
    assert after is not None
    assert after.state == ApprovalState.EXPIRED


def test_a_grant_is_made_from_the_card() -> None:
    record = make_record(OPS, grantable=("args_in_run", "tool_in_run", "script"))
    for rung, tools, arguments in (
        ("args_in_run", ("mail.send",), '{"body":"hi","to":"x@example.com"}'),
        ("tool_in_run", ("mail.send",), None),
        ("script", ("mail.send", "mail.draft"), None),
    ):
        grant = read_card(say(put(record), record, grant=rung, grant_count=3)).grant
        assert grant is not None
        assert (grant.tools, grant.arguments, grant.count) == (tools, arguments, 3)
        assert "at most 3 more in this run" in grant.describe()


@pytest.mark.parametrize(
    ("demands", "more"),
    [
        ((OPS,), {"grant": "script"}),
        ((OPS,), {"grant": "tool_in_run", "grant_count": 0}),
        ((OPS,), {"grant": "tool_in_run", "grant_count": 10**6}),
        ((TWO,), {"grant": "tool_in_run"}),
        ((OPS, Demand(rule="s")), {"grant": "tool_in_run"}),
    ],
)
def test_a_grant_that_goes_too_far_is_refused(demands: tuple[Demand, ...], more: dict[str, Any]) -> None:
    record = make_record(*demands, grantable=("args_in_run", "tool_in_run"))
    assert refusal(put(record), record, **more) == "grant_not_allowed"


def test_every_decision_is_audited() -> None:
    record = make_record(OPS)
    store = put(record)
    say(store, record, reason="fine")
    entry = list(store.audit_entries())[-1]
    assert entry.action == "approval.approve"
    assert (entry.facts["by"], entry.facts["reason"], entry.facts["digest"]) == (
        "olga",
        "fine",
        record.digest,
    )
