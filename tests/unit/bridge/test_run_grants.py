"""Grants of a run: found where an earlier process left them, and worth nothing once used up or taken back."""

from __future__ import annotations

from dataclasses import replace

from bascule.bridge.approval import Decision
from bascule.bridge.approval_card import read_card
from bascule.bridge.decide import decide
from bascule.bridge.grants import revoke_grant
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.requirement import Demand
from bascule.bridge.run_grants import RunGrants
from bascule.tools import tool
from tests.unit.bridge.cards import make_record


@tool(effects="once", name="mail.send")
def send(to: str, body: str = "") -> None:
    """Send."""


def test_a_grant_is_good_until_it_is_taken_back_even_for_a_call_that_has_it_in_hand() -> None:
    store = MemoryStore()
    record = make_record(Demand(rule="mail"), may=("approve",), grantable=("tool_in_run",))
    record = replace(record, body=replace(read_card(record), tool_digest=send.digest).encode())
    store.approvals.insert(record)
    yes = Decision(verdict="approve", by="olga", grant="tool_in_run", grant_count=3)
    decide(store.approvals, record.id, yes, digest=record.digest, channel="test")
    grants = RunGrants(store, record.run_id)
    requirement = read_card(record).requirement
    found = grants.find(send, b"{}", requirement, seq=0)
    assert found is not None
    assert list(grants.tools) == ["mail.send"]
    assert grants.is_usable(found)
    revoke_grant(store.approvals, record.id, by="olga", channel="test")
    assert not grants.is_usable(found)
    assert grants.find(send, b"{}", requirement, seq=0) is None
    assert RunGrants(store, record.run_id).find(send, b"{}", requirement, seq=0) is None
    assert RunGrants(store, "run-2").find(send, b"{}", requirement, seq=0) is None
