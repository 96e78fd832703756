"""What to write instead, for an exception that left the script.

The exception is the script's own or CPython's; only its text, its type, the submitted text and the variables
of the failing line are looked at.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Final, cast

from bascule.guest.failing import Place, find_failing
from bascule.guest.failing_values import (
    for_attribute,
    for_key,
    for_name,
    plain_text,
)
from bascule.guest.none_values import VALUE_IS_NONE
from bascule.guest.position import SCRIPT_FILE
from bascule.guest.source import Source

_HINTS: Final[tuple[tuple[type[BaseException], str, str], ...]] = (
    (TypeError, r"(coroutine|ToolCall|awaitable).*(not|between)", "write `await` before the call"),
    (
        TypeError,
        r"string indices must be integers",
        "look at the value: it is not the dict you expect; json.loads parses text",
    ),
    (
        TypeError,
        r"list indices must be integers",
        'it is a list: loop over it, or take one item first, as in `rows[0]["name"]`',
    ),
    (
        TypeError,
        r"type (date|datetime|time|Decimal|UUID) is not JSON serializable",
        "write json.dumps(value, default=str)",
    ),
    (
        TypeError,
        r"type (set|frozenset) is not JSON serializable",
        "make a list of it: sorted(...) or list(...)",
    ),
    (TypeError, r"is not JSON serializable", "use dataclasses.asdict, or json.dumps(value, default=str)"),
    (TypeError, r"^can only concatenate list", "wrap the one item, `rows + [item]`, or use `.append(item)`"),
    (TypeError, r"can only concatenate str|must be str, not", "use an f-string, or str(...)"),
    (TypeError, r"'decimal.Decimal' and 'float'|'float' and 'decimal.Decimal'", "write Decimal(str(number))"),
    (
        TypeError,
        r"'str' and '(datetime\.)?date(time)?'|'(datetime\.)?date(time)?' and 'str'",
        "make a date of the text first: date.fromisoformat(text) or datetime.fromisoformat(text)",
    ),
    (
        TypeError,
        r"datetime.datetime( to |' and ')datetime.date\b|datetime.date' and 'datetime.datetime",
        "a moment and a day: write `.date()` behind the moment",
    ),
    (
        TypeError,
        r"keyword argument for (__new__|timedelta)\(\)|"
        r"__new__\(\) got an unexpected keyword argument '(month|year)",
        "timedelta takes weeks, days, hours, minutes, seconds; for months count with date.replace(...)",
    ),
    (
        TypeError,
        r"^fromisoformat: argument must be str",
        "seconds are read by datetime.fromtimestamp(n, timezone.utc)",
    ),
    (
        TypeError,
        r"'async for' requires|'async with'|asynchronous context manager protocol",
        "write it without `async`: `await` belongs to the call alone",
    ),
    (
        TypeError,
        r"'(dict|list|str|NoneType)' object does not support the context manager",
        "this is a plain value: assign it, without `with`",
    ),
    (
        TypeError,
        r"must be a string.* not '(dict|list)'|^must be real number, not (dict|list)",
        "this is a whole dict or list: take one of its values first",
    ),
    (
        TypeError,
        r"^first argument must be callable",
        "give the type itself: defaultdict(int), or list, set, dict",
    ),
    (
        TypeError,
        r"offset-naive and offset-aware",
        "give both a zone: value.replace(tzinfo=timezone.utc) for the one that has none",
    ),
    (TypeError, r"instances of 'dict' and 'dict'", 'say what to order by: `key=lambda row: row["name"]`'),
    (
        TypeError,
        r"unsupported operand type.*'str'|instances of 'str' and '(int|float)'|'(int|float)' and 'str'|"
        r"(format|number) is required, not str|^must be real number, not str|can't convert type 'str' to num",
        "convert the text with int(...) or float(...)",
    ),
    (TypeError, r"unhashable type", "use a tuple, or a text, as the key"),
    (
        TypeError,
        r"'(generator|map|filter|zip|enumerate|reversed|set|dict_\w+)'( has no len| object is not subscr)",
        "make a list of it first: `list(...)`",
    ),
    (
        TypeError,
        r"'(builtin_function_or_method|method|function|type)' object is not (subscriptable|iterable)",
        "call it: put round brackets behind the name",
    ),
    (TypeError, r"object is not subscriptable", "look at the value: it has no items"),
    (TypeError, r"'int' object is not iterable", "to count, loop over `range(n)`"),
    (TypeError, r"'float' object cannot be interpreted as an integer", "write `//` or int(...)"),
    (
        TypeError,
        r"'?(list|tuple|set|generator)'?( object)? can't be (used in 'await'|awaited)",
        "for several calls write `await asyncio.gather(*calls)`",
    ),
    (TypeError, r"can't be (used in 'await'|awaited)", "leave `await` out: the value is there already"),
    (
        TypeError,
        r"coroutine or an awaitable is required",
        "give each call on its own: `asyncio.gather(*calls)`",
    ),
    (TypeError, r"exceptions must derive from", 'raise an exception: `raise ValueError("what went wrong")`'),
    (
        TypeError,
        r"invalid keyword argument for sort|^sort\(\) got an unexpected keyword",
        "sorting takes `key` and `reverse`",
    ),
    (
        ValueError,
        r"for integer string conversion",
        "show a part of it: math.log10(n) for its size, n % 10**20 for its end, or hex(n)",
    ),
    (
        ValueError,
        r"^(min|max)\(\) (arg is an empty|iterable argument is empty)",
        "there is nothing to choose from: give `default=`, or test for that first",
    ),
    (
        ValueError,
        r"^invalid literal for int|^could not convert string to float",
        'clean the text first, as in `text.replace(",", "").strip()`; int(float(text)) reads "3.0"',
    ),
    (
        ValueError,
        r"values to unpack",
        "names and values must be as many: look at one value first; `.items()` gives a dict's pairs",
    ),
    (
        json.JSONDecodeError,
        r"",
        "the text is no JSON: that has double quotes, true, false and null, and no comma at the end",
    ),
    (re.error, r"", "re.escape(text) matches a text as it stands"),
    (ZeroDivisionError, r"", "test the divisor first: it is 0 when there is nothing to count"),
    (IndexError, r"Replacement index", "give .format() as many values as the text has braces"),
    (IndexError, r"", "test the length first: the list may be empty"),
    (
        RuntimeError,
        r"^no running event loop",
        "put it into `async def main():`, and write `await main()` at the end",
    ),
    (RuntimeError, r"changed size during iteration", "loop over a copy: `for key in list(data):`"),
)


def suggest(error: BaseException, text: str, source: Source) -> str | None:
    """Return what to write instead, or None when nothing better than the message is known.

    Args:
        error: what was raised; nothing it holds is trusted.
        text: its message, bounded.
        source: the submitted lines.
    """
    place = _place(error)
    failing = None if place is None else find_failing(source, place)
    if failing is not None:
        from bascule.guest.explanations import explain  # only mistakes pay for the import

        if (found := explain(failing, error, text)) is not None:
            return found
    if isinstance(error, KeyError):
        return for_key(error)
    if isinstance(error, NameError):
        return for_name(error, text)
    if isinstance(error, ImportError):
        return plain_text(error, "hint")
    if isinstance(error, AttributeError):
        return for_attribute(error)
    if isinstance(error, AssertionError) and not text:
        return 'give assert a message: `assert condition, "what went wrong"`'
    if isinstance(error, TypeError) and ("write `await" in text or "ToolCall" in text):
        return "write `await` before the call"
    if isinstance(error, TypeError) and "NoneType" in text:
        return VALUE_IS_NONE
    if isinstance(error, TypeError) and "object is not callable" in text:
        return "this is no function; if its name once was one, a variable hides it: choose another name"
    return next(
        (hint for kind, words, hint in _HINTS if isinstance(error, kind) and re.search(words, text)), None
    )


def _place(error: BaseException) -> Place | None:
    """Return the place of the expression that raised in the script."""
    found: tuple[int | None, int | None, int | None, int | None] | None = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == SCRIPT_FILE:
            found = next(itertools.islice(code.co_positions(), traceback.tb_lasti // 2, None), None)
        traceback = traceback.tb_next
    return None if found is None or None in found else cast("Place", found)
