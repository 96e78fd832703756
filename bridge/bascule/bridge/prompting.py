"""Puts open approvals to the approver of this process, and writes what it decides."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from bascule.bridge.approval import ApprovalRequest, Approver, BatchApprover, Decision, ask, ask_together
from bascule.bridge.approval_card import ApprovalState, read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.decide import decide
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.failure import redact
from bascule.bridge.matching import User
from bascule.bridge.policy import Policy
from bascule.bridge.redaction import Redactor
from bascule.bridge.requests import describe_record
from bascule.bridge.store import Store
from bascule.bridge.workers import Workers

MAX_ATTEMPTS: Final = 5
"""Times an approver is asked again about one call because its decision could not be taken."""

_log = logging.getLogger("bascule.bridge")


@dataclass(slots=True, kw_only=True)
class Prompter:
    """The approver of one run.

    Attributes:
        withdraw: called with an approval that the approver could not decide, and why.
        failed: called when a decision cannot be written: nobody would be asked again.
    """

    run_id: str
    policy: Callable[[], Policy]
    approver: Approver
    store: Store
    workers: Workers
    redactor: Redactor
    withdraw: Callable[[str, str], None]
    failed: Callable[[BaseException], None]
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _of: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])

    def prompt(self, records: Sequence[ApprovalRecord]) -> None:
        """Ask about approvals that were issued together, without waiting for the answers."""
        approver: object = self.approver
        if isinstance(approver, BatchApprover):
            self._start(self._ask_batch(approver, records), records)
            return
        same: dict[tuple[str, str], list[ApprovalRecord]] = {}
        for record in records:
            card = read_card(record)
            same.setdefault((card.tool, card.arguments), []).append(record)
        for group in same.values():
            self._start(self._ask_in_turn(group), group)

    def forget(self, approval_id: str) -> None:
        """Stop asking about an approval that is decided."""
        task = self._of.pop(approval_id, None)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """Stop asking."""
        for task in self._tasks:
            task.cancel()

    def _start(self, work: Coroutine[None, None, None], records: Sequence[ApprovalRecord]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)
        if len(records) == 1:
            self._of[records[0].id] = task

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """Forget a task. A run whose store does not take decisions ends, to be resumed; it must not wait."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("run %s: an answer was not taken: %s", self.run_id, error)
            self.failed(error)

    async def _ask_in_turn(self, same: Sequence[ApprovalRecord]) -> None:
        """Ask about equal calls one after the other; a denial settles the rest."""
        for index, record in enumerate(same):
            await self._ask_one(record)
            after = self.store.approvals.get(record.id)
            if after is not None and after.state == ApprovalState.REJECTED:
                last = read_card(after).last
                reason = redact("" if last is None else last.reason) or "no reason was given"
                for other in same[index + 1 :]:
                    self.withdraw(other.id, f"the same call was denied before in this run: {reason}")
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
                self.withdraw(record.id, f"its approver could not decide: {refused.message}")
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
                        self.withdraw(request.id, f"its approver could not decide: {refused.message}")
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
                redactor=self.redactor,
            )
        except DecisionRefused as refused:
            if refused.code == "approval_closed":
                return None
            _log.warning("run %s call %d: a decision was not taken: %s", self.run_id, request.seq, refused)
            return refused
        return None
