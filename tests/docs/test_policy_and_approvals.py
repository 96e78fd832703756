"""The examples of docs/policy.md and docs/approvals.md: rule files are valid, code runs, tables tell all."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from bascule.bridge import Executor, Policy, User
from bascule.bridge.approval_card import ApprovalState
from bascule.bridge.matching import Facts
from bascule.bridge.rules import ApprovalSection, Condition, Match, Move
from bascule.tools import AnyTool, tool
from tests.unit.bridge.guests import GuestBackend, calls

DOCS = Path(__file__).parents[2] / "docs"
POLICY = (DOCS / "policy.md").read_text(encoding="utf-8")
APPROVALS = (DOCS / "approvals.md").read_text(encoding="utf-8")


@tool(effects="once", name="billing.refund")
def refund(customer: str, amount: float, currency: str = "EUR") -> None:
    """Refund."""


@tool(effects="once", name="mail.send", labels={"external"})
def send(to: str, subject: str = "", body: str = "", url: str | None = None) -> None:
    """Send."""


@tool(effects="read", name="crm.find", labels={"private", "untrusted"})
def find(name: str) -> str:
    """Find."""
    return name


TOOLS: tuple[AnyTool, ...] = (refund, send, find)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", blocks(POLICY, "yaml"))
def test_every_rule_file_is_valid_and_fits_the_tools(text: str) -> None:
    Policy.parse(text).check(TOOLS)
    assert yaml.safe_load(text)["version"] == 1


def test_the_explanation_is_the_one_that_is_printed() -> None:
    policy = Policy.parse(blocks(POLICY, "yaml")[0])
    valid = refund.validate({"customer": "c1", "amount": 70})
    facts = Facts(user=policy.identify(User(name="ada")))
    for each in policy.explain(refund, valid.plain, facts):
        line = f"{'matches' if each.matches else '-':<8} {each.effect:<6} {each.rule}: {each.why}"
        assert line in POLICY


@pytest.mark.parametrize("model", [Match, Condition, ApprovalSection])
def test_every_key_is_documented(model: Any) -> None:
    text = POLICY if model is not ApprovalSection else APPROVALS
    names = {field.alias or name for name, field in model.model_fields.items()}
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_decision_and_every_state_is_documented() -> None:
    assert [move for move in get_args(Move) if f"| {move} |" not in APPROVALS] == []
    assert [state for state in ApprovalState if f"`{state}`" not in APPROVALS] == []


def test_the_approver_of_the_page_works() -> None:
    namespace: dict[str, Any] = {}
    exec(blocks(APPROVALS, "python")[0], namespace)
    approver = namespace["approver"]
    wanted = [("mail.send", {"to": "a@example.com"}), ("mail.send", {"to": "a@elsewhere.test"})]

    async def run() -> list[str]:
        backend = GuestBackend(calls(*wanted))
        async with Executor(TOOLS, approver=approver, backend=backend) as executor:
            result = await executor.run("mail.send(...)")
        return [call.state for call in result.calls]

    assert asyncio.run(run()) == ["done", "denied"]


def test_the_executor_of_the_page_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "policy.yaml").write_text(blocks(POLICY, "yaml")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"tools": TOOLS}
    exec(blocks(POLICY, "python")[0], namespace)
    assert isinstance(namespace["executor"], Executor)


def test_the_rehearsal_of_the_page_is_a_function() -> None:
    namespace: dict[str, Any] = {}
    exec(blocks(APPROVALS, "python")[1], namespace)
    assert callable(namespace["preview"])
