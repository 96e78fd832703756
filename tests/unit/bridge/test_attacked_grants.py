"""Attacks on approvals that reach beyond one call: after a tool changed, in other runs, on other tools."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from bascule.bridge import Decision, Executor, Limits, Policy, ask_elsewhere
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.decide import decide
from bascule.bridge.store import Store
from bascule.tools import AnyTool, tool
from tests.unit.bridge.guests import GuestBackend, sequence

pytestmark = pytest.mark.anyio

RULES = """
version: 1
rules:
  - {id: r, effect: ask, match: {tool: '*'},
     approval: {may: [approve, reject], grantable: [args_in_run, tool_in_run, script]}}
"""
Rung = Literal["args_in_run", "tool_in_run", "script"]


def putter(ran: list[Any], doc: str = "Put.") -> AnyTool:
    def put(value: int) -> str:
        ran.append((doc, value))
        return "put"

    put.__doc__ = doc
    return tool(effects="once")(put)


@tool(effects="once")
def look() -> str:
    """Look."""
    return "looked"


def host(store: Store, put: AnyTool, *values: int, **more: Any) -> Executor:
    """Return an executor whose guest looks once and then puts one value after the other."""
    wanted = [("look", dict[str, Any]()), *(("put", {"value": value}) for value in values)]
    return Executor(
        [put, look],
        policy=Policy.parse(RULES),
        approver=ask_elsewhere,
        store=store,
        limits=Limits(hold_warm_s=0.0),
        backend=GuestBackend(sequence(*wanted)),
        **more,
    )


def pending(store: Store) -> ApprovalRecord:
    (record,) = store.approvals.find(states=["pending"])
    return record


def approve(store: Store, grant: Rung | Literal["once"] = "once") -> None:
    record = pending(store)
    decision = Decision(verdict="approve", by="olga", grant=grant)
    decide(store.approvals, record.id, decision, digest=record.digest, channel="test")


@pytest.mark.parametrize("rung", ["args_in_run", "tool_in_run", "script"])
async def test_no_grant_lets_a_tool_through_that_was_changed_since(store: Store, rung: Rung) -> None:
    ran: list[Any] = []
    async with host(store, putter(ran), 1, 1, 1) as executor:
        result = await executor.run("x", wait=False)
        approve(store)
        await executor.resume(result.run_id, wait=False)
        approve(store, rung)
    async with host(store, putter(ran, "Send all of it away."), 1, 1, 1) as changed:
        result = await changed.resume(result.run_id, wait=False)
        assert (result.status, ran) == ("suspended", [])
        approve(store)
        result = await changed.resume(result.run_id, wait=False)
    assert (result.status, ran) == ("suspended", [("Send all of it away.", 1)])


async def test_a_grant_for_the_script_holds_for_the_tools_that_were_asked_about(store: Store) -> None:
    ran: list[Any] = []
    async with host(store, putter(ran), 1, 2, 3) as executor:
        result = await executor.run("x", wait=False)
        approve(store)
        await executor.resume(result.run_id, wait=False)
        approve(store, "script")
        result = await executor.resume(result.run_id, wait=False)
    assert (result.status, [value for _, value in ran]) == ("ok", [1, 2, 3])
    assert [receipt.approved_by for receipt in result.calls] == [
        "olga",
        "olga",
        "olga (grant)",
        "olga (grant)",
    ]


async def test_a_grant_ends_with_its_run_though_script_user_and_arguments_are_the_same(store: Store) -> None:
    ran: list[Any] = []
    async with host(store, putter(ran), 1, 1, user="ada") as executor:
        result = await executor.run("x", wait=False)
        approve(store)
        await executor.resume(result.run_id, wait=False)
        approve(store, "script")
        assert (await executor.resume(result.run_id, wait=False)).status == "ok"
        again = await executor.run("x", wait=False)
        assert again.status == "suspended"
        approve(store)
        again = await executor.resume(again.run_id, wait=False)
    assert (again.status, len(ran)) == ("suspended", 2)


async def test_a_grant_for_the_script_is_for_no_tool_that_was_not_asked_about(store: Store) -> None:
    ran: list[Any] = []
    async with host(store, putter(ran), 1, 2) as executor:
        result = await executor.run("x", wait=False)
        approve(store, "script")
        result = await executor.resume(result.run_id, wait=False)
    assert (result.status, ran) == ("suspended", [])
