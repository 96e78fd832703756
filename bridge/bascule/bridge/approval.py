"""Approval: what an approver is asked, what it may answer, and the built-in approvers that need no person.

An approver sees the very bytes that will be executed and a digest that binds them to this run, this call and
this definition of the tool. Everything in a request that stems from the script is untrusted: show it through
`bascule.bridge.display` only. An approver that raises or answers anything but a Decision has denied.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, get_args, runtime_checkable

import msgspec

from bascule.bridge.approval_card import DEFAULT_GRANTED_CALLS, Grade
from bascule.bridge.result import JsonValue
from bascule.bridge.rules import Move
from bascule.bridge.workers import Workers

_log = logging.getLogger("bascule.bridge")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """One call that waits for a decision.

    Attributes:
        digest: sha256 of run id, seq, tool, tool digest, arguments, script and expiry, as hex; see
            `approval_digest`.
        arguments: canonical JSON (RFC 8785); exactly what will be executed.
        effects: ``read | idempotent | once``.
        why: names of the policy rules that ask.
        line, source: where in the script the call stands, and that line's text.
        duplicate: the same call already ran in this run.
        id: of the record in the store.
        batch: requests that were issued together have the same one; empty for a request of its own.
        requester: for whom the run is made, None when that is not known.
        expires_at: seconds since the epoch, None waits for ever.
        may, editable, grantable: what may be answered.
        approvers: who may decide, in words, one line per rule; empty when anybody may.
        decided: decisions so far, in words.
        evidence: which argument values were seen in which earlier result.
        preview: what the tool itself says the call would do, empty when it says nothing.
        note: why the call is asked about again.
        tools: what a grant for the whole script would be for.
        shown: the arguments as the tool receives them: a whole float is ``30.0`` there, ``30`` in
            ``arguments``; empty when they are the same.
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
    id: str = ""
    batch: str = ""
    requester: str | None = None
    expires_at: float | None = None
    may: tuple[Move, ...] = ("approve", "reject")
    editable: tuple[str, ...] = ()
    grantable: tuple[Grade, ...] = ()
    approvers: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    preview: str = ""
    note: str = ""
    tools: tuple[str, ...] = ()
    shown: bytes = b""

    @property
    def spelled(self) -> bytes:
        """The arguments as they are shown to people."""
        return self.shown or self.arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An answer.

    Attributes:
        verdict: ``approve``; ``edit`` (approve with other arguments); ``reject``; ``respond`` (answer in the
            tool's place); ``terminate`` (end the run).
        reason: for the script when rejected, for the record when approved.
        by: who or what decided.
        groups: groups of whoever decided, as the channel vouches for them.
        arguments: for ``edit``, all arguments.
        response: for ``respond``, the result as plain data.
        grant: how far an approval reaches beyond this call.
        grant_count: further calls a grant is good for.
    """

    verdict: Move
    reason: str = ""
    by: str = "callback"
    groups: frozenset[str] = frozenset()
    arguments: Mapping[str, JsonValue] | None = None
    response: JsonValue = None
    grant: Grade = "once"
    grant_count: int = DEFAULT_GRANTED_CALLS


Approver = Callable[[ApprovalRequest], Decision | Awaitable[Decision]]


@runtime_checkable
class BatchApprover(Protocol):
    """An approver that is shown all calls that were issued together as one card."""

    async def ask_batch(self, requests: Sequence[ApprovalRequest]) -> Sequence[Decision]:
        """Return one decision for each request, in order."""
        ...


async def deny_all(request: ApprovalRequest) -> Decision:
    """Reject every call that policy would ask about; the default of an executor."""
    return Decision(verdict="reject", reason="nobody may approve calls in this run", by="deny_all")


async def approve_all(request: ApprovalRequest) -> Decision:
    """Approve every call that policy asks about. Deny rules still hold."""
    return Decision(verdict="approve", by="approve_all")


async def ask_elsewhere(request: ApprovalRequest) -> Decision:
    """Leave the decision to `bascule approvals`, the console or `Executor.decide`: the store is watched."""
    never: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
    return await never


async def ask_later(request: ApprovalRequest) -> Decision:
    """Leave the decision to others as `ask_elsewhere` does, and hold no sandbox for it.

    The run is suspended as soon as it waits for nothing but people: for callers that nobody watches.
    """
    return await ask_elsewhere(request)


def approval_digest(
    *,
    run_id: str,
    seq: int,
    tool: str,
    tool_digest: str,
    arguments: bytes,
    script_sha256: str,
    expires_at: float | None,
) -> str:
    """Return the sha256 (hex) of the RFC 8785 object of these facts.

    Args:
        arguments: canonical JSON; it is hashed as it is.
        expires_at: whole seconds since the epoch.
    """
    facts = msgspec.json.encode(
        {
            "args": msgspec.Raw(arguments),
            "expires_at": None if expires_at is None else int(expires_at),
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
    return _checked(answer)


async def ask_together(approver: BatchApprover, requests: Sequence[ApprovalRequest]) -> list[Decision]:
    """Put requests that belong together to an approver, and return one decision for each."""
    try:
        answers = list(await approver.ask_batch(requests))
    except Exception:  # as above
        _log.exception("the approver raised; the calls are denied")
        answers = []
    nothing = Decision(verdict="reject", reason="the approver gave no valid decision", by="bascule")
    if len(answers) != len(requests):
        return [nothing for _ in requests]
    return [_checked(answer) for answer in answers]


def _checked(answer: object) -> Decision:
    if isinstance(answer, Decision) and answer.verdict in get_args(Move):
        return answer
    _log.error("the approver answered %r instead of a Decision; the call is denied", type(answer).__name__)
    return Decision(verdict="reject", reason="the approver gave no valid decision", by="bascule")


def _is_async(approver: Approver) -> bool:
    return inspect.iscoroutinefunction(approver) or inspect.iscoroutinefunction(
        getattr(approver, "__call__", None)  # noqa: B004  # an object whose __call__ is async
    )
