"""The exceptions a script meets when a tool gives no value. Built from data alone, never from live objects.

A failure is a ToolError of the class its kind names. When the tool raised a built-in exception, the object is
an instance of that class too, and it has the name of the class that was raised: ``except KeyError`` and
``type(e).__name__`` do what the author of the script expects. It prints the message as the tool gave it.
"""

from __future__ import annotations

import builtins
from functools import cache

from bascule.wire import ToolFailure

_MESSAGE_CHARACTERS = 4_000


class ToolError(Exception):
    """A tool call that gave no value.

    Attributes:
        kind: ``invalid_arguments | denied | timeout | unavailable | unknown_outcome | budget_exceeded |
            unknown_tool | failed``.
        message: what went wrong, for the author of the script.
        suggestion: what to do instead, or None.
        retryable: whether the same call may succeed later.
    """

    kind = "failed"

    def __init__(
        self,
        message: object = "",
        *,
        kind: str | None = None,
        suggestion: str | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message if type(message) is str else str(message)
        if kind is not None:
            self.kind = kind
        self.suggestion = suggestion
        self.retryable = retryable

    def __str__(self) -> str:
        return self.message


class ToolArgumentError(ToolError, ValueError, TypeError):
    """The arguments do not fit the tool; both names under which Python reports that catch it."""

    kind = "invalid_arguments"


class ToolDenied(ToolError, PermissionError):
    """Policy or a person said no. Do not repeat the call."""

    kind = "denied"


class ToolTimeout(ToolError, TimeoutError):
    """The tool took too long and certainly did nothing, or only reads."""

    kind = "timeout"


class ToolUnavailable(ToolError, ConnectionError):
    """The service behind the tool cannot be reached now."""

    kind = "unavailable"


class ToolOutcomeUnknown(ToolError):
    """Whether the call took effect is not known. Do not repeat it."""

    kind = "unknown_outcome"


class BudgetExceeded(ToolError):
    """The run, the tool or the user has used up what it may call."""

    kind = "budget_exceeded"


SCRIPT_ERRORS: dict[str, type[ToolError]] = {
    cls.__name__: cls
    for cls in (
        ToolError,
        ToolArgumentError,
        ToolDenied,
        ToolTimeout,
        ToolUnavailable,
        ToolOutcomeUnknown,
        BudgetExceeded,
    )
}
"""The names a script can use without an import."""

_BY_KIND: dict[str, type[ToolError]] = {cls.kind: cls for cls in SCRIPT_ERRORS.values()}

_BUILT_IN = frozenset(
    {
        "ArithmeticError",
        "AssertionError",
        "AttributeError",
        "BlockingIOError",
        "BrokenPipeError",
        "BufferError",
        "ConnectionAbortedError",
        "ConnectionError",
        "ConnectionRefusedError",
        "ConnectionResetError",
        "EOFError",
        "Exception",
        "FileExistsError",
        "FileNotFoundError",
        "FloatingPointError",
        "IndexError",
        "InterruptedError",
        "IsADirectoryError",
        "KeyError",
        "LookupError",
        "NameError",
        "NotADirectoryError",
        "NotImplementedError",
        "OSError",
        "OverflowError",
        "PermissionError",
        "ProcessLookupError",
        "RuntimeError",
        "TimeoutError",
        "TypeError",
        "UnicodeError",
        "ValueError",
        "ZeroDivisionError",
    }
)
"""Exceptions a tool may raise under their own name. StopIteration and what is no Exception are left out:
they would change the flow of a script instead of failing a call."""


_RAISED_BY_TOOLS = frozenset({"failed", "timeout", "unavailable"})
"""Kinds of failures that a tool itself reports by raising; they keep the name it raised."""


@cache
def _flavoured(kind: str, builtin_name: str | None, raised: str | None) -> type[ToolError]:
    base = _BY_KIND.get(kind, ToolError)
    bases: tuple[type[Exception], ...] = (base,)
    if builtin_name is not None:
        builtin: type[Exception] = getattr(builtins, builtin_name)
        if not issubclass(base, builtin):
            bases = (base, builtin)
    name = (raised or builtin_name) if kind in _RAISED_BY_TOOLS else None
    if name is None and bases == (base,):
        return base
    return type(name or base.__name__, bases, {"__module__": "builtins", "__doc__": bases[-1].__doc__})


def failure_exception(failure: ToolFailure) -> ToolError:
    """Return the exception to raise in the script for what the host reported."""
    builtin_name = failure.exception if failure.exception in _BUILT_IN else None
    cls = _flavoured(failure.kind, builtin_name, failure.raised)
    return cls(
        failure.message[:_MESSAGE_CHARACTERS],
        kind=failure.kind,
        suggestion=failure.suggestion,
        retryable=failure.retryable,
    )
