"""Every error the tools raise: at definition, at loading, on arguments and on results.

Definition and loading errors are for the person who wrote the tool. `ArgumentsInvalid` is written for the
script (and the model behind it); `ResultInvalid` tells the operator what is wrong and the script only that
the tool has a bug.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from bascule.wire import BasculeError


class ToolDefinitionError(BasculeError):
    """A tool cannot be offered as it is written. Change its definition.

    Attributes:
        location: ``file.py:12`` of the function, or None when it has no source.
    """

    def __init__(self, code: str, message: str, *, location: str | None = None) -> None:
        super().__init__(code, f"{message} ({location})" if location else message)
        self.location = location


class ToolLoadError(BasculeError):
    """What was named as a source of tools gives none; the message names file and line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with the arguments of a call.

    Attributes:
        path: the argument and the way into it (``filter.categories[2]``).
        message: what to write instead, without the path.
        got: the value as bounded JSON text, or None when there is none.
        allowed: the values that would be accepted, when they can be listed.
    """

    path: str
    message: str
    got: str | None = None
    allowed: tuple[JsonValue, ...] = ()

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}"
        return text if self.got is None else f"{text} (got {self.got})"


class ArgumentsInvalid(BasculeError):
    """The arguments of a call do not fit the tool. All problems at once; the script can correct them.

    Attributes:
        problems: every problem found, in the order of the parameters.
    """

    def __init__(self, message: str, *, problems: tuple[Problem, ...]) -> None:
        super().__init__("arguments_invalid", message)
        self.problems = problems

    def for_script(self) -> str:
        """Return the whole text: it speaks of the script's own arguments and the tool's schema only."""
        return self.message


class ResultInvalid(BasculeError):
    """A tool returned what it should not: no JSON form, or not its declared type. The tool has a bug.

    Attributes:
        path: where in the result (``[3].amount``), empty for the whole.
    """

    def __init__(self, code: str, message: str, *, tool: str, path: str) -> None:
        super().__init__(code, message)
        self.tool = tool
        self.path = path

    def for_script(self) -> str:
        """Return where the result is wrong; what it holds stays with the operator."""
        where = f" at {self.path}" if self.path else ""
        return (
            f"{self.tool} returned a result that cannot be used{where}: a bug in the tool, not in the script"
        )
