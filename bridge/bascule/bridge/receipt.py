"""Receipts: what became of each call, one per call that the script issued, in issue order.

The arguments are the canonical ones where validation passed, else what the guest sent. All text in a receipt
may come from an untrusted guest or tool: show it through `bascule.bridge.display` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CallState = Literal["not_started", "denied", "running", "done", "failed", "unknown", "answered", "withheld"]
"""``not_started``: refused by a check, or overtaken by the end; no tool ran. ``denied``: by policy or
a person; no tool ran. ``running``: the tool was running when the run ended. ``done``: the tool returned.
``failed``: the tool raised. ``unknown``: it was started and nobody knows whether it happened. ``answered``:
a person gave the result in the tool's place; no tool ran. ``withheld``: a rehearsal only noted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallError:
    """Why a call gave the script no value: ``kind`` as in `bascule.wire.ToolFailure`, and one sentence."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One call of one run.

    Attributes:
        seq: number of the command in its run, from 1, rising.
        tool: name as the script wrote it.
        effects: ``read | idempotent | once``, or None for a tool that does not exist.
        arguments: JSON text of the arguments (UTF-8), canonical when they were valid.
        line: line of the script that issued the call.
        state: see `CallState`.
        duration_s: seconds the tool itself ran; 0 when it was never started.
        result_bytes: size of the JSON result; it stayed in the script's variables.
        error: set when the script got no value; may be set with ``done`` when the result could not be used.
        approved_by: who or what approved, when a person or approver was asked.
        edited_by: who changed the arguments before the call ran; ``arguments`` are those that ran.
        answered_by: who gave the result in the tool's place.
        duplicate: the same call of a ``once`` tool with the same arguments had run before in this run.
        cancelled: the script stopped waiting before the call was over.
    """

    seq: int
    tool: str
    effects: str | None
    arguments: bytes
    line: int
    state: CallState
    duration_s: float = 0.0
    result_bytes: int = 0
    error: CallError | None = None
    approved_by: str | None = None
    edited_by: str | None = None
    answered_by: str | None = None
    duplicate: bool = False
    cancelled: bool = False
