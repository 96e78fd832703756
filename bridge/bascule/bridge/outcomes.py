"""From a question to its record, and from a decided record to what it means for the call.

What people said is checked against the tool once more: whoever wrote it may not have known the tools.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from bascule.bridge.approval import approval_digest
from bascule.bridge.approval_card import ApprovalState, Card, new_id
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.decide import digest_of_card, is_carried
from bascule.bridge.failure import RunTerminated, denied, redact
from bascule.bridge.ledger import CallRecord, Ledger
from bascule.bridge.redaction import Redactor
from bascule.bridge.requirement import Requirement
from bascule.bridge.result import JsonValue
from bascule.bridge.spelling import find_whole_floats
from bascule.tools import AnyTool, Arguments, ArgumentsInvalid, ResultInvalid, ToolDefinitionError

BY_PEOPLE: Final = (
    "the operator denied this call",
    "nobody decided about this call in time",
    "nobody approved this call",
)
"""How messages of denials begin where people could decide; the same call is denied again without asking."""

_NO_PERSON: Final = ("bascule", "deny_all")
"""Names under which calls are denied that no person has seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One call that people are to decide about."""

    tool: AnyTool
    record: CallRecord
    arguments: Arguments
    requirement: Requirement
    evidence: tuple[str, ...] = ()
    preview: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What people said: yes, to these arguments, or ``response`` in the tool's place."""

    approval: ApprovalRecord
    arguments: Arguments
    by: str
    response: bytes | None = None


class Unusable(Exception):
    """What people said cannot be done; ask again.

    Attributes:
        kept: what is kept of the card, where that must be less than what stands there.
    """

    def __init__(self, reason: str, *, kept: Card | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kept = kept


def read_outcome(
    question: Question, approval: ApprovalRecord, card: Card, ledger: Ledger, redactor: Redactor
) -> Answer:
    """Return what a decided approval lets happen.

    Raises:
        CallFailed: ``denied``.
        RunTerminated: it ends the run.
        Unusable: people said what cannot be done.
    """
    last = card.last
    match approval.state:
        case ApprovalState.APPROVED:
            _check_untouched(approval, card)
            if not is_carried(question.requirement, card):
                raise Unusable("it stood as approved, but not by those who may approve it")
            arguments = question.arguments
            if card.original is not None:
                arguments = _read_edit(question, card, redactor)
            return Answer(approval=approval, arguments=arguments, by=card.approved_by)
        case ApprovalState.RESPONDED:
            _check_untouched(approval, card)
            response = _read_response(question, card)
            by = "" if last is None else last.by
            question.record.answered_by = by
            return Answer(approval=approval, arguments=question.arguments, by=by, response=response)
        case ApprovalState.REJECTED:
            reason = redact(last.reason if last is not None else "") or "no reason was given"
            if last is not None and last.verdict == "terminate":
                raise RunTerminated(f"an operator ended the run: {reason}", line=question.record.call.line)
            ledger.denied[question.record.identity] = reason
            said = BY_PEOPLE[2 if last is not None and last.by in _NO_PERSON else 0]
            raise denied(f"{said}: {reason}")
        case ApprovalState.EXPIRED:
            if card.requirement.on_expiry == "terminate":
                message = "nobody decided about a call in time, which ends this run"
                raise RunTerminated(message, line=question.record.call.line)
            ledger.denied[question.record.identity] = "nobody decided in time"
            raise denied(f"{BY_PEOPLE[1]}, so it is denied")
        case _:
            raise denied(card.note or f"its approval was {approval.state}")


def _check_untouched(approval: ApprovalRecord, card: Card) -> None:
    """Refuse a card that is not what was decided about: somebody wrote to the store beside `decide`."""
    if digest_of_card(card, approval) != approval.digest:
        raise Unusable("its card was changed in the store after people had seen it")


def _read_edit(question: Question, card: Card, redactor: Redactor) -> Arguments:
    shown = card.arguments.encode()
    clean = redactor.json(shown)
    if clean is not shown:
        kept = replace(card, arguments=clean.decode())
        raise Unusable(f"the edit by {card.approved_by} holds a secret of the host", kept=kept)
    edited: JsonValue = msgspec.json.decode(card.arguments)
    try:
        arguments = question.tool.validate(edited)
    except (ArgumentsInvalid, ToolDefinitionError) as error:
        raise Unusable(f"the edit by {card.approved_by} does not fit the tool: {error}") from error
    if arguments.canonical != card.arguments.encode():
        raise Unusable(f"the edit by {card.approved_by} would run as other arguments than it shows")
    return arguments


def _read_response(question: Question, card: Card) -> bytes:
    assert card.response is not None
    try:
        return question.tool.read_response(card.response.encode())
    except ResultInvalid as error:
        by = "somebody" if card.last is None else card.last.by
        raise Unusable(f"the response by {by} is not what the tool returns: {error}") from error


def write_record(
    question: Question,
    *,
    run_id: str,
    source: str,
    script_sha256: str,
    requester: str | None,
    tools: Mapping[str, str],
) -> ApprovalRecord:
    """Return a new pending approval for a question.

    Args:
        source: the line of the script, untrusted.
        tools: names and digests of the tools the run has asked about so far.
    """
    call, tool = question.record.call, question.tool
    now = time.time()
    wait_s = question.requirement.expires_in_s
    expires_at = None if wait_s is None else float(math.ceil(now + wait_s))
    card = Card(
        tool=tool.name,
        description=tool.description,
        effects=tool.effects,
        tool_digest=tool.digest,
        arguments=question.arguments.canonical.decode(),
        script_sha256=script_sha256,
        line=call.line,
        source=source,
        requirement=question.requirement,
        requester=requester,
        duplicate=question.record.duplicate,
        tools=tuple(tools),
        tool_digests=tuple(tools.values()),
        evidence=question.evidence,
        preview=question.preview,
        note=question.note,
        floats=find_whole_floats(question.arguments.values),
    )
    return ApprovalRecord(
        id=new_id(),
        run_id=run_id,
        seq=call.seq,
        state=ApprovalState.PENDING,
        digest=approval_digest(
            run_id=run_id,
            seq=call.seq,
            tool=tool.name,
            tool_digest=tool.digest,
            arguments=question.arguments.canonical,
            script_sha256=script_sha256,
            expires_at=expires_at,
        ),
        body=card.encode(),
        created_at=now,
        updated_at=now,
        expires_at=expires_at,
    )
