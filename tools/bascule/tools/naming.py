"""Which names tools may have, and which words their labels and resources.

A name must be something a script can write and mean: ASCII, no keyword, nothing a script needs for itself.
"""

from __future__ import annotations

import builtins
import keyword
import re

from bascule.tools.errors import ToolDefinitionError

MAX_NAME_CHARS = 64
"""The shortest limit among model APIs."""

MAX_WORD_CHARS = 64

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]*")
_NOT_IN_SCRIPTS = frozenset(
    {"open", "input", "help", "license", "credits", "copyright", "compile", "exit", "quit"}
)
_ERRORS = frozenset(
    {
        "ToolError",
        "ToolArgumentError",
        "ToolDenied",
        "ToolTimeout",
        "ToolUnavailable",
        "ToolOutcomeUnknown",
        "BudgetExceeded",
    }
)
RESERVED_NAMES = (frozenset(dir(builtins)) - _NOT_IN_SCRIPTS) | _ERRORS
"""What a script needs for itself: the builtins it can use and the errors it can catch."""


def check_name(name: str, *, location: str | None) -> None:
    """Check a tool's full name.

    Raises:
        ToolDefinitionError: ``tool_name_invalid`` or ``tool_name_reserved``.
    """
    if not _NAME.fullmatch(name):
        raise ToolDefinitionError(
            "tool_name_invalid",
            f"{name!r:.100} cannot be a tool's name; use ASCII letters, digits and _, dots for namespaces; "
            'write tool(name="...") where the function is called otherwise',
            location=location,
        )
    if len(name) > MAX_NAME_CHARS:
        raise ToolDefinitionError(
            "tool_name_invalid",
            f"the name {name[:MAX_NAME_CHARS]}… has {len(name)} characters, the limit is {MAX_NAME_CHARS}",
            location=location,
        )
    segments = name.split(".")
    if segments[0] in RESERVED_NAMES or any(map(keyword.iskeyword, segments)):
        raise ToolDefinitionError(
            "tool_name_reserved",
            f"{name} cannot be a tool's name: scripts need {_reserved_word(segments)} for itself; "
            'choose another with tool(name="...")',
            location=location,
        )


def check_word(kind: str, word: str, *, location: str | None) -> None:
    """Check a label or the key of a resource.

    Raises:
        ToolDefinitionError: ``tool_option_invalid``.
    """
    if len(word) > MAX_WORD_CHARS or not _WORD.fullmatch(word):
        raise ToolDefinitionError(
            "tool_option_invalid",
            f"{kind} {word!r:.100} must be 1 to {MAX_WORD_CHARS} ASCII letters, digits or _ . : / -",
            location=location,
        )


def _reserved_word(segments: list[str]) -> str:
    return next((each for each in segments if keyword.iskeyword(each)), segments[0])
