"""The gate of one run: holds a call until policy, and where it says so a person, lets it through.

The wait is outside the script's reach: the guest is merely blocked, and the run's clock stands still. A call
that was denied is denied again without asking when the script repeats it with the same arguments.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bascule.bridge.approval import ApprovalRequest, Approver, Decision, approval_digest, ask
from bascule.bridge.clock import RunClock
from bascule.bridge.failure import CallFailed, redact
from bascule.bridge.journal import EventKind, Journal
from bascule.bridge.ledger import CallRecord, Ledger
from bascule.bridge.policy import Policy, Verdict
from bascule.bridge.verdict import script_line
from bascule.bridge.workers import Workers
from bascule.tools import AnyTool, Arguments
from bascule.wire import ToolFailure

_DO_NOT_REPEAT = (
    "do not repeat this call and do not try another way to the same end; go on without it or stop"
)


@dataclass(slots=True, kw_only=True)
class Gate:
    """Decides about the calls of one run.

    Attributes:
        announce: called when a call begins to wait for its approver.
    """

    run_id: str
    script: str
    policy: Policy
    approver: Approver
    ledger: Ledger
    journal: Journal
    clock: RunClock
    workers: Workers
    announce: Callable[[CallRecord], None]
    _script_sha256: str = field(init=False)
    _asking: dict[bytes, asyncio.Lock] = field(init=False, default_factory=dict[bytes, asyncio.Lock])

    def __post_init__(self) -> None:
        self._script_sha256 = hashlib.sha256(self.script.encode("utf-8", "surrogatepass")).hexdigest()

    def decide(self, tool: AnyTool, record: CallRecord, arguments: Arguments) -> Verdict:
        """Return what policy says.

        Raises:
            CallFailed: ``denied`` by a rule.
        """
        verdict = self.policy.decide(tool, arguments.plain)
        self.journal.append(
            EventKind.DECIDED, seq=record.call.seq, effect=verdict.effect, rules=verdict.rules
        )
        if verdict.effect == "deny":
            raise _denied(f"policy does not allow this call (rule {', '.join(verdict.rules)})")
        return verdict

    async def obtain_approval(
        self, tool: AnyTool, record: CallRecord, arguments: Arguments, verdict: Verdict
    ) -> None:
        """Ask the approver about one call and return once it said yes.

        Raises:
            CallFailed: ``denied``, now or before in this run.
        """
        identity = record.identity
        # The same call issued many times at once is asked about one by one: a denial settles the rest.
        async with self._asking.setdefault(identity, asyncio.Lock()):
            earlier = self.ledger.denied.get(identity)
            if earlier is not None:
                raise _denied(f"the same call was denied before in this run: {earlier}")
            request = self._request(tool, record, arguments.canonical, verdict)
            self.journal.append(EventKind.APPROVAL_REQUESTED, seq=request.seq, digest=request.digest)
            self.announce(record)
            with self.clock.people():
                decision = await ask(self.approver, request, self.workers)
            self._note(request, decision)
            if decision.verdict != "approve":
                reason = redact(decision.reason) or "no reason was given"
                self.ledger.denied[identity] = reason
                raise _denied(f"the operator denied this call: {reason}")
            record.approved_by = decision.by

    def _request(
        self, tool: AnyTool, record: CallRecord, canonical: bytes, verdict: Verdict
    ) -> ApprovalRequest:
        call = record.call
        return ApprovalRequest(
            run_id=self.run_id,
            seq=call.seq,
            tool=tool.name,
            description=tool.description,
            digest=approval_digest(
                run_id=self.run_id,
                seq=call.seq,
                tool=tool.name,
                tool_digest=tool.digest,
                arguments=canonical,
                script_sha256=self._script_sha256,
            ),
            arguments=canonical,
            effects=tool.effects,
            why=verdict.rules,
            line=call.line,
            source=script_line(self.script, call.line).strip(),
            duplicate=record.duplicate,
        )

    def _note(self, request: ApprovalRequest, decision: Decision) -> None:
        self.journal.append(
            EventKind.APPROVAL_RESOLVED,
            seq=request.seq,
            digest=request.digest,
            verdict=decision.verdict,
            reason=decision.reason,
            by=decision.by,
            decided_at=time.time(),
        )


def _denied(message: str) -> CallFailed:
    failure = ToolFailure(kind="denied", message=message, suggestion=_DO_NOT_REPEAT)
    return CallFailed(failure, "denied")
