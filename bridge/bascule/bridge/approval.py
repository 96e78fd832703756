"""Approval: what an approver is asked, what it may answer, and the built-in approvers that need no person.

An approver sees the very bytes that will be executed and a digest that binds them to this run, this call and
this definition of the tool. Everything in a request that stems from the script is untrusted: show it through
`bascule.bridge.display` only. An approver that raises or answers anything but a Decision has denied.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from bascule.bridge.workers import Workers

_log = logging.getLogger("bascule.bridge")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """One call that waits for a decision.

    Attributes:
        digest: sha256 of run id, seq, tool, tool digest, arguments and script, as hex; see `approval_digest`.
        arguments: canonical JSON (RFC 8785); exactly what will be executed.
        effects: ``read | idempotent | once``.
        why: ids of the policy rules that ask.
        line, source: where in the script the call stands, and that line's text.
        duplicate: the same call already ran in this run.
    """

    run_id: str
    seq: int
    tool: str
    description: str
    digest: str
    arguments: bytes
    effects: str
    why: tuple[str, ...]
    line: int
    source: str
    duplicate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An answer.

    Attributes:
        verdict: nothing but ``approve`` lets a call through.
        reason: for the script when rejected, for the record when approved.
        by: who or what decided.
    """

    verdict: Literal["approve", "reject"]
    reason: str = ""
    by: str = "callback"


Approver = Callable[[ApprovalRequest], Decision | Awaitable[Decision]]


async def deny_all(request: ApprovalRequest) -> Decision:
    """Reject every call that policy would ask about; the default of an executor."""
    return Decision(verdict="reject", reason="no approver is configured for this run", by="deny_all")


async def approve_all(request: ApprovalRequest) -> Decision:
    """Approve every call that policy asks about. Deny rules still hold."""
    return Decision(verdict="approve", by="approve_all")


def approval_digest(
    *, run_id: str, seq: int, tool: str, tool_digest: str, arguments: bytes, script_sha256: str
) -> str:
    """Return the sha256 (hex) of the RFC 8785 object of these facts.

    Args:
        arguments: canonical JSON; it is hashed as it is.
    """
    facts = msgspec.json.encode(
        {
            "args": msgspec.Raw(arguments),
            "run_id": run_id,
            "script_sha256": script_sha256,
            "seq": seq,
            "tool": tool,
            "tool_digest": tool_digest,
        }
    )
    return hashlib.sha256(facts).hexdigest()


async def ask(approver: Approver, request: ApprovalRequest, workers: Workers) -> Decision:
    """Put a request to an approver. A plain function runs on a worker thread: it may wait for a person."""
    try:
        if _is_async(approver):
            answer: object = approver(request)
        else:
            answer = await workers.submit(lambda: approver(request))
        if inspect.isawaitable(answer):
            answer = await answer
    except Exception:  # an approver's bug must end in a denial, whatever it is
        _log.exception("the approver raised; the call is denied")
        return Decision(verdict="reject", reason="the approver failed", by="bascule")
    if not isinstance(answer, Decision) or answer.verdict not in ("approve", "reject"):
        _log.error(
            "the approver answered %r instead of a Decision; the call is denied", type(answer).__name__
        )
        return Decision(verdict="reject", reason="the approver gave no valid decision", by="bascule")
    return answer


def _is_async(approver: Approver) -> bool:
    return inspect.iscoroutinefunction(approver) or inspect.iscoroutinefunction(
        getattr(approver, "__call__", None)  # noqa: B004  # an object whose __call__ is async
    )
