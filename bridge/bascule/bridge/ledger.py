"""The ledger of one run: what is known of each call while it is going on, and the receipts made of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from bascule.bridge.history import CallHistory
from bascule.bridge.receipt import CallError, CallState, Receipt
from bascule.tools import AnyTool
from bascule.tools.canonical import canonical_json
from bascule.wire import Call


@dataclass(slots=True, eq=False)
class CallRecord:
    """One call while it is going on; becomes a `Receipt`.

    Attributes:
        arguments: canonical JSON once the arguments are validated or refused, before that None.
        dispatched: the tool was started, or will be in a moment: too late to stop it.
        attempts: how often the tool was started, by earlier workers too.
        past: what an earlier worker left of the call, when the run was resumed.
        rules: names of the policy rules that decided about it.
        timed_out: the tool did not end in time.
        carries_secret: the script passed a registered secret; ``arguments`` are without it.
    """

    call: Call
    arguments: bytes | None = None
    effects: str | None = None
    state: CallState = "not_started"
    dispatched: bool = False
    attempts: int = 0
    past: CallHistory | None = None
    carries_secret: bool = False
    rules: tuple[str, ...] = ()
    timed_out: bool = False
    duration_s: float = 0.0
    result_bytes: int = 0
    error: CallError | None = None
    approved_by: str | None = None
    edited_by: str | None = None
    answered_by: str | None = None
    duplicate: bool = False
    cancelled: bool = False

    @property
    def identity(self) -> bytes:
        """Return what two calls share that do the same: hash of tool and canonical arguments."""
        return hashlib.sha256(self.call.tool.encode() + b"\0" + (self.arguments or b"")).digest()

    def keep_bytes(self) -> None:
        """Keep the arguments as bytes alone: as objects a frame takes up to a hundred times its size."""
        if self.arguments is None:
            self.arguments = canonical_json(self.call.args)
        self.call = structs.replace(self.call, args={})

    def hide(self, arguments: bytes) -> None:
        """Note that the script passed a secret; ``arguments`` are what may be kept of them."""
        self.carries_secret = True
        self.arguments = arguments

    def restore(self, past: CallHistory, tool: AnyTool | None) -> None:
        """Take over what an earlier worker left of the call."""
        self.past = past
        self.attempts = past.dispatches
        self.arguments = past.arguments
        self.rules = past.rules
        self.effects = None if tool is None else tool.effects
        if past.completed is None:
            self.approved_by, self.edited_by = past.approved_by, past.edited_by
            # A started effect goes on until its outcome is known; a read can simply be made again.
            self.state = "running" if past.dispatches else "not_started"
            self.dispatched = past.dispatches > 0 and self.effects != "read"
            return
        facts: Mapping[str, Any] = past.completed.facts
        self.state = facts["state"]
        self.effects = facts["effects"]
        self.duration_s = facts["duration_s"]
        self.result_bytes = facts["result_bytes"]
        self.approved_by = facts["approved_by"]
        self.edited_by = facts["edited_by"]
        self.answered_by = facts["answered_by"]
        self.duplicate = facts["duplicate"]
        if past.failure is not None:
            self.error = CallError(kind=past.failure.kind, message=past.failure.message)

    def receipt(self) -> Receipt:
        """Return the receipt as things stand."""
        return Receipt(
            seq=self.call.seq,
            tool=self.call.tool,
            effects=self.effects,
            arguments=canonical_json(self.call.args) if self.arguments is None else self.arguments,
            line=self.call.line,
            state=self.state,
            duration_s=self.duration_s,
            result_bytes=self.result_bytes,
            error=self.error,
            approved_by=self.approved_by,
            edited_by=self.edited_by,
            answered_by=self.answered_by,
            duplicate=self.duplicate,
            cancelled=self.cancelled,
        )


@dataclass(slots=True, eq=False)
class Ledger:
    """All calls of one run, in issue order, and which identical ones were denied or have run before."""

    records: list[CallRecord] = field(default_factory=list[CallRecord])
    denied: dict[bytes, str] = field(default_factory=dict[bytes, str])
    ran_once: set[bytes] = field(default_factory=set[bytes])

    def open(self, call: Call) -> CallRecord:
        """Begin the record of a call that was just issued."""
        record = CallRecord(call)
        self.records.append(record)
        return record

    def receipts(self) -> tuple[Receipt, ...]:
        """Return one receipt per call."""
        return tuple(record.receipt() for record in self.records)
