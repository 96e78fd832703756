"""Asks people about calls of one run: cards in the store, approvers in this process, answers from anywhere.

Calls that a script issues together are put on one card. An approver in this process is asked, and at the same
time the store is watched, because the command line and the console may decide as well; whoever is first wins.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final

from bascule.bridge.approval import (
    Approver,
    ask_elsewhere,
    ask_later,
)
from bascule.bridge.approval_card import ApprovalState, Card, moved, read_card
from bascule.bridge.approvals_table import ApprovalConflict, ApprovalRecord
from bascule.bridge.clock import RunClock
from bascule.bridge.journal import EventKind, Fact, Journal
from bascule.bridge.ledger import CallRecord, Ledger
from bascule.bridge.matching import User
from bascule.bridge.outcomes import Answer, Question, Unusable, read_outcome, write_record
from bascule.bridge.parking import Parking
from bascule.bridge.policy import Policy
from bascule.bridge.prompting import Prompter
from bascule.bridge.redaction import Redactor
from bascule.bridge.run_grants import MAX_RECORDS, RunGrants
from bascule.bridge.store import Store
from bascule.bridge.verdict import script_line
from bascule.bridge.watch import Watch
from bascule.bridge.workers import Workers
from bascule.tools import Registry

_log = logging.getLogger("bascule.bridge")

_OPEN: Final = (ApprovalState.PENDING, ApprovalState.APPROVED)

MAX_SOURCE_CHARS: Final = 2000
"""Characters kept of the line of the script that made a call."""


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
    redactor: Redactor
    announce: Callable[[CallRecord], None]
    remind: Callable[[ApprovalRecord], None] = lambda record: None
    _script_sha256: str = field(init=False)
    _watch: Watch = field(init=False)
    grants: RunGrants = field(init=False)
    _preparing: int = 0
    _fresh: list[tuple[ApprovalRecord, asyncio.Future[None]]] = field(
        default_factory=list[tuple[ApprovalRecord, asyncio.Future[None]]]
    )
    _posting: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _prompter: Prompter = field(init=False)

    def __post_init__(self) -> None:
        self._script_sha256 = hashlib.sha256(self.script.encode("utf-8", "surrogatepass")).hexdigest()
        self.grants = RunGrants(self.store, self.run_id)
        self._watch = Watch(self.store, remind=self.remind)
        self._prompter = Prompter(
            run_id=self.run_id,
            policy=self.policy,
            approver=self.approver,
            store=self.store,
            workers=self.workers,
            redactor=self.redactor,
            withdraw=lambda approval_id, note: self._cancel(approval_id, note=note),
            failed=self._watch.fail,
        )

    # ------------------------------------------------------------ one question

    async def ask(self, question: Question) -> Answer:
        """Ask about one call and return once people let it through, or answered for the tool.

        Raises:
            CallFailed: ``denied``.
            RunTerminated: an operator ended the run.
        """
        self.grants.tools[question.tool.name] = question.tool.digest
        approval = self._find_earlier(question)
        if approval is not None and approval.state == ApprovalState.PENDING:
            self.grants.asked = True
            self._prompter.prompt([approval])  # an earlier process left it open
        while True:
            if approval is None:
                approval = await self._post(question)
            approval = await self._wait(question.record, approval)
            card = read_card(approval)
            self._journal_outcome(approval, card)
            self.grants.add(approval, card)
            try:
                return read_outcome(question, approval, card, self.ledger, self.redactor)
            except Unusable as unusable:
                await self.invalidate(approval, unusable.kept)
                question, approval = replace(question, note=unusable.reason), None

    async def invalidate(self, approval: ApprovalRecord, card: Card | None = None) -> None:
        """Make an approval useless, because what it was given for is not so any more.

        Args:
            card: what is kept of it, where that must be less than what stands there.
        """
        if approval.state not in _OPEN:
            return
        try:
            await self.journal.commit(move=[moved(approval, ApprovalState.INVALIDATED, card)])
        except ApprovalConflict:
            return  # somebody else ended it

    async def close(self, *, keep: bool) -> None:
        """Stop asking; ``keep`` leaves the questions open, for a run that only goes to sleep."""
        self._prompter.close()
        if keep or not self.grants.asked:
            return
        for record in self.store.approvals.find(run_id=self.run_id, states=_OPEN, limit=MAX_RECORDS):
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

    # ------------------------------------------------------------ posting and waiting

    async def _post(self, question: Question) -> ApprovalRecord:
        """Put a question on a card in the store, together with those that are asked at the same time."""
        self.grants.asked = True
        record = write_record(
            question,
            run_id=self.run_id,
            source=self._source(question.record.call.line),
            script_sha256=self._script_sha256,
            requester=None if self.user is None else self.user.name,
            tools=self.grants.tools,
        )
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
        # In issue order, whichever preview was ready first.
        fresh, self._fresh = sorted(self._fresh, key=lambda each: each[0].seq), []
        task = asyncio.create_task(self._post_all([each for each in fresh if not each[1].cancelled()]))
        self._posting.add(task)
        task.add_done_callback(self._posting.discard)

    async def _post_all(self, fresh: Sequence[tuple[ApprovalRecord, asyncio.Future[None]]]) -> None:
        if not fresh:
            return
        batch = f"{self.run_id}/{fresh[0][0].seq}" if len(fresh) > 1 else ""
        waiting = [posted for _, posted in fresh]
        records = [replace(record, batch=batch) for record, _ in fresh]
        for record in records:
            self.journal.append(
                EventKind.APPROVAL_REQUESTED, seq=record.seq, digest=record.digest, approval=record.id
            )
        try:
            await self.journal.commit(insert=records)
            for record, posted in zip(records, waiting, strict=True):
                if posted.cancelled():  # by the script, meanwhile
                    self._cancel(record.id)
        except Exception as error:  # the store is gone, or the lease: whoever waits must not wait for ever
            for posted in waiting:
                if not posted.done():
                    posted.set_exception(error)
            return
        for posted in waiting:
            if not posted.done():
                posted.set_result(None)
        self._prompter.prompt(
            [record for record, posted in zip(records, waiting, strict=True) if not posted.cancelled()]
        )

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
            self._prompter.forget(approval.id)

    def _parked(self, record: CallRecord, approval: ApprovalRecord) -> AbstractContextManager[None]:
        if self.approver not in (ask_elsewhere, ask_later):  # it is asked by this process, which must stay
            return nullcontext()
        reason = f"{record.call.tool} waits for a decision"
        return self.parking.parked(
            approval.seq,
            reason,
            wake_at=approval.expires_at,
            key=f"approval:{approval.id}",
            hold=self.approver is not ask_later,
        )

    # ------------------------------------------------------------ records

    def _source(self, line: int) -> str:
        return script_line(self.script, line).strip()[:MAX_SOURCE_CHARS]

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


_USED_UP: Final = (ApprovalState.CONSUMED, ApprovalState.CANCELLED, ApprovalState.INVALIDATED)
