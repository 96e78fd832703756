"""Runs scripts and takes each of their calls over one bridge: validated, allowed, approved, recorded.

Trusts the operator's registry, policy and approver; never the script, and never the guest it runs in.
"""

from bascule.bridge.approval import ApprovalRequest, Approver, Decision, approve_all, deny_all
from bascule.bridge.errors import ExecutorClosedError, HandshakeError, LimitsError, PolicyError
from bascule.bridge.events import Event
from bascule.bridge.executor import Executor
from bascule.bridge.journal import Journal, JournalEntry, MemoryStore, Store
from bascule.bridge.limits import Limits
from bascule.bridge.policy import Policy
from bascule.bridge.receipt import CallError, Receipt
from bascule.bridge.result import Result, Usage
from bascule.bridge.terminal import ask_in_terminal
from bascule.wire import BasculeError, Note, ScriptError

__all__ = [
    "ApprovalRequest",
    "Approver",
    "BasculeError",
    "CallError",
    "Decision",
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
    "approve_all",
    "ask_in_terminal",
    "deny_all",
]
