"""Syntax errors in words for the model: where, what, and what to write instead."""

from __future__ import annotations

import re

from bascule.guest.source import Source
from bascule.wire import ScriptError

_HINTS: tuple[tuple[str, str], ...] = (
    (r"expected 'except' or 'finally'", "add `except Exception as error:` and what to do then"),
    (r"outside loop|not properly in loop", "loops alone have it; `return` ends the script or a function"),
    (r"expected ':'", "end the line with `:`"),
    (r"was never closed", "close the bracket"),
    (r"unmatched '(.)'|does not match opening", "check the brackets of this line and the one above"),
    (r"inconsistent use of tabs", "tabs and spaces are mixed: indent with four spaces"),
    (r"unindent does not match|unexpected indent", "indent with four spaces a level, as the lines around"),
    (r"expected an indented block", "indent the block with four spaces, or write `pass`"),
    (r"single '\}' is not allowed", "write `}}` for a literal brace"),
    (r"expecting '\}'", "close the replacement field with `}`; write `{{` for a literal brace"),
    (r"f-string expression part cannot include a backslash", "put the text into a variable first"),
    (r"'await' outside", "make the function `async def`"),
    (r"'return' outside", "return only from functions or at the top level of the script"),
    (r"no binding for nonlocal '(\w+)'", "write `global` for a name of the top level"),
    (r"Missing parentheses in call to 'print'", "write `print(...)`"),
    (r"unterminated (triple-quoted )?(f-)?string", "close the string; use triple quotes for several lines"),
    (r"invalid (non-printable )?character", "use plain ASCII quotes, spaces and operators"),
    (r"cannot assign to .* here\. Maybe you meant '=='", "write `==` to compare"),
    (r"multiple exception types must be parenthesized", "write `except (A, B):`"),
    (r"positional argument follows keyword argument", "put positional arguments first"),
    (r"too many nested parentheses", "nest less: give parts of the expression names of their own"),
    (r"too many statically nested blocks", "nest less: move the inner blocks into a function"),
    (r"leading zeros in decimal integer", "write the number without leading zeros, or as a text"),
)

_FOREIGN: tuple[tuple[str, str], ...] = (
    (r"&&", "write `and`"),
    (r"\|\|", "write `or`"),
    (r"\+\+|--\s*$", "write `+= 1` or `-= 1`"),
    (r"^\s*(const|let|var)\s", "leave out `const`, `let` and `var`"),
    (r"^\s*function\s", "write `def name(...):`"),
    (r"\blambda\b[^:]*:\s*(return|raise|if|for|while|\w+\s*=[^=])", "a lambda is one expression: use `def`"),
    (r"^\s*catch\b", "write `except`"),
    (r"=>", "write a lambda or a function"),
    (r"!\s*\w", "write `not`"),
    (r";\s*$|\{\s*$", "write Python: blocks by indent, no semicolons"),
    (r"^\s*[A-Z][\w']*(,? [\w'`]+){2,}[.:!]?\s*$", "only Python may stand here: put words behind `#`"),
)

_NESTED_QUOTES = re.compile(r"""(?i)\b(f|rf|fr)(["'])[^"']*\{[^}"']*\2""")


def syntax_error(error: SyntaxError, source: Source) -> ScriptError:
    """Describe a syntax error of the script.

    Args:
        error: as raised by the parser or compiler; its text may quote the script.
        source: the submitted lines.
    """
    line = error.lineno if error.lineno else None
    column = error.offset + source.indent if error.offset and error.offset > 0 else None
    detail = (
        (error.msg or "invalid syntax").removeprefix("f-string: ") if _is_nested(error, source) else error.msg
    )
    name = "Indentation error" if isinstance(error, IndentationError) else "Syntax error"
    hint = _hint(error, source)
    return source.error(
        "syntax_error",
        f"{name}: {detail or 'invalid syntax'}",
        line=line,
        column=column,
        exception=type(error).__name__,
        suggestion=hint,
    )


def _is_nested(error: SyntaxError, source: Source) -> bool:
    return bool(error.lineno and _NESTED_QUOTES.search(source.line(error.lineno)))


def _hint(error: SyntaxError, source: Source) -> str | None:
    message = error.msg or ""
    text = source.line(error.lineno) if error.lineno else ""
    if _is_nested(error, source) and ("f-string" in message or "invalid syntax" in message):
        quote = _NESTED_QUOTES.search(text)
        used = quote.group(2) if quote else '"'
        other = "'" if used == '"' else '"'
        example = f"{{o[{other}key{other}]}}"
        return f"the f-string uses {used} inside {used}: write {other} inside the braces, as in {example}"
    if re.match(r"\s*else\s+if\b", text):
        return "write `elif`"
    for pattern, hint in _HINTS:
        if re.search(pattern, message):
            return hint
    for pattern, hint in _FOREIGN:
        if re.search(pattern, text):
            return hint
    return None
