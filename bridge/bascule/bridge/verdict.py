"""Judges how a run ended, from what the guest said, what the host saw, and how the sandbox ended.

Success is a well-formed finish frame, and exit status 0, and no out-of-memory kill, and no timeout. Each of
them alone proves nothing, because all of them but the host's own observations come from an untrusted guest.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import Final

from bascule.bridge.limits import Limits
from bascule.bridge.result import Status, bound_errors
from bascule.sandbox import Ending
from bascule.wire import Finish, ScriptError

_SCRIPT_LINE = re.compile(r'File "<script>", line ([0-9]{1,7})\b')
_LINE_END = re.compile(r"\r\n|\r|\n")
_WATCHDOG = re.compile(r"^Timeout \([0-9:.]+\)!", re.MULTILINE)
_CRASHES: Final = frozenset(
    {
        signal.SIGSEGV,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGILL,
        signal.SIGFPE,
        signal.SIGSYS,
        signal.SIGTRAP,
    }
)
_SOURCE_CHARS: Final = 200


class RunStopped(Exception):
    """Raised inside a run when the host ends it: status, kind and words for the author of the script."""

    def __init__(self, status: Status, kind: str, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.status: Status = status
        self.kind = kind
        self.message = message
        self.line = line


class RunSuspended(RunStopped):
    """Raised inside a run that only waits for people and timers: its sandbox goes, the run stays.

    Attributes:
        wake_at: when a timer wakes it, seconds since the epoch.
        waits: what else does, as in `RunRecord.waits`.
    """

    def __init__(self, message: str, *, wake_at: float | None, waits: tuple[str, ...]) -> None:
        super().__init__("suspended", "suspended", message)
        self.wake_at = wake_at
        self.waits = waits


def violation(what: str) -> RunStopped:
    """Return what ends the run of a guest that broke the protocol."""
    return RunStopped("failed", "protocol_violation", f"the guest broke the protocol: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The status of a run and its errors."""

    status: Status
    errors: tuple[ScriptError, ...] = ()


def judge(
    *, script: str, limits: Limits, finish: Finish | None, stopped: RunStopped | None, ending: Ending
) -> Judgement:
    """Return what became of a run.

    Args:
        finish: the guest's finish frame, if one came and nothing after it.
        stopped: why the host ended the run, if it did.
    """
    if ending.oom_killed:
        return _limit(
            script,
            "memory_limit",
            f"stopped: the script needed more than {limits.memory_bytes} bytes",
            ending,
        )
    if stopped is not None:
        if stopped.kind in ("wall_limit", "run_limit"):
            return _limit(script, stopped.kind, stopped.message, ending, line=stopped.line)
        return _judgement(script, stopped.status, stopped.kind, stopped.message, stopped.line)
    if finish is None:
        return _judge_silence(script, limits, ending)
    if finish.status != "ok":
        return Judgement(status=finish.status, errors=bound_errors(finish.errors) or (_UNEXPLAINED,))
    if ending.exit_code != 0 or ending.killed:
        return _judgement(script, "failed", "guest_crashed", f"the guest finished, then {_how(ending)}", None)
    return Judgement(status="ok")


def find_script_line(stderr_tail: str) -> int | None:
    """Return the innermost line of the script in a faulthandler dump (untrusted text), or None."""
    found = _SCRIPT_LINE.search(stderr_tail)
    return int(found.group(1)) if found else None


def script_line(script: str, number: int) -> str:
    """Return a line, counted from 1 as Python counts; an empty text when there is none.

    Not `str.splitlines`, which also splits at form feeds and other characters that may stand inside a line.
    """
    lines = _LINE_END.split(script)
    return lines[number - 1] if 0 < number <= len(lines) else ""


_UNEXPLAINED: Final = ScriptError(kind="failed", message="the script ended without saying why")


def _judge_silence(script: str, limits: Limits, ending: Ending) -> Judgement:
    """Judge a guest whose stream ended before it finished."""
    if ending.signal == signal.SIGXCPU:
        return _limit(
            script, "cpu_limit", f"stopped: the script used more than {limits.cpu_s:g} s of CPU time", ending
        )
    if ending.signal in _CRASHES:
        name = signal.Signals(ending.signal).name
        message = f"the interpreter crashed ({name}); nothing is known of the script's state"
        return _judgement(script, "failed", "guest_crashed", message, find_script_line(ending.stderr_tail))
    # After the signals: a script can write these words itself and then crash its interpreter.
    if _WATCHDOG.search(ending.stderr_tail):
        return _limit(script, "wall_limit", f"stopped after {limits.wall_s:g} s of running", ending)
    return _judgement(script, "failed", "guest_crashed", f"the guest {_how(ending)} before it finished", None)


def _limit(script: str, kind: str, message: str, ending: Ending, *, line: int | None = None) -> Judgement:
    line = find_script_line(ending.stderr_tail) if line is None else line
    if line is not None:
        message = message.replace("stopped", f"stopped at line {line}", 1)
    return _judgement(script, "limit", kind, message, line)


def _judgement(script: str, status: Status, kind: str, message: str, line: int | None) -> Judgement:
    source = None if line is None else script_line(script, line)[:_SOURCE_CHARS] or None
    return Judgement(
        status=status, errors=(ScriptError(kind=kind, message=message, line=line, source=source),)
    )


def _how(ending: Ending) -> str:
    if ending.killed:
        return "did not exit and was killed"
    if ending.signal is not None:
        return f"was ended by signal {ending.signal}"
    return "ended" if ending.exit_code is None else f"exited with status {ending.exit_code}"
