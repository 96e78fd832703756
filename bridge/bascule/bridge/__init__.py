"""Runs scripts and takes each of their calls over one bridge: validated, allowed, approved, recorded.

Trusts the operator's registry, policy and approver; never the script, and never the guest it runs in. Names
are imported when they are first used: the command line must answer before half of this is loaded.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bascule.bridge.approval import (
        ApprovalRequest,
        Approver,
        BatchApprover,
        Decision,
        approve_all,
        ask_elsewhere,
        ask_later,
        deny_all,
    )
    from bascule.bridge.errors import (
        DecisionRefused,
        ExecutorClosedError,
        HandshakeError,
        LimitsError,
        PolicyError,
    )
    from bascule.bridge.events import Event
    from bascule.bridge.executor import Executor
    from bascule.bridge.journal import Journal, JournalEntry
    from bascule.bridge.limits import Limits
    from bascule.bridge.matching import User
    from bascule.bridge.memory_store import MemoryStore
    from bascule.bridge.policy import Policy
    from bascule.bridge.receipt import CallError, Receipt
    from bascule.bridge.result import Result, Usage
    from bascule.bridge.store import Store
    from bascule.bridge.terminal import ask_in_terminal
    from bascule.wire import BasculeError, Note, ScriptError

__all__ = [
    "ApprovalRequest",
    "Approver",
    "BasculeError",
    "BatchApprover",
    "CallError",
    "Decision",
    "DecisionRefused",
    "Event",
    "Executor",
    "ExecutorClosedError",
    "HandshakeError",
    "Journal",
    "JournalEntry",
    "Limits",
    "LimitsError",
    "MemoryStore",
    "Note",
    "Policy",
    "PolicyError",
    "Receipt",
    "Result",
    "ScriptError",
    "Store",
    "Usage",
    "User",
    "approve_all",
    "ask_elsewhere",
    "ask_in_terminal",
    "ask_later",
    "deny_all",
]

_HOMES = {
    "ApprovalRequest": "bascule.bridge.approval",
    "Approver": "bascule.bridge.approval",
    "BasculeError": "bascule.wire",
    "BatchApprover": "bascule.bridge.approval",
    "CallError": "bascule.bridge.receipt",
    "Decision": "bascule.bridge.approval",
    "DecisionRefused": "bascule.bridge.errors",
    "Event": "bascule.bridge.events",
    "Executor": "bascule.bridge.executor",
    "ExecutorClosedError": "bascule.bridge.errors",
    "HandshakeError": "bascule.bridge.errors",
    "Journal": "bascule.bridge.journal",
    "JournalEntry": "bascule.bridge.journal",
    "Limits": "bascule.bridge.limits",
    "LimitsError": "bascule.bridge.errors",
    "MemoryStore": "bascule.bridge.memory_store",
    "Note": "bascule.wire",
    "Policy": "bascule.bridge.policy",
    "PolicyError": "bascule.bridge.errors",
    "Receipt": "bascule.bridge.receipt",
    "Result": "bascule.bridge.result",
    "ScriptError": "bascule.wire",
    "Store": "bascule.bridge.store",
    "Usage": "bascule.bridge.result",
    "User": "bascule.bridge.matching",
    "approve_all": "bascule.bridge.approval",
    "ask_elsewhere": "bascule.bridge.approval",
    "ask_in_terminal": "bascule.bridge.terminal",
    "ask_later": "bascule.bridge.approval",
    "deny_all": "bascule.bridge.approval",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
