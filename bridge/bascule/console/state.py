"""What all handlers share: one object, made by `build_app`, kept in the application's state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import HTTPConnection

from bascule.bridge.approval import Decision
from bascule.bridge.approval_card import ApprovalState
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.executor import Executor
from bascule.bridge.policy import Policy
from bascule.bridge.store import RunRecord, Store
from bascule.console.principal import Principal, Right
from bascule.console.problems import Problem

if TYPE_CHECKING:
    from bascule.console.access import Access
    from bascule.console.database import Database
    from bascule.console.definitions import Definitions
    from bascule.console.desk import Desk
    from bascule.console.hub import Hub
    from bascule.console.outbox import Outbox
    from bascule.console.settings import Settings
    from bascule.console.throttle import Throttle
    from bascule.console.tokens import Tokens


@dataclass(slots=True, kw_only=True)
class Console:
    """One console.

    Attributes:
        ready: whether submissions can be taken.
    """

    settings: Settings
    executor: Executor
    database: Database
    tokens: Tokens
    access: Access
    desk: Desk
    hub: Hub
    outbox: Outbox
    definitions: Definitions
    throttle: Throttle
    ready: bool = False

    @property
    def store(self) -> Store:
        """Where runs and approvals are kept."""
        return self.executor.store

    @property
    def policy(self) -> Policy:
        """The policy as it is now."""
        return self.executor.policy

    def decide(
        self, principal: Principal, approval_id: str, answer: Mapping[str, Any], *, digest: str
    ) -> ApprovalRecord:
        """Write a decision of somebody; every route to one passes here.

        Raises:
            Problem: this one may not decide at all.
            DecisionRefused: nothing was written.
        """
        require(principal, "decide")
        decision = Decision(**answer, by=principal.name, groups=principal.groups)
        return self.executor.decide(approval_id, decision, digest=digest, channel=principal.channel)

    def find_run(self, principal: Principal, run_id: str) -> RunRecord:
        """Return a run that somebody may see.

        Raises:
            Problem: 404, also for a run of somebody else.
        """
        row = self.store.run(run_id)
        if row is None or not principal.may_see(row.user):
            raise Problem(404, "run_not_found", f"there is no run {run_id}")
        return row

    def find_batch(self, batch: str) -> list[ApprovalRecord]:
        """Return the records of a batch that are pending, in their order.

        Raises:
            Problem: 404: nothing of it is pending.
        """
        run_id = batch.rpartition("/")[0]
        pending = self.store.approvals.find(run_id=run_id, states=(ApprovalState.PENDING,), limit=20_000)
        found = [record for record in pending if record.batch == batch]
        if not found:
            raise Problem(404, "batch_not_found", f"nothing of the batch {batch} is pending")
        return sorted(found, key=lambda record: record.seq)


def console_of(connection: HTTPConnection) -> Console:
    """Return the console that serves a request."""
    console = connection.app.state.console
    assert isinstance(console, Console)
    return console


def require(principal: Principal, right: Right) -> None:
    """Refuse whoever has not a right.

    Raises:
        Problem: 403.
    """
    if not principal.may(right):
        detail = f"{principal.name} came as {principal.role}, which may not {right}"
        raise Problem(403, "right_missing", detail)
