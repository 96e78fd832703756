"""What the variables of the line that failed say about a mistake: keys, names and attributes that were meant.

Looks at values of exact built-in types only, and at a bounded number of them.
"""

from __future__ import annotations

import re
import types
from typing import Any, cast

from bascule.guest.advice import did_you_mean
from bascule.guest.position import SCRIPT_FILE
from bascule.guest.rules.modules import MODULES

_MAX_KEYS = 30
_MAX_CANDIDATES = 500
_LOOK_AT_KEYS = "look at the keys first, or use `.get(key)`"


def plain_text(error: BaseException, name: str) -> str | None:
    """Return an attribute of an exception or its class when it is a text."""
    found: Any = error.__dict__.get(name, getattr(type(error), name, None))
    return found if type(found) is str else None


def _innermost(error: BaseException) -> types.FrameType | None:
    """Return the last frame of the script that the error passed."""
    found: types.FrameType | None = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == SCRIPT_FILE:
            found = traceback.tb_frame
        traceback = traceback.tb_next
    return found


def for_key(error: KeyError) -> str | None:
    """Return the key meant, or the keys of the dict that most likely missed it, a variable of the line."""
    key: object = error.args[0] if error.args else None
    if type(key) is not str:
        return _LOOK_AT_KEYS
    found = variables_of(error).values()
    dicts = [cast("dict[object, object]", value) for value in found if type(value) is dict and value]
    for keys in ([item for item in value if type(item) is str] for value in dicts):
        hint = did_you_mean(key, keys[:_MAX_CANDIDATES])
        if hint:
            return hint
    if len(dicts) == 1:
        shown = ", ".join(repr(item)[:60] for item in list(dicts[0])[:_MAX_KEYS] if type(item) in (str, int))
        return f"its keys are: {shown}" if shown else None
    return _LOOK_AT_KEYS


def variables_of(error: BaseException) -> dict[str, object]:
    """Return the variables that the code of the line's frame names."""
    frame = _innermost(error)
    if frame is None:
        return {}
    names = sorted(name for name in frame.f_code.co_names if name in frame.f_globals)
    found = {**{name: frame.f_globals[name] for name in names}, **frame.f_locals}
    # The transformer's own names are no identifiers.
    return {name: value for name, value in found.items() if name.isidentifier()}


def loop_over_dict(error: TypeError) -> str | None:
    """Explain texts that are keys: the script went through a dict, not through the list in it."""
    variables = variables_of(error)
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
        advice = advice or f": `{name}.items()` gives keys and values"
        shown = ", ".join(repr(key)[:60] for key in keys)
        return f"`{name}` is a dict with {shown}, and a loop over a dict gives its keys{advice}"
    return None


def for_name(error: NameError, text: str) -> str | None:
    """Return the name that was probably meant, or where to assign it."""
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


def for_attribute(error: AttributeError) -> str | None:
    """Return the attribute that was probably meant."""
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
