"""An exception that left the script, in words for the model that wrote it.

The position comes from the code objects of the script alone; frames of the guest are skipped. The exception
and what it carries may be the script's own: its text is asked for once, and anything that goes wrong there
only costs the text.
"""

from __future__ import annotations

import itertools
import re
import types
from typing import Any, cast

from bascule.guest.advice import did_you_mean
from bascule.guest.ending import Abandoned, RunEnded
from bascule.guest.errors import ToolError
from bascule.guest.formatting import without_addresses
from bascule.guest.none_values import ITEM_OF_NONE, NONE_HINTS, none_in
from bascule.guest.position import SCRIPT_FILE
from bascule.guest.rules.modules import MODULES
from bascule.guest.source import Source, bounded
from bascule.wire import ScriptError

_MAX_TEXT_CHARACTERS = 1_200
_MAX_SEARCHED_CHARACTERS = 20_000
_MAX_KEYS = 30
_MAX_CANDIDATES = 500
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
        kind = f"tool_{_plain(error, 'kind') or 'failed'}"
        suggestion = _plain(error, "suggestion")
    elif isinstance(error, SystemExit):
        kind, text = "exit", f"the script ended itself with {text or 'a failure'}"
    elif isinstance(error, RecursionError):
        kind = "recursion_limit"
        suggestion = "give the function an end condition, or use a loop"
    suggestion = suggestion or _suggestion(error, text)
    if suggestion in NONE_HINTS and (place := _range(error)) is not None:
        suggestion = none_in(source, place) or suggestion
    message = f"{name}: {text}" if text else name
    return source.error(
        kind, bounded(message), line=line, column=column, exception=name, suggestion=suggestion
    )


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


def _range(error: BaseException) -> tuple[int, int, int, int] | None:
    """Return first line, last line, first and end byte offset of the expression that raised in the script."""
    found: tuple[int | None, int | None, int | None, int | None] | None = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == SCRIPT_FILE:
            found = next(itertools.islice(code.co_positions(), traceback.tb_lasti // 2, None), None)
        traceback = traceback.tb_next
    return None if found is None or None in found else cast("tuple[int, int, int, int]", found)


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


def _plain(error: BaseException, name: str) -> str | None:
    found: Any = error.__dict__.get(name, getattr(type(error), name, None))
    return found if type(found) is str else None


def _suggestion(error: BaseException, text: str) -> str | None:
    if isinstance(error, KeyError):
        return _for_key(error)
    if isinstance(error, NameError):
        return _for_name(error, text)
    if isinstance(error, ImportError):
        return _plain(error, "hint")
    if isinstance(error, AttributeError):
        return _for_attribute(error)
    if isinstance(error, TypeError):
        return _for_type(error, text)
    if isinstance(error, ValueError) and "for integer string conversion" in text:
        return "show a part of it: math.log10(n) for its size, n % 10**20 for its end, or hex(n)"
    if isinstance(error, IndexError):
        return "test the length first: the list may be empty"
    if isinstance(error, AssertionError) and not text:
        return 'give assert a message: `assert condition, "what went wrong"`'
    return None


def _innermost(error: BaseException) -> types.FrameType | None:
    """Return the last frame of the script that the error passed."""
    found: types.FrameType | None = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == SCRIPT_FILE:
            found = traceback.tb_frame
        traceback = traceback.tb_next
    return found


def _for_key(error: KeyError) -> str | None:
    """Name the keys of the dict that most likely missed the key: one in the variables of the line's frame."""
    key: object = error.args[0] if error.args else None
    if type(key) is not str:
        return "look at the keys first, or use `.get(key)`"
    found = _variables(error).values()
    dicts = [cast("dict[object, object]", value) for value in found if type(value) is dict and value]
    for keys in ([item for item in value if type(item) is str] for value in dicts):
        hint = did_you_mean(key, keys[:_MAX_CANDIDATES])
        if hint:
            return hint
    if len(dicts) == 1:
        shown = ", ".join(repr(item)[:60] for item in list(dicts[0])[:_MAX_KEYS] if type(item) in (str, int))
        return f"its keys are: {shown}" if shown else None
    return "look at the keys first, or use `.get(key)`"


def _variables(error: BaseException) -> dict[str, object]:
    """Return the variables that the code of the line's frame names."""
    frame = _innermost(error)
    if frame is None:
        return {}
    names = set(frame.f_code.co_names) | set(frame.f_code.co_varnames)
    return {**{name: frame.f_globals.get(name) for name in sorted(names)}, **frame.f_locals}


def _for_loop_over_dict(error: TypeError) -> str | None:
    """Explain texts that are keys: the script went through a dict, not through the list in it."""
    variables = _variables(error)
    texts = {value for value in variables.values() if type(value) is str}
    for name, variable in variables.items():
        if type(variable) is not dict:
            continue
        value = cast("dict[object, object]", variable)
        keys = [key for key in list(value)[:_MAX_KEYS] if type(key) is str]
        if texts.isdisjoint(keys):
            continue
        lists = [key for key in keys if type(value[key]) is list]
        advice = f": loop over {name}[{lists[0]!r}]" if len(lists) == 1 else ""
        shown = ", ".join(repr(key)[:60] for key in keys)
        return f"`{name}` is a dict with {shown}, and a loop over a dict gives its keys{advice}"
    return None


def _for_name(error: NameError, text: str) -> str | None:
    name: object = error.name
    if isinstance(error, UnboundLocalError):
        local = re.search(r"'(\w+)'", text)
        name = local.group(1) if local else "it"
        return f"`{name}` is assigned later in this function: assign it first, or write `global {name}`"
    if type(name) is not str:
        return None
    if name in MODULES:
        return f"add `import {name}` at the top"
    frame = _innermost(error)
    known = [] if frame is None else [*frame.f_locals, *frame.f_globals]
    hint = did_you_mean(name, [item for item in known if item.isidentifier()][:_MAX_CANDIDATES])
    return hint or "assign it on every path before it is used"


def _for_attribute(error: AttributeError) -> str | None:
    hint: object = error.__dict__.get("hint")
    if type(hint) is str:
        return hint
    name: object = error.name
    if type(name) is not str or error.obj is None:
        return None
    kind = error.obj if isinstance(error.obj, type) else type(error.obj)
    if kind.__module__ != "__main__":
        return None
    known = {item for base in kind.__mro__ if base.__module__ == "__main__" for item in base.__dict__}
    fields: object = getattr(error.obj, "__dict__", None)
    known |= set(cast("dict[str, object]", fields)) if type(fields) is dict else set()
    return did_you_mean(name, sorted(item for item in known if not item.startswith("_"))[:_MAX_CANDIDATES])


_TYPE_HINTS: tuple[tuple[str, str], ...] = (
    (r"'NoneType' object (is not subscriptable|does not support item)", ITEM_OF_NONE),
    (r"'NoneType' object is not iterable|non-iterable NoneType", "a value is None: test for None first"),
    (r"(coroutine|ToolCall|awaitable).*(not|between)", "write `await` before the call"),
    (
        r"(string|list) indices must be integers",
        "look at the value: it is not the dict you expect; json.loads parses text",
    ),
    (r"is not JSON serializable", "use dataclasses.asdict, or json.dumps(value, default=str)"),
    (r"can only concatenate str|must be str, not", "use an f-string, or str(...)"),
    (r"unsupported operand type.*'NoneType'", "a value is None: test for None first"),
    (r"unsupported operand type.*'str'", "convert the text with int(...) or float(...)"),
    (r"not supported between instances of 'NoneType'", "a value is None: give a default"),
    (r"unhashable type", "use a tuple, or a text, as the key"),
    (r"object is not callable", "a variable hides the function: choose another name"),
    (r"object is not subscriptable", "look at the value: it has no items"),
)


def _for_type(error: TypeError, text: str) -> str | None:
    if "write `await" in text or "ToolCall" in text:
        return "write `await` before the call"
    if "string indices must be" in text and (hint := _for_loop_over_dict(error)):
        return hint
    return next((hint for pattern, hint in _TYPE_HINTS if re.search(pattern, text)), None)
