"""Exit statuses of the command: one table, shown by ``--help`` and in docs/cli.md.

0 to 7 tell what became of a script; 64 and above follow sysexits.h and tell that no script ran, or that the
surroundings broke.
"""

from __future__ import annotations

from enum import IntEnum
from textwrap import fill
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bascule.bridge import Result
    from bascule.bridge.rehearsal import Rehearsal
    from bascule.wire import BasculeError


class Exit(IntEnum):
    """What a status means to whoever reads ``$?``."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    LIMIT = 4
    SUSPENDED = 5
    CANCELLED = 6
    DIVERGED = 7
    NO_INPUT = 66
    UNAVAILABLE = 69
    INTERNAL = 70
    NO_PERMISSION = 77
    CONFIGURATION = 78
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS: Final[dict[Exit, str]] = {
    Exit.OK: "the script ended well",
    Exit.FAILED: "an exception left the script, or a check found a problem",
    Exit.USAGE: "the command line is wrong",
    Exit.REFUSED: "the script was refused before anything ran",
    Exit.LIMIT: "the script reached a limit",
    Exit.SUSPENDED: "the run waits for people and can be resumed",
    Exit.CANCELLED: "the run was cancelled",
    Exit.DIVERGED: "a resumed run did something else than before",
    Exit.NO_INPUT: "the script cannot be read",
    Exit.UNAVAILABLE: "there is no sandbox (no engine, no image, the wrong one), or no console at --server",
    Exit.INTERNAL: "the guest or the host broke; no fault of the script",
    Exit.NO_PERMISSION: "the console does not take the token, or the token lacks a right",
    Exit.CONFIGURATION: "tools or policy cannot be used",
    Exit.INTERRUPTED: "interrupted from the keyboard; the sandbox is gone",
    Exit.TERMINATED: "ended by SIGTERM or SIGHUP; the sandbox is gone",
}

_STATUSES: Final = {
    "ok": Exit.OK,
    "failed": Exit.FAILED,
    "refused": Exit.REFUSED,
    "limit": Exit.LIMIT,
    "suspended": Exit.SUSPENDED,
    "cancelled": Exit.CANCELLED,
    "diverged": Exit.DIVERGED,
}


def exit_for_result(result: Result) -> Exit:
    """Return the status for what became of a script."""
    if result.error is not None and result.error.kind == "protocol_violation":
        return Exit.INTERNAL
    return _STATUSES[result.status]


def exit_for_rehearsal(rehearsal: Rehearsal) -> Exit:
    """Return the status of a rehearsal: well, also where it ended because a result was not there to use."""
    result = rehearsal.result
    if result.error is not None and result.error.kind == "rehearsal_end":
        return Exit.OK
    return exit_for_result(result)


def exit_for_error(error: BasculeError) -> Exit:
    """Return the status for an error that is not the script's."""
    from bascule.bridge import LimitsError, PolicyError
    from bascule.bridge.errors import DecisionRefused, ResumeError, RunBusy, RunNotFound, StoreError
    from bascule.cli.remote import RemoteError
    from bascule.sandbox import SandboxError
    from bascule.tools import ToolDefinitionError, ToolLoadError

    if isinstance(error, RemoteError):
        return error.exit_status
    if isinstance(error, SandboxError):
        return Exit.UNAVAILABLE
    if isinstance(error, PolicyError | ToolDefinitionError | ToolLoadError):
        return Exit.CONFIGURATION
    if isinstance(error, DecisionRefused):
        return Exit.FAILED
    if isinstance(error, RunNotFound | RunBusy | ResumeError):
        return Exit.FAILED if error.code != "recording_invalid" else Exit.NO_INPUT
    if isinstance(error, StoreError):
        return Exit.UNAVAILABLE
    if isinstance(error, LimitsError):
        return Exit.USAGE
    return Exit.INTERNAL


def describe_exits() -> str:
    """Return the table as text for ``--help``."""
    rows = "\n".join(
        fill(meaning, 74, initial_indent=f"{int(code):>3}  ", subsequent_indent=" " * 5)
        for code, meaning in MEANINGS.items()
    )
    return f"\b\nExit statuses:\n{rows}"  # \b: the lines stay as they are
