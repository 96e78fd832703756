"""Classifies, once, why a call gave no value: bounded words for the script, the traceback for the operator.

Exceptions come from tools, which the operator chose; their texts may still carry host paths and credentials,
so a script gets them without either.
"""

from __future__ import annotations

import builtins
import contextlib
import logging
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

from bascule.bridge.receipt import CallState
from bascule.bridge.transient import REFUSED_STATUSES, find_status, is_transient
from bascule.tools import AnyTool, OutcomeUnknown
from bascule.wire import ScriptError, ToolFailure

MAX_MESSAGE_CHARS: Final = 1000
"""Characters of a tool's own message that reach the script."""

DO_NOT_REPEAT: Final = (
    "do not repeat this call and do not try another way to the same end; go on without it or stop"
)

_log = logging.getLogger("bascule.bridge")

_CATCHABLE: Final = frozenset(
    {
        "ArithmeticError", "ConnectionError", "FileExistsError", "FileNotFoundError", "IndexError",
        "KeyError",
        "LookupError", "NotImplementedError", "OSError", "OverflowError", "PermissionError", "RuntimeError",
        "TimeoutError", "TypeError", "ValueError", "ZeroDivisionError",
    }
)  # fmt: skip
"""Built-in exceptions under whose name a script may catch a failure."""

BUGS: Final = (
    AttributeError,
    NameError,
    ImportError,
    AssertionError,
    MemoryError,
    RecursionError,
    SyntaxError,
)
"""What tools do not raise on purpose; their texts describe the host's code, not the call."""

_CREDENTIALS: Final = (
    re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}"),
    re.compile(
        r"(?i)([\w-]{0,64}(?:api[_-]?key|token|passw(?:or)?d|passphrase|secret|credential)[\w-]{0,64}[\"']?)"
        r"(\s?[=:]\s*)(?:\"[^\"]*\"?|'[^']*'?|[^\s&,;}\"']+)"
    ),
    re.compile(r"(://)[^/\s\"'<>]*@"),
)


class CallFailed(Exception):
    """Raised inside the pipeline to leave it: what the script is told and what the receipt says."""

    def __init__(self, failure: ToolFailure, state: CallState) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.state: CallState = state


class LimitReached(Exception):
    """Raised inside the pipeline when a limit ends the whole run: its kind, and words for it."""

    def __init__(self, kind: str, message: str, *, line: int) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.line = line


class RunTerminated(LimitReached):
    """Raised inside the pipeline when people, or their silence, end the whole run."""

    def __init__(self, message: str, *, line: int) -> None:
        super().__init__("terminated", message, line=line)


def denied(message: str) -> CallFailed:
    """Return the failure of a call that policy or people refused."""
    return CallFailed(ToolFailure(kind="denied", message=message, suggestion=DO_NOT_REPEAT), "denied")


def withheld(tool: AnyTool, line: int) -> CallFailed:
    """Return what a rehearsal gives for a call it does not make."""
    where = f"{tool.name} at line {line}"
    return CallFailed(ToolFailure(kind="withheld", message=where), "withheld")


def secret_in_arguments() -> CallFailed:
    """Return the failure of a call that would carry a secret of the host; its arguments are not repeated."""
    return denied("the arguments hold a secret of the host, which scripts must not have")


def secret_in_script(line: int) -> ScriptError:
    """Return why a script was refused that holds a secret of the host; the secret is not repeated."""
    return ScriptError(
        kind="secret_in_script",
        message="the script holds a secret of the host, which scripts must not have",
        line=line,
        suggestion="leave it out: tools know the secrets they need",
    )


def given_up() -> CallFailed:
    """Return the failure of a call that its script cancelled before its tool was started."""
    return CallFailed(ToolFailure(kind="cancelled", message="the script gave this call up"), "not_started")


def out_of_budget(budgets: str) -> CallFailed:
    """Return the failure of a call that a budget does not let through any more."""
    failure = ToolFailure(
        kind="budget_exceeded", message=f"the budget is used up: {budgets}", suggestion=DO_NOT_REPEAT
    )
    return CallFailed(failure, "denied")


def classify_exception(error: Exception, tool: AnyTool, *, run_id: str, seq: int) -> CallFailed:
    """Return what an exception of a tool means for the call that raised it."""
    level = logging.ERROR if isinstance(error, BUGS) else logging.INFO
    _log.log(level, "run %s call %d: tool %s raised", run_id, seq, tool.name, exc_info=error)
    name = catchable_name(error)
    once = tool.effects == "once"
    status = find_status(error)
    if status in REFUSED_STATUSES:
        _log.error("tool %s: the service refused the host's own credentials (status %d)", tool.name, status)
        message = f"{tool.name} cannot reach its service now: the operator has to look at its credentials"
        suggestion = "do not repeat this call; go on without it or stop"
        return CallFailed(ToolFailure(kind="unavailable", message=message, suggestion=suggestion), "failed")
    if isinstance(error, OutcomeUnknown) and once:
        return CallFailed(unknown_outcome(tool.name, _message(error), exception=None), "unknown")
    if isinstance(error, TimeoutError) and once:
        return CallFailed(unknown_outcome(tool.name, "it timed out", exception=name), "unknown")
    kind = "failed"
    if isinstance(error, TimeoutError):
        kind = "timeout"
    elif isinstance(error, ConnectionError) or is_transient(error, tool):
        kind = "unavailable"
    failure = ToolFailure(
        kind=kind,
        message=_message(error),
        retryable=kind != "failed" and not once,
        exception=name,
        raised=_shown_name(error),
    )
    return CallFailed(failure, "failed")


def refused_by_check(error: Exception, tool: AnyTool, *, run_id: str, seq: int) -> CallFailed:
    """Return what it means that a tool's own check raised: no tool was started."""
    level = logging.ERROR if isinstance(error, BUGS) else logging.INFO
    _log.log(level, "run %s call %d: the check of %s refused", run_id, seq, tool.name, exc_info=error)
    if isinstance(error, PermissionError):
        failed = denied(_message(error))
        return CallFailed(failed.failure, "denied")
    failure = ToolFailure(kind="failed", message=_message(error), exception=catchable_name(error))
    return CallFailed(failure, "not_started")


def timed_out(tool: AnyTool) -> CallFailed:
    """Return what it means that the host stopped waiting for a tool that was started."""
    if tool.effects == "once":
        reason = f"it did not end within {tool.timeout_s:g} s"
        return CallFailed(unknown_outcome(tool.name, reason, exception=None), "unknown")
    failure = ToolFailure(
        kind="timeout",
        message=f"{tool.name} did not end within {tool.timeout_s:g} s",
        suggestion="ask for less in one call, or try once more",
        retryable=True,
    )
    return CallFailed(failure, "failed")


def unknown_outcome(tool: str, reason: str, *, exception: str | None) -> ToolFailure:
    """Return the failure of a call of which nobody knows whether it took effect."""
    return ToolFailure(
        kind="unknown_outcome",
        message=f"{tool} was started, but {reason}: it may or may not have happened",
        suggestion="do not repeat this call; check with another tool whether it happened, or report that",
        exception=exception,
    )


def catchable_name(error: BaseException) -> str | None:
    """Return the nearest built-in exception a script may catch this one as."""
    for cls in type(error).__mro__:
        if cls.__name__ in _CATCHABLE and getattr(builtins, cls.__name__) is cls:
            return str(cls.__name__)
    return None


def _shown_name(error: Exception) -> str | None:
    """Return the class name as the tool's author wrote it, if a script can show it as a name."""
    name = type(error).__name__
    usable = name.isascii() and name.isidentifier() and not name.startswith("_") and len(name) <= 64
    return str(name) if usable and not isinstance(error, BUGS) else None


def redact(text: str) -> str:
    """Return text without credentials and without places of the host, bounded, and encodable."""
    text = text[: 4 * MAX_MESSAGE_CHARS].encode("utf-8", "replace").decode()
    for root in _host_roots():
        text = re.sub(re.escape(root) + r"(?:/[^\s'\"]*)?(?![\w-])", "[host path]", text)
    text = _CREDENTIALS[0].sub(r"\1 [redacted]", text)
    text = _CREDENTIALS[1].sub(r"\1\2[redacted]", text)
    text = _CREDENTIALS[2].sub(r"\1[redacted]@", text)
    return text if len(text) <= MAX_MESSAGE_CHARS else text[:MAX_MESSAGE_CHARS] + " [...]"


def _host_roots() -> list[str]:
    roots = {sys.prefix, sys.base_prefix}
    for find in (Path.home, Path.cwd, tempfile.gettempdir):
        with contextlib.suppress(OSError, RuntimeError):  # a user without home, a folder that was removed
            roots.add(str(find()))
    return sorted(roots - {"/"}, key=len, reverse=True)


def _message(error: Exception) -> str:
    if isinstance(error, BUGS):
        return f"internal error in the tool ({type(error).__name__}); the operator's log has the details"
    if isinstance(error, OSError) and error.filename is not None:
        return redact(str(error.strerror or type(error).__name__))
    if isinstance(error, KeyError) and len(error.args) == 1 and isinstance(error.args[0], str):
        return redact(error.args[0])  # str() of a KeyError is the repr of its key
    try:
        return redact(str(error)) or type(error).__name__
    except Exception:  # an exception class is the tool's own code too
        return type(error).__name__
