"""A direct call as a run of its own: one line of script, so that it takes the bridge like every other call.

The arguments travel as JSON text inside a string literal; nothing of them is ever read as code.
"""

from __future__ import annotations

import json
from typing import Final

from bascule.bridge.result import JsonValue
from bascule.tools.canonical import check_plain

MAX_ARGUMENT_BYTES: Final = 200 << 10
"""JSON of a direct call's arguments; with its escapes the script stays within what the guest compiles."""

_FIRST_LINE: Final = "import json  # a direct call\n"


def write_script(tool: str, arguments: dict[str, JsonValue]) -> str:
    """Return the script that makes one call and ends with its result.

    Args:
        tool: the registered name, which is a dotted Python name.
        arguments: untrusted.

    Raises:
        ValueError: they cannot be sent; the message is for the model.
    """
    check_plain(arguments, path="arguments")
    text = repr(json.dumps(arguments))
    if len(text) > MAX_ARGUMENT_BYTES:
        raise ValueError(f"the arguments have {len(text)} bytes, at most {MAX_ARGUMENT_BYTES} are accepted")
    return f"{_FIRST_LINE}{tool}(**json.loads({text}))"


def is_direct(script: str) -> bool:
    """Tell whether a recorded script is one of `write_script`."""
    return script.startswith(_FIRST_LINE)
