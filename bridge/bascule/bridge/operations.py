"""What can be done with the runs of an executor without running anything: decide, resolve, cancel, look, set.

Needs a store and what is offered, and no sandbox. `Executor` is one of these.
"""

from __future__ import annotations

from dataclasses import replace

from bascule.bridge.approval import Decision
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.decide import decide
from bascule.bridge.errors import DecisionRefused
from bascule.bridge.journal import Journal
from bascule.bridge.matching import User
from bascule.bridge.offering import Offering
from bascule.bridge.policy import Policy
from bascule.bridge.runs import cancel_run, resolve_call
from bascule.bridge.store import Answer, Store
from bascule.tools import Registry


class Operations:
    """Operates on one store, with the tools, the policy and the secrets of an executor."""

    def __init__(self, store: Store, offering: Offering) -> None:
        self._store = store
        self._offering = offering

    async def cancel(self, run_id: str) -> bool:
        """End a run, wherever it is; False when it is finished or unknown. Dispatched effects end first."""
        return await cancel_run(self._store, run_id)

    def resolve(self, run_id: str, seq: int, answer: Answer, *, attempt: int | None = None) -> bool:
        """Say what became of a call whose outcome is unknown; see `bascule.bridge.runs.resolve_call`."""
        offering = self._offering
        return resolve_call(
            self._store, run_id, seq, answer,
            attempt=attempt, registry=offering.registry, redactor=offering.redactor,
        )  # fmt: skip

    def journal(self, run_id: str) -> Journal | None:
        """Return the journal of a run, or None when the store does not hold it any more."""
        return self._store.journal(run_id)

    def decide(
        self, approval_id: str, decision: Decision, *, digest: str, channel: str = "api"
    ) -> ApprovalRecord:
        """Write one person's decision about a waiting call; see `bascule.bridge.decide.decide`.

        Raises:
            DecisionRefused: nothing was written; the message says what to do.
        """
        record = self._store.approvals.get(approval_id)
        row = None if record is None else self._store.run(record.run_id)
        if row is not None and row.cancel_requested and row.status != "finished":
            raise DecisionRefused("approval_closed", f"{row.run_id} is being ended: nothing of it is decided")
        known = self._offering.policy.identify(User(name=decision.by, groups=decision.groups))
        groups = decision.groups if known is None else known.groups
        return decide(
            self._store.approvals,
            approval_id,
            replace(decision, groups=groups),
            digest=digest,
            channel=channel,
            check_edit=self._offering.check_edit,
            redactor=self._offering.redactor,
        )

    def register_secrets(self, *secrets: str) -> None:
        """Add values that must never leave the host.

        Raises:
            ValueError: one is too short to be told apart.
        """
        self._offering.redactor.register(*secrets)

    def replace_policy(self, policy: Policy) -> None:
        """Use another policy from now on, also for calls that wait: they are evaluated again.

        Raises:
            PolicyError: a rule can never match these tools; the old policy stays.
        """
        self._offering.replace_policy(policy)

    def redact(self, text: str) -> str:
        """Return text without the registered secrets."""
        return self._offering.redactor.text(text)

    @property
    def registry(self) -> Registry:
        """Everything a script may call; the tools of sources from the opening on."""
        return self._offering.registry

    @property
    def store(self) -> Store:
        """Where the runs of this executor are kept."""
        return self._store

    @property
    def policy(self) -> Policy:
        """The policy as it is now."""
        return self._offering.policy
