"""What to write instead when a text, a moment or an iterator does not hold what the script expects of it."""

from __future__ import annotations

import ast
import re
from typing import Final

from bascule.guest.failing import Failing
from bascule.guest.known_values import Variables, as_dict, as_list, kind_of, shown_keys, value_of
from bascule.guest.wrong_operands import as_moment

_MISMATCH: Final = re.compile(r"^time data '(.*)' does not match format|^unconverted data remains")
_FORMAT: Final = re.compile(r"^Unknown format code '(\w)' for object of type 'str'")


def explain_text(failing: Failing, error: BaseException, text: str, variables: Variables) -> str | None:
    """Return what to write instead, or None when the message says all that is known."""
    node = failing.node
    if isinstance(error, StopIteration):
        return "nothing was left: give next() a default, `next(..., None)`, and test for it"
    if not isinstance(error, ValueError):
        return None
    if "values to unpack" in text:
        return _unpacked(failing, node, variables)
    if _FORMAT.search(text) and isinstance(node, ast.JoinedStr | ast.FormattedValue | ast.Call):
        return _formatted(failing, node, variables)
    if isinstance(node, ast.Call) and node.args and (found := _moment(failing, node, text, variables)):
        return found
    return None


def _unpacked(failing: Failing, node: ast.AST, variables: Variables) -> str | None:
    """Explain a loop with several names over a dict, or over dicts."""
    source = node.iter if isinstance(node, ast.For) else None
    if isinstance(node, ast.Tuple | ast.List):  # the place that Python 3.12 and newer give
        parent = failing.parent(node)
        source = parent.iter if isinstance(parent, ast.For | ast.comprehension) else None
    if source is None:
        return None
    value, name = value_of(source, variables), failing.shown(source)
    if as_dict(value) is not None:
        return f"`{name}` is a dict: write `{name}.items()` for its pairs"
    rows = as_list(value)
    row = as_dict(rows[0]) if rows else None
    if row is not None:
        return (
            f"the items of `{name}` are dicts with {shown_keys(row)}: write `for row in {name}`, and row[...]"
        )
    return None


def _formatted(failing: Failing, node: ast.AST, variables: Variables) -> str | None:
    parts = [part for part in ast.walk(node) if isinstance(part, ast.FormattedValue) and part.format_spec]
    texts = [(part.value, value_of(part.value, variables)) for part in parts]
    known = [(place, value) for place, value in texts if type(value) is str]
    if len(known) == 1 or len(texts) == 1:
        place, value = (known or texts)[0]
        kind = kind_of(value) if type(value) is str else None
        shown = failing.shown(place)
        return f"`{shown}` is {kind or 'a text'}: write `float({shown})` in front of the format"
    return "the value is a text: convert it with float(...) first"


def _moment(failing: Failing, call: ast.Call, text: str, variables: Variables) -> str | None:
    value, shown = value_of(call.args[0], variables), failing.shown(call.args[0])
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name == "strptime" and (mismatch := _MISMATCH.search(text)):
        value = value if type(value) is str else mismatch[1] or ""
        made = as_moment(shown, value)
        return f"it is an ISO text: write `{made}`" if made else "the format must fit the whole text"
    if name == "fromisoformat" and text.startswith("Invalid isoformat"):
        quoted = re.search(r"'(.*)'", text)
        made = as_moment(shown, quoted[1]) if quoted else None
        if made is not None and made.startswith("datetime"):
            return f"the text has a time as well: write `{made}.date()`"
        return 'it is no ISO text: datetime.strptime(text, "%d.%m.%Y") reads other forms'
    return None
