"""traceback: the script's own lines, no files of the guest, no live objects."""

from __future__ import annotations

import sys
from types import TracebackType

from bascule.guest.facade import FacadeContext, Members
from bascule.guest.position import SCRIPT_FILE
from bascule.guest.value_text import stable_str

_MAX_TRACEBACK_LINES = 40
_MAX_CHAIN = 15
_HEADING = "Traceback (most recent call last):\n"
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


def _format_only(error: BaseException) -> list[str]:
    text = stable_str(error)
    name = type(error).__name__
    lines = [f"{name}: {text}\n" if text else f"{name}\n"]
    return lines + [f"{note}\n" for note in getattr(error, "__notes__", ()) if type(note) is str]


def _script_lines(traceback: TracebackType | None) -> list[str]:
    lines: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == SCRIPT_FILE:
            name = "<module>" if code.co_name == SCRIPT_FILE else code.co_name
            lines.append(f'  File "{SCRIPT_FILE}", line {traceback.tb_lineno}, in {name}\n')
        traceback = traceback.tb_next
    if len(lines) > _MAX_TRACEBACK_LINES:
        half = _MAX_TRACEBACK_LINES // 2
        lines = [*lines[:half], f"  [{len(lines) - 2 * half} lines left out]\n", *lines[-half:]]
    return lines


def _format(error: BaseException | None) -> list[str]:
    if error is None:
        return ["NoneType: None\n"]
    parts: list[list[str]] = []
    seen: set[int] = set()
    while True:
        seen.add(id(error))
        parts.append(
            [
                _HEADING,
                *_script_lines(error.__traceback__),
                *_format_only(error),
            ]
        )
        earlier, link = error.__cause__, _CAUSE
        if earlier is None and not error.__suppress_context__:
            earlier, link = error.__context__, _CONTEXT
        if earlier is None or id(earlier) in seen or len(seen) == _MAX_CHAIN:
            break
        parts.append([link])
        error = earlier
    return [line for part in reversed(parts) for line in part]


def exception_text(error: BaseException | None) -> str:
    """Return what Python prints of an exception: the script's lines, the message, and what it came from."""
    return "".join(_format(error))


def traceback_module(context: FacadeContext) -> Members:
    """Give traceback: the script's own lines, no files of the guest, no live objects."""
    output, read = context.environment.output, context.guards.read

    def write(text: str, file: object) -> None:
        if file is None:
            output.write_error(text)
        else:
            read(file, "write")(text)

    def chosen(values: tuple[object, ...]) -> BaseException | None:
        return next((value for value in values if isinstance(value, BaseException)), None)

    def format_exc(limit: object = None, chain: object = True) -> str:
        return exception_text(sys.exception())

    def format_exception(*error: object, **_: object) -> list[str]:
        return _format(chosen(error))

    def format_exception_only(*error: object, **_: object) -> list[str]:
        found = chosen(error)
        return ["NoneType: None\n"] if found is None else _format_only(found)

    def print_exc(limit: object = None, file: object = None, chain: object = True) -> None:
        write(format_exc(), file)

    def print_exception(*error: object, file: object = None, **_: object) -> None:
        write(exception_text(chosen(error)), file)

    return {
        "format_exc": format_exc,
        "format_exception": format_exception,
        "format_exception_only": format_exception_only,
        "print_exc": print_exc,
        "print_exception": print_exception,
    }
