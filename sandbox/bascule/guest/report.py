"""An exception that left the script, in words for the model that wrote it.

The position comes from the code objects of the script alone; frames of the guest are skipped. The exception
and what it carries may be the script's own: its text is asked for once, and anything that goes wrong there
only costs the text.
"""

from __future__ import annotations

import itertools
import re
import types

from bascule.guest.ending import Abandoned, RunEnded
from bascule.guest.errors import ToolError
from bascule.guest.failing_values import plain_text
from bascule.guest.formatting import without_addresses
from bascule.guest.position import SCRIPT_FILE
from bascule.guest.source import Source, bounded
from bascule.guest.suggestions import suggest
from bascule.wire import ScriptError

_MAX_TEXT_CHARACTERS = 1_200
_MAX_SEARCHED_CHARACTERS = 20_000
_TOO_MANY_DIGITS = "; use sys.set_int_max_str_digits() to increase the limit"
_PATH = re.compile(r"(?:/[\w.+-]+){2,}\.py")


def describe_exception(error: BaseException, source: Source) -> ScriptError:
    """Describe an exception that left the script.

    Args:
        error: what was raised; nothing it holds is trusted.
        source: the submitted lines.
    """
    line, column = position(error, source)
    name = type(error).__name__
    text = safe_text(error)
    suggestion = None
    kind = "uncaught_exception"
    if isinstance(error, ToolError):
        kind = f"tool_{plain_text(error, 'kind') or 'failed'}"
        suggestion = plain_text(error, "suggestion")
    elif isinstance(error, SystemExit):
        kind, text = "exit", f"the script ended itself with {text or 'a failure'}"
    elif isinstance(error, RecursionError):
        kind = "recursion_limit"
        suggestion = "give the function an end condition, or use a loop"
    suggestion = suggestion or _suggestion(error, text, source)
    message = f"{name}: {text}" if text else name
    return source.error(
        kind, bounded(message), line=line, column=column, exception=name, suggestion=suggestion
    )


def _suggestion(error: BaseException, text: str, source: Source) -> str | None:
    try:
        return suggest(error, text, source)
    except Exception:
        # Values and words may be of any size and form: advice that fails costs the advice, not the report.
        return None


def position(error: BaseException, source: Source) -> tuple[int | None, int | None]:
    """Return line and column, both from 1, of the innermost place in the script that the error passed."""
    place: tuple[int | None, int | None] = (None, None)
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == SCRIPT_FILE:
            place = _place(code, traceback.tb_lasti, traceback.tb_lineno, source)
        traceback = traceback.tb_next
    return place


def _place(code: types.CodeType, instruction: int, line: int, source: Source) -> tuple[int, int | None]:
    positions = itertools.islice(code.co_positions(), instruction // 2, None)
    start, _, offset, _ = next(positions, (None, None, None, None))
    if start is None or offset is None:
        return line, None
    return start, source.column_of(start, offset)


def safe_text(error: BaseException) -> str:
    """Return the exception's text, bounded, without addresses and without paths of this machine."""
    try:
        text = str(error)
    except (Abandoned, RunEnded):
        raise
    except BaseException as failure:
        # The script may have written __str__, and it may do anything.
        text = f"<its text could not be made: {type(failure).__name__}>"
    if type(text) is not str:
        text = str.__str__(text)
    # Cut before it is searched: a script can raise fifty megabytes.
    text = without_addresses(text[:_MAX_SEARCHED_CHARACTERS]).replace("__main__.", "")
    # Scripts do not have that function: the suggestion says what they have.
    text = text.replace(_TOO_MANY_DIGITS, "")
    return bounded(_PATH.sub("<file>", text), _MAX_TEXT_CHARACTERS)
