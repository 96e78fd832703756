"""Asks people about calls of one run: cards in the store, approvers in this process, answers from anywhere.

Calls that a script issues together are put on one card. An approver in this process is asked, and at the same
time the store is watched, because the command line and the console may decide as well; whoever is first wins.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from bascule.bridge.approval import (
    ApprovalRequest,
    Approver,
    BatchApprover,
    Decision,
    approval_digest,
    ask,
    ask_elsewhere,
    ask_together,
)
from bascule.bridge.approval_card import ApprovalState, Card, moved, new_id, read_card
from bascule.bridge.approvals_table import ApprovalConflict, ApprovalRecord
from bascule.bridge.clock import RunClock
from bascule.bridge.decide import decide
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.failure import RunTerminated, denied, redact
from bascule.bridge.grants import Grant, read_grant, read_grants
from bascule.bridge.journal import EventKind, Fact, Journal
from bascule.bridge.ledger import CallRecord, Ledger
from bascule.bridge.matching import User
from bascule.bridge.parking import Parking
from bascule.bridge.policy import Policy
from bascule.bridge.requests import describe_record
from bascule.bridge.requirement import Requirement
from bascule.bridge.result import JsonValue
from bascule.bridge.store import Store
from bascule.bridge.verdict import script_line
from bascule.bridge.watch import Watch
from bascule.bridge.workers import Workers
from bascule.tools import AnyTool, Arguments, ArgumentsInvalid, Registry, ResultInvalid, ToolDefinitionError

_log = logging.getLogger("bascule.bridge")

_OPEN: Final = (ApprovalState.PENDING, ApprovalState.APPROVED)
_MAX_RECORDS: Final = 20_000
BY_PEOPLE: Final = ("the operator denied this call", "nobody decided about this call in time")
"""How messages of denials by people begin; the same call is denied again without asking."""

MAX_ATTEMPTS: Final = 5
"""Times an approver is asked again about one call because its decision could not be taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One call that people are to decide about."""

    tool: AnyTool
    record: CallRecord
    arguments: Arguments
    requirement: Requirement
    evidence: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What people said: yes, to these arguments, or ``response`` in the tool's place."""

    approval: ApprovalRecord
    arguments: Arguments
    by: str
    response: bytes | None = None


@dataclass(slots=True, kw_only=True)
class Asking:
    """The questions of one run.

    Attributes:
        announce: called when a call begins to wait for people.
        remind: called with an approval that is about to expire.
    """

    run_id: str
    script: str
    registry: Registry
    policy: Callable[[], Policy]
    user: User | None
    approver: Approver
    ledger: Ledger
    journal: Journal
    store: Store
    clock: RunClock
    parking: Parking
    workers: Workers
    announce: Callable[[CallRecord], None]
    remind: Callable[[ApprovalRecord], None] = lambda record: None
    _script_sha256: str = field(init=False)
    _watch: Watch = field(init=False)
    _grants: list[Grant] = field(default_factory=list[Grant])
    _tools: dict[str, None] = field(default_factory=dict[str, None])
    _loaded: bool = False
    _asked: bool = False
    _preparing: int = 0
    _fresh: list[tuple[ApprovalRecord, asyncio.Future[None]]] = field(
        default_factory=list[tuple[ApprovalRecord, asyncio.Future[None]]]
    )
    _asking: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _of: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])

    def __post_init__(self) -> None:
        self._script_sha256 = hashlib.sha256(self.script.encode("utf-8", "surrogatepass")).hexdigest()
        self._watch = Watch(self.store, self.run_id, remind=self.remind)

    # ------------------------------------------------------------ grants

    def find_grant(self, tool: AnyTool, canonical: bytes, requirement: Requirement) -> Grant | None:
        """Return a grant of this run that lets a call through and is not used up."""
        self._load()
        for grant in self._grants:
            if grant.covers(tool, canonical, requirement) and self.uses_left(grant) > 0:
                return grant
        return None

    def uses_left(self, grant: Grant) -> float:
        """Return how many calls a grant is still good for."""
        return grant.rule.count - self.store.counter(grant.counter)

    def _load(self) -> None:
        """Read what earlier processes left of this run."""
        if self._loaded:
            return
        self._loaded = True
        records = self.store.approvals.find(run_id=self.run_id, limit=_MAX_RECORDS)
        self._asked = self._asked or bool(records)
        self._grants = read_grants(records)
        self._tools.update((read_card(record).tool, None) for record in records)

    # ------------------------------------------------------------ one question

    async def ask(self, question: Question) -> Answer:
        """Ask about one call and return once people let it through, or answered for the tool.

        Raises:
            CallFailed: ``denied``.
            RunTerminated: an operator ended the run.
        """
        self._tools[question.tool.name] = None
        approval = self._find_earlier(question)
        if approval is not None and approval.state == ApprovalState.PENDING:
            self._ask_again(approval)
        while True:
            if approval is None:
                approval = await self._post(question)
            approval = await self._wait(question.record, approval)
            card = read_card(approval)
            self._journal_outcome(approval, card)
            try:
                return self._read_outcome(question, approval, card)
            except _Unusable as unusable:
                await self.invalidate(approval)
                question, approval = replace(question, note=unusable.reason), None

    def _ask_again(self, approval: ApprovalRecord) -> None:
        """Put a question that an earlier process left open to the approver of this one."""
        self._asked = True
        asked = (
            self._ask_batch(self.approver, [approval])
            if isinstance(self.approver, BatchApprover)
            else self._ask_one(approval)
        )
        self._of[approval.id] = self._start(asked)

    async def invalidate(self, approval: ApprovalRecord) -> None:
        """Make an approval useless, because what it was given for is not so any more."""
        if approval.state not in _OPEN:
            return
        try:
            await self.journal.commit(move=[moved(approval, ApprovalState.INVALIDATED)])
        except ApprovalConflict:
            return  # somebody else ended it

    async def close(self, *, keep: bool) -> None:
        """Stop asking; ``keep`` leaves the questions open, for a run that only goes to sleep."""
        for task in self._asking:
            task.cancel()
        if keep or not self._asked:
            return
        for record in self.store.approvals.find(run_id=self.run_id, states=_OPEN, limit=_MAX_RECORDS):
            self._cancel(record.id)

    def _find_earlier(self, question: Question) -> ApprovalRecord | None:
        """Return the card of this very call that an earlier process of this run left."""
        for record in reversed(self.store.approvals.find(run_id=self.run_id, seq=question.record.call.seq)):
            card = read_card(record)
            same = (
                (card.original or card.arguments).encode() == question.arguments.canonical
                and card.tool_digest == question.tool.digest
                and card.script_sha256 == self._script_sha256
                and card.requirement.covers(question.requirement)
            )
            if same and not question.note and record.state not in _USED_UP:
                return record
            if record.state in _OPEN:
                self._move(record, ApprovalState.INVALIDATED)
        return None

    def _read_outcome(self, question: Question, approval: ApprovalRecord, card: Card) -> Answer:
        last = card.last
        match approval.state:
            case ApprovalState.APPROVED:
                arguments = question.arguments
                if card.original is not None:
                    arguments = self._read_edit(question, card)
                grant = read_grant(approval, card)
                if grant is not None:
                    self._grants.append(grant)
                return Answer(approval=approval, arguments=arguments, by=card.approved_by)
            case ApprovalState.RESPONDED:
                response = self._read_response(question, card)
                by = "" if last is None else last.by
                question.record.answered_by = by
                return Answer(approval=approval, arguments=question.arguments, by=by, response=response)
            case ApprovalState.REJECTED:
                reason = redact(last.reason if last is not None else "") or "no reason was given"
                if last is not None and last.verdict == "terminate":
                    raise RunTerminated(
                        f"an operator ended the run: {reason}", line=question.record.call.line
                    )
                self.ledger.denied[question.record.identity] = reason
                raise denied(f"{BY_PEOPLE[0]}: {reason}")
            case ApprovalState.EXPIRED:
                if card.requirement.on_expiry == "terminate":
                    message = "nobody decided about a call in time, which ends this run"
                    raise RunTerminated(message, line=question.record.call.line)
                self.ledger.denied[question.record.identity] = "nobody decided in time"
                raise denied(f"{BY_PEOPLE[1]}, so it is denied")
            case _:
                raise denied(card.note or f"its approval was {approval.state}")

    def _read_edit(self, question: Question, card: Card) -> Arguments:
        edited: JsonValue = msgspec.json.decode(card.arguments)
        try:
            arguments = question.tool.validate(edited)
        except (ArgumentsInvalid, ToolDefinitionError) as error:
            raise _Unusable(f"the edit by {card.approved_by} does not fit the tool: {error}") from error
        if arguments.canonical != card.arguments.encode():
            raise _Unusable(f"the edit by {card.approved_by} would run as other arguments than it shows")
        return arguments

    def _read_response(self, question: Question, card: Card) -> bytes:
        assert card.response is not None
        try:
            return question.tool.read_response(card.response.encode())
        except ResultInvalid as error:
            by = "somebody" if card.last is None else card.last.by
            raise _Unusable(f"the response by {by} is not what the tool returns: {error}") from error

    # ------------------------------------------------------------ posting and waiting

    async def _post(self, question: Question) -> ApprovalRecord:
        """Put a question on a card in the store, together with those that are asked at the same time."""
        self._asked = True
        record = self._make_record(question)
        loop = asyncio.get_running_loop()
        posted: asyncio.Future[None] = loop.create_future()
        if not self._fresh:
            # Calls of one stretch reach this point within one turn of the loop, one after the other.
            loop.call_soon(self._begin_post)
        self._fresh.append((record, posted))
        self.announce(question.record)
        await posted
        found = self.store.approvals.get(record.id)
        assert found is not None
        return found

    @contextmanager
    def preparing(self) -> Generator[None]:
        """Have cards wait for a call that is on its way here, so that what belongs together is shown so."""
        self._preparing += 1
        try:
            yield
        finally:
            self._preparing -= 1
            if self._fresh and not self._preparing:
                asyncio.get_running_loop().call_soon(self._begin_post)

    def _begin_post(self) -> None:
        if self._preparing or not self._fresh:
            return
        fresh, self._fresh = self._fresh, []
        self._start(self._post_all(fresh))

    async def _post_all(self, fresh: Sequence[tuple[ApprovalRecord, asyncio.Future[None]]]) -> None:
        batch = f"{self.run_id}/{fresh[0][0].seq}" if len(fresh) > 1 else ""
        records = [replace(record, batch=batch) for record, _ in fresh]
        for record in records:
            self.journal.append(
                EventKind.APPROVAL_REQUESTED, seq=record.seq, digest=record.digest, approval=record.id
            )
        try:
            await self.journal.commit(insert=records)
        except Exception as error:
            for _, posted in fresh:
                if not posted.done():
                    posted.set_exception(error)
            return
        for _, posted in fresh:
            if not posted.done():
                posted.set_result(None)
        approver: object = self.approver
        if isinstance(approver, BatchApprover):
            task = self._start(self._ask_batch(approver, records))
            self._of.update((record.id, task) for record in records if len(records) == 1)
        else:
            same: dict[tuple[str, str], list[ApprovalRecord]] = {}
            for record in records:
                card = read_card(record)
                same.setdefault((card.tool, card.arguments), []).append(record)
            for group in same.values():
                task = self._start(self._ask_in_turn(group))
                self._of.update((record.id, task) for record in group if len(group) == 1)

    async def _wait(self, record: CallRecord, approval: ApprovalRecord) -> ApprovalRecord:
        if approval.state != ApprovalState.PENDING:
            return approval
        try:
            with self.clock.people(), self._parked(record, approval):
                return await self._watch.decided(approval.id)
        except asyncio.CancelledError:
            if record.cancelled:  # by the script; a run that is suspended keeps its questions
                self._cancel(approval.id)
            raise
        finally:
            task = self._of.pop(approval.id, None)
            if task is not None:
                task.cancel()

    def _parked(self, record: CallRecord, approval: ApprovalRecord) -> AbstractContextManager[None]:
        if self.approver is not ask_elsewhere:  # it is asked by this process, which must stay for it
            return nullcontext()
        reason = f"{record.call.tool} waits for a decision"
        return self.parking.parked(
            approval.seq, reason, wake_at=approval.expires_at, key=f"approval:{approval.id}"
        )

    async def _ask_in_turn(self, same: Sequence[ApprovalRecord]) -> None:
        """Ask about equal calls one after the other; a denial settles the rest."""
        for index, record in enumerate(same):
            await self._ask_one(record)
            after = self.store.approvals.get(record.id)
            if after is not None and after.state == ApprovalState.REJECTED:
                last = read_card(after).last
                reason = redact("" if last is None else last.reason) or "no reason was given"
                for other in same[index + 1 :]:
                    self._cancel(other.id, note=f"the same call was denied before in this run: {reason}")
                return

    async def _ask_one(self, record: ApprovalRecord) -> None:
        """Ask the approver of this process about one call until a decision of it is taken."""
        note = ""
        for _ in range(MAX_ATTEMPTS):
            current = self.store.approvals.get(record.id)
            if current is None or current.state != ApprovalState.PENDING:
                return
            request = describe_record(current)
            decision = await ask(self.approver, replace(request, note=note or request.note), self.workers)
            refused = self._take(request, decision)
            if refused is None:
                return
            if refused.code != "digest_mismatch":
                self._cancel(record.id, note=f"its approver could not decide: {refused.message}")
                return
            note = refused.message

    async def _ask_batch(self, approver: BatchApprover, records: Sequence[ApprovalRecord]) -> None:
        open_: list[ApprovalRecord] = list(records)
        notes: dict[str, str] = {}
        for attempt in range(MAX_ATTEMPTS):
            found = [self.store.approvals.get(record.id) for record in open_]
            requests = [
                replace(request, note=notes.get(request.id) or request.note)
                for request in map(
                    describe_record,
                    [each for each in found if each is not None and each.state == ApprovalState.PENDING],
                )
            ]
            if not requests:
                return
            decisions = await ask_together(approver, requests)
            notes = {}
            for request, decision in zip(requests, decisions, strict=True):
                refused = self._take(request, decision)
                if refused is not None:
                    notes[request.id] = refused.message
                    if attempt == MAX_ATTEMPTS - 1:
                        self._cancel(request.id, note=f"its approver could not decide: {refused.message}")
            open_ = [record for record in open_ if record.id in notes]
            if not open_:
                return

    def _take(self, request: ApprovalRequest, decision: Decision) -> DecisionRefused | None:
        """Write a decision of the approver of this process; return why it was not taken."""
        known = self.policy().identify(User(name=decision.by, groups=decision.groups))
        groups = decision.groups if known is None else known.groups
        try:
            decide(
                self.store.approvals,
                request.id,
                replace(decision, groups=groups),
                digest=request.digest,
                channel="approver",
            )
        except DecisionRefused as refused:
            if refused.code == "approval_closed":
                return None
            _log.warning("run %s call %d: a decision was not taken: %s", self.run_id, request.seq, refused)
            return refused
        return None

    # ------------------------------------------------------------ records

    def _make_record(self, question: Question) -> ApprovalRecord:
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
            script_sha256=self._script_sha256,
            line=call.line,
            source=script_line(self.script, call.line).strip()[:2000],
            requirement=question.requirement,
            requester=None if self.user is None else self.user.name,
            duplicate=question.record.duplicate,
            tools=tuple(self._tools),
            evidence=question.evidence,
            note=question.note,
        )
        return ApprovalRecord(
            id=new_id(),
            run_id=self.run_id,
            seq=call.seq,
            state=ApprovalState.PENDING,
            digest=approval_digest(
                run_id=self.run_id,
                seq=call.seq,
                tool=tool.name,
                tool_digest=tool.digest,
                arguments=question.arguments.canonical,
                script_sha256=self._script_sha256,
                expires_at=expires_at,
            ),
            body=card.encode(),
            created_at=now,
            updated_at=now,
            expires_at=expires_at,
        )

    def _cancel(self, approval_id: str, *, note: str = "") -> None:
        """End an approval that is of no use any more, whatever it was moved to meanwhile."""
        while True:
            record = self.store.approvals.get(approval_id)
            if record is None or record.state not in _OPEN:
                return
            card = replace(read_card(record), note=note) if note else None
            if self._move(record, ApprovalState.CANCELLED, card):
                return

    def _move(self, record: ApprovalRecord, state: ApprovalState, card: Card | None = None) -> bool:
        audit: dict[str, Fact] = {"action": f"approval.{state}", "approval": record.id, "seq": record.seq}
        try:
            self.store.approvals.move(moved(record, state, card), audit=audit)
        except ApprovalConflict:
            return False
        return True

    def _journal_outcome(self, approval: ApprovalRecord, card: Card) -> None:
        last = card.last
        self.journal.append(
            EventKind.APPROVAL_RESOLVED,
            seq=approval.seq,
            digest=approval.digest,
            approval=approval.id,
            state=approval.state,
            verdict=None if last is None else last.verdict,
            by=None if last is None else last.by,
            reason=None if last is None else last.reason,
        )

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._asking.add(task)
        task.add_done_callback(self._asked_once)
        return task

    def _asked_once(self, task: asyncio.Task[None]) -> None:
        self._asking.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._watch.fail(error)  # no decision can be written: whoever waits must not wait for ever


_USED_UP: Final = (ApprovalState.CONSUMED, ApprovalState.CANCELLED, ApprovalState.INVALIDATED)


class _Unusable(Exception):
    """What people said cannot be done; ask again."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
