"""What binds an approval to one call, and who may be an approver."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from bascule.bridge import ApprovalRequest, Decision
from bascule.bridge.approval import approval_digest, ask
from bascule.bridge.workers import Workers
from bascule.tools import canonical_json

REQUEST = ApprovalRequest(
    run_id="run-1",
    seq=1,
    tool="send",
    description="",
    digest="",
    arguments=b"{}",
    effects="once",
    why=(),
    line=1,
    source="",
)


def digest(**changed: object) -> str:
    facts: dict[str, object] = {
        "run_id": "run-1",
        "seq": 1,
        "tool": "mail.send",
        "tool_digest": "t" * 64,
        "arguments": '{"to":"é"}'.encode(),
        "script_sha256": "s" * 64,
        "expires_at": None,
        **changed,
    }
    return approval_digest(**facts)  # type: ignore[arg-type]


def test_the_digest_is_the_hash_of_the_canonical_facts() -> None:
    facts = canonical_json(
        {
            "run_id": "run-1",
            "seq": 1,
            "tool": "mail.send",
            "tool_digest": "t" * 64,
            "args": {"to": "é"},
            "script_sha256": "s" * 64,
            "expires_at": None,
        }
    )
    assert digest() == hashlib.sha256(facts).hexdigest()


@pytest.mark.parametrize(
    "changed",
    [
        {"run_id": "run-2"},
        {"seq": 2},
        {"tool": "mail.read"},
        {"tool_digest": "u" * 64},
        {"arguments": b'{"to":"e"}'},
        {"script_sha256": "r" * 64},
        {"expires_at": 1.5},
    ],
)
def test_any_other_fact_gives_another_digest(changed: dict[str, object]) -> None:
    assert digest(**changed) != digest()


class AsyncObject:
    async def __call__(self, request: ApprovalRequest) -> Decision:
        return Decision(verdict="approve", by=request.tool)


def returning_an_awaitable(request: ApprovalRequest) -> object:
    return AsyncObject()(request)


@pytest.mark.anyio
@pytest.mark.parametrize("approver", [AsyncObject(), returning_an_awaitable])
async def test_objects_and_functions_that_give_awaitables_are_approvers_too(approver: object) -> None:
    workers = Workers(size=1)
    decision = await ask(approver, REQUEST, workers)  # type: ignore[arg-type]  # that is the point
    assert decision == Decision(verdict="approve", by="send")
    workers.close()


@pytest.mark.anyio
async def test_a_decision_with_an_unknown_verdict_denies() -> None:
    workers = Workers(size=1)

    async def approver(request: ApprovalRequest) -> Decision:
        return replace(Decision(verdict="approve"), verdict="allow")  # type: ignore[arg-type]

    assert (await ask(approver, REQUEST, workers)).verdict == "reject"
    workers.close()
