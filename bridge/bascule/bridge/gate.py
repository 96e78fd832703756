"""The gate of one run: holds a call until policy, and where it says so people, let it through.

The wait is outside the script's reach: the guest is merely blocked, and the run's clock stands still. A call
that was denied is denied again without asking when the script repeats it with the same arguments. Right
before a tool is started everything is evaluated once more: a new deny wins, an approval is used up, budgets
are reserved, all in one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from bascule.bridge.approval_card import ApprovalState, moved, read_card
from bascule.bridge.approvals_table import (
    ApprovalConflict,
    ApprovalMove,
    ApprovalRecord,
    Reservation,
    ReservationRefused,
)
from bascule.bridge.asking import Asking
from bascule.bridge.evidence import Evidence
from bascule.bridge.failure import denied, given_up, out_of_budget
from bascule.bridge.grants import Grant
from bascule.bridge.journal import EventKind, Fact, Journal
from bascule.bridge.ledger import CallRecord, Ledger
from bascule.bridge.matching import Facts, User
from bascule.bridge.outcomes import BY_PEOPLE, Question
from bascule.bridge.policy import Policy, Verdict
from bascule.bridge.rates import RateFull, rate_of, wait_for_place
from bascule.bridge.requirement import Requirement
from bascule.bridge.store import Store
from bascule.tools import AnyTool, Arguments
from bascule.wire import Note

_UNLIMITED: Final = 2.0**1000
_DAY_KEPT_S: Final = 3 * 86_400.0
_RUN_KEPT_S: Final = 400 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearance:
    """What lets a call through: nothing but policy, an approval, a grant; or a person's answer instead.

    Attributes:
        arguments: what will run; not what the script asked for when a person edited it.
        requirement: what was satisfied.
        response: JSON that a person answered in the tool's place; the tool is not started.
    """

    arguments: Arguments
    requirement: Requirement | None = None
    approval: ApprovalRecord | None = None
    grant: Grant | None = None
    response: bytes | None = None


@dataclass(slots=True, kw_only=True)
class Gate:
    """Decides about the calls of one run.

    Attributes:
        policy: returns the policy as it is now.
        labels: labels of the tools this run has started so far.
        notes: what the author of the script must know: which calls were edited.
    """

    run_id: str
    policy: Callable[[], Policy]
    user: User | None
    ledger: Ledger
    journal: Journal
    store: Store
    asking: Asking
    labels: frozenset[str] = frozenset()
    evidence: Evidence = field(default_factory=Evidence)
    notes: list[Note] = field(default_factory=list[Note])

    def decide(self, tool: AnyTool, record: CallRecord, arguments: Arguments) -> Verdict:
        """Return what policy says.

        Raises:
            CallFailed: ``denied`` by a rule, or ``budget_exceeded``.
        """
        verdict = self._evaluate(tool, arguments)
        self.journal.append(
            EventKind.DECIDED,
            arguments.canonical,
            seq=record.call.seq,
            effect=verdict.effect,
            rules=list(verdict.rules),
        )
        record.rules = verdict.rules
        _refuse_if_denied(verdict)
        return verdict

    async def clear(
        self,
        tool: AnyTool,
        record: CallRecord,
        arguments: Arguments,
        verdict: Verdict,
        preview: Callable[[Arguments], Awaitable[str]],
    ) -> Clearance:
        """Return what lets a call through, asking people where ``verdict`` says so.

        Args:
            preview: says what the call would do, for the card.

        Raises:
            CallFailed: ``denied``, now or before in this run.
            RunTerminated: an operator ended the run, or an expiry did.
        """
        note = ""
        while verdict.effect == "ask":
            requirement = verdict.requirement
            assert requirement is not None
            earlier = self.ledger.denied.get(record.identity)
            if earlier is not None:
                raise denied(f"the same call was denied before in this run: {earlier}")
            grant = self.asking.grants.find(tool, arguments.canonical, requirement, seq=record.call.seq)
            if grant is not None:
                record.approved_by = f"{grant.by} (grant)"
                return Clearance(arguments=arguments, requirement=grant.requirement, grant=grant)
            evidence = self.evidence.explain(dict(arguments.plain))
            with self.asking.preparing():
                said = await preview(arguments)
            question = Question(
                tool=tool, record=record, arguments=arguments, requirement=requirement,
                evidence=evidence, preview=said, note=note,
            )  # fmt: skip
            answer = await self.asking.ask(question)
            if answer.response is not None:
                return Clearance(arguments=arguments, approval=answer.approval, response=answer.response)
            record.approved_by = answer.by
            cleared = Clearance(arguments=answer.arguments, requirement=requirement, approval=answer.approval)
            if answer.arguments is arguments:
                return cleared
            arguments = answer.arguments
            record.arguments, record.edited_by = arguments.canonical, answer.by
            verdict = self._evaluate(tool, arguments)
            if await self._is_satisfied(tool, cleared, verdict):
                return cleared
            note = f"{answer.by} edited it; what it says now is asked about by other rules"
        return Clearance(arguments=arguments)

    async def dispatch(
        self, tool: AnyTool, record: CallRecord, clearance: Clearance, payload: bytes | None, /, **facts: Fact
    ) -> Verdict | None:
        """Let a call go: note that it is dispatched, durably where it must be; or return what asks again.

        Args:
            payload, facts: for the journal.

        Raises:
            CallFailed: ``denied`` or ``budget_exceeded``: policy, labels or budgets changed meanwhile, or
                there is no place under the tool's rate limit in time.
        """
        again = await self._dispatch(tool, record, clearance, facts, payload)
        if again is None and record.edited_by is not None:
            self._add_note(record, clearance.arguments.canonical, record.edited_by)
        return again

    async def _dispatch(
        self,
        tool: AnyTool,
        record: CallRecord,
        clearance: Clearance,
        facts: Mapping[str, Fact],
        payload: bytes | None,
    ) -> Verdict | None:
        rate, since = rate_of(tool), time.monotonic()
        while True:
            verdict = self._evaluate(tool, clearance.arguments)
            record.rules = verdict.rules
            if not await self._is_satisfied(tool, clearance, verdict):
                return verdict
            if clearance.grant is not None and not self.asking.grants.is_usable(clearance.grant):
                return verdict  # used up, or taken back meanwhile: people are asked
            moves = self._consume(clearance.approval)
            reservations = self._reserve(verdict, clearance.grant)
            self.labels |= tool.labels
            event: dict[str, Fact] = {"seq": record.call.seq, **facts}
            light = tool.effects == "read" and not moves and not reservations
            if light and rate is None:
                self.journal.append(EventKind.DISPATCHED, payload, **event)
                return None
            row = None if light else self.store.run(self.run_id)
            if row is not None and row.cancel_requested:
                # Whoever works on the run learns of it a moment later; until then no effect may begin.
                raise denied("somebody ended this run before the tool was started")
            try:
                await self.journal.commit(
                    move=moves,
                    reserve=reservations,
                    rates=() if rate is None else (rate,),
                    event=(EventKind.DISPATCHED, event, payload),
                    durable=not light,
                )
            except ReservationRefused:
                continue  # another call took what was left: evaluate again
            except RateFull as full:
                record.dispatched = False  # while it waits the script can still cancel it
                if record.cancelled:
                    raise given_up() from full
                await wait_for_place(tool, full, since=since)
                record.dispatched = True
                continue
            except ApprovalConflict as conflict:
                raise denied("its approval was withdrawn before the tool was started") from conflict
            return None

    async def close(self, *, keep: bool) -> None:
        """Stop asking; ``keep`` leaves the questions open, else they are taken back."""
        await self.asking.close(keep=keep)

    def recall(self, tool: AnyTool, record: CallRecord) -> None:
        """Take note of what an earlier worker left of a call: its labels and result, that it was denied."""
        past = record.past
        if past is None:
            return
        if past.dispatches:
            self.labels |= tool.labels
            if tool.effects == "once":
                self.ledger.ran_once.add(record.identity)
        if record.edited_by is not None and past.executed is not None:
            self._add_note(record, past.executed.encode(), record.edited_by)
        if past.completed is not None and past.failure is None:
            self.evidence.remember(record.call.seq, tool.name, past.value)
        elif past.failure is not None and past.failure.message.startswith(BY_PEOPLE):
            self.ledger.denied[record.identity] = past.failure.message

    def _evaluate(self, tool: AnyTool, arguments: Arguments) -> Verdict:
        policy = self.policy()
        if not policy.speaks_of(tool):
            return policy.decide(tool, arguments.plain)
        facts = Facts(
            run_id=self.run_id,
            user=policy.identify(self.user),
            labels=self.labels,
            day=time.strftime("%Y-%m-%d", time.gmtime()),
        )
        return policy.decide(tool, arguments.plain, facts, read=self.store.counter)

    async def _is_satisfied(self, tool: AnyTool, clearance: Clearance, verdict: Verdict) -> bool:
        """Tell whether what was given satisfies a verdict; an approval that does not becomes useless.

        Raises:
            CallFailed: it is denied now.
        """
        if verdict.effect == "allow":
            return True
        approval = clearance.approval
        changed = approval is not None and read_card(approval).tool_digest != tool.digest
        expired = approval is not None and _is_over(approval)
        given, wanted = clearance.requirement, verdict.requirement
        satisfied = wanted is not None and given is not None and given.covers(wanted)
        if satisfied and not changed and not expired:
            return True
        if approval is not None:
            await self.asking.invalidate(approval)
        _refuse_if_denied(verdict)
        return False

    def _consume(self, approval: ApprovalRecord | None) -> tuple[ApprovalMove, ...]:
        return () if approval is None else (moved(approval, ApprovalState.CONSUMED),)

    def _reserve(self, verdict: Verdict, grant: Grant | None) -> tuple[Reservation, ...]:
        now = time.time()
        found = [
            Reservation(
                key=charge.counter,
                amount=charge.amount,
                # A budget that is used up asks; what people approved goes beyond it.
                maximum=_UNLIMITED if charge in verdict.exhausted else charge.limit,
                expires_at=now + (_RUN_KEPT_S if " run " in charge.counter else _DAY_KEPT_S),
            )
            for charge in verdict.charges
        ]
        if grant is not None:
            found.append(grant.reservation(now))
        return tuple(found)

    def _add_note(self, record: CallRecord, arguments: bytes, by: str) -> None:
        self.notes.append(
            Note(
                code="call_edited",
                message=f"call {record.call.seq} of {record.call.tool}: an operator changed its arguments"
                f" before it ran; it ran with {arguments[:1000].decode('utf-8', 'replace')}",
                line=record.call.line,
            )
        )


def _refuse_if_denied(verdict: Verdict) -> None:
    if verdict.effect != "deny":
        return
    own = [charge for charge in verdict.exhausted if f"{charge.rule}#budget" in verdict.rules]
    if len(own) and all(rule.endswith("#budget") for rule in verdict.rules):
        raise out_of_budget(", ".join(f"{charge.text} (rule {charge.rule})" for charge in own))
    raise denied(f"policy does not allow this call (rule {', '.join(verdict.rules)})")


def _is_over(approval: ApprovalRecord) -> bool:
    return approval.expires_at is not None and time.time() >= approval.expires_at
