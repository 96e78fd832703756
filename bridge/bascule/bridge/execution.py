"""Execution of one call that was let through: its key, what its tool is told, what is noted of its start."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Final

import msgspec

from bascule.bridge.finding import validate_arguments
from bascule.bridge.history import CallHistory
from bascule.bridge.journal import Fact
from bascule.bridge.lanes import Turn
from bascule.bridge.ledger import CallRecord
from bascule.bridge.matching import User
from bascule.bridge.parking import Parking
from bascule.tools import AnyTool, Arguments, ToolContext
from bascule.wire import Call

KEY_CHARS: Final = 32
_KEY_BYTES: Final = KEY_CHARS * 5 // 8  # what these characters say; encoding more costs time


@lru_cache(
    maxsize=256
)  # asked for when a call is dispatched, and again right after it, when its tool is called
def idempotency_key(*, run_id: str, seq: int, tool: str, args_sha256: str) -> str:
    """Return the key of a call: base32 of sha256 over run, number, tool and digest of the arguments."""
    digest = hashlib.sha256(f"{run_id}|{seq}|{tool}|{args_sha256}".encode()).digest()
    return base64.b32encode(digest[:_KEY_BYTES]).decode()


def key_of(tool: AnyTool, arguments: Arguments, record: CallRecord, *, run_id: str) -> str:
    """Return the idempotency key of a call."""
    return idempotency_key(run_id=run_id, seq=record.call.seq, tool=tool.name, args_sha256=arguments.digest)


def context_of(
    tool: AnyTool,
    arguments: Arguments,
    record: CallRecord,
    *,
    run_id: str,
    user: User | None,
    secrets: Mapping[str, str],
) -> ToolContext:
    """Return what a tool is told about a call; of the secrets those it declares."""
    return ToolContext(
        idempotency_key=key_of(tool, arguments, record, run_id=run_id),
        run_id=run_id,
        seq=record.call.seq,
        attempt=max(record.attempts, 1),
        user=None if user is None else user.name,
        tenant=None if user is None else user.tenant,
        secrets={name: secrets[name] for name in tool.secrets},
    )


def start_facts(tool: AnyTool, arguments: Arguments, record: CallRecord, *, run_id: str) -> dict[str, Fact]:
    """Count one more start of the tool, and return what DISPATCHED says of it."""
    record.attempts += 1
    key = key_of(tool, arguments, record, run_id=run_id)
    facts: dict[str, Fact] = {"attempt": record.attempts, "key": key}
    if record.approved_by is not None:
        facts["approved_by"] = record.approved_by
    if record.edited_by is not None:
        facts["edited_by"] = record.edited_by
    return facts


def start_payload(arguments: Arguments, record: CallRecord) -> bytes | None:
    """Return what DISPATCHED keeps beside its facts: the arguments where a person edited them."""
    return None if record.edited_by is None else arguments.canonical


def executed_arguments(tool: AnyTool, call: Call, past: CallHistory, arguments: Arguments) -> Arguments:
    """Return the arguments an earlier worker started the tool with.

    Raises:
        CallFailed: ``invalid_arguments``: the tool does not take them any more.
    """
    if past.executed is None:
        return arguments
    return validate_arguments(tool, msgspec.structs.replace(call, args=msgspec.json.decode(past.executed)))


def waiting_turn(turn: Turn, seq: int, parking: Parking) -> AbstractContextManager[None]:
    """Say that a call stands behind others, so that a run can be suspended although it is not its turn."""
    return parking.parked(seq, "") if turn.blocked else nullcontext()
