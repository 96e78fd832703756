"""The script's text as its author submitted it: lines, positions and the picture of a mistake.

Trusts nothing: the text is the model's. Everything that leaves here is bounded.
"""

from __future__ import annotations

import ast

import msgspec

from bascule.wire import ScriptError

MAX_MESSAGE_CHARACTERS = 2_000
_MAX_LINE_CHARACTERS = 160

RAISES: dict[str, str] = {
    "syntax_error": "SyntaxError",
    "refused_syntax": "SyntaxError",
    "refused_name": "NameError",
    "unknown_name": "NameError",
    "unknown_tool": "NameError",
    "refused_import": "ModuleNotFoundError",
    "unknown_import": "ImportError",
    "refused_attribute": "AttributeError",
    "invalid_arguments": "TypeError",
    "missing_await": "TypeError",
    "needless_await": "TypeError",
    "needless_with": "TypeError",
    "missing_star": "TypeError",
    "unknown_field": "KeyError",
}
"""Kinds of findings to the exception that plain Python would have met the mistake with."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The submitted lines and how columns of the parsed text map to them.

    Attributes:
        lines: the text as submitted, split at newlines only.
        indent: characters that clean-up took from the left of every line.
    """

    lines: tuple[str, ...]
    indent: int = 0

    def line(self, number: int) -> str:
        """Return line ``number`` (from 1) as parsed, or an empty text when there is none."""
        return self.lines[number - 1][self.indent :] if 0 < number <= len(self.lines) else ""

    def column_of(self, number: int, byte_offset: int) -> int:
        """Turn the UTF-8 offset of a node in line ``number`` into a column from 1 of the submitted text."""
        before = self.line(number).encode("utf-8", "replace")[: max(byte_offset, 0)]
        return len(before.decode("utf-8", "replace")) + 1 + self.indent

    def picture(self, number: int, column: int | None) -> str | None:
        """Return the line with a caret below ``column`` (from 1), cut around it when it is long."""
        if not 0 < number <= len(self.lines):
            return None
        text = self.lines[number - 1].rstrip("\r\n").replace("\t", " ")
        if column is None:
            return text[:_MAX_LINE_CHARACTERS].strip()
        column = min(max(column, 1), len(text) + 1)
        start = max(0, column - _MAX_LINE_CHARACTERS // 2) if len(text) > _MAX_LINE_CHARACTERS else 0
        shown = text[start : start + _MAX_LINE_CHARACTERS]
        return f"{shown}\n{' ' * (column - 1 - start)}^"

    def error(
        self,
        kind: str,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        exception: str | None = None,
        suggestion: str | None = None,
    ) -> ScriptError:
        """Build the error for a position in the submitted text.

        ``exception`` is the class of what was raised; for findings, of what Python would have raised.
        """
        return ScriptError(
            kind=kind,
            message=bounded(message),
            exception=exception or RAISES.get(kind),
            line=line,
            column=column,
            source=self.picture(line, column) if line is not None else None,
            suggestion=bounded(suggestion) if suggestion else None,
        )

    def error_at(
        self, node: ast.AST, kind: str, message: str, *, suggestion: str | None = None
    ) -> ScriptError:
        """Build the error for a node of the parsed script."""
        line = getattr(node, "lineno", None)
        column = self.column_of(line, getattr(node, "col_offset", 0)) if line is not None else None
        return self.error(kind, message, line=line, column=column, suggestion=suggestion)


def bounded(text: str, limit: int = MAX_MESSAGE_CHARACTERS) -> str:
    """Cut ``text`` to ``limit`` characters, saying so; escape lone surrogates, which no frame carries."""
    if len(text) > limit:
        text = text[: limit - 12] + " … (cut off)"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
