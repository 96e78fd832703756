"""Reads what servers send: JSON of any shape, in which every field may be missing or of another type.

Nothing here raises because of what it reads. Calls come out with an id that can be sent back, arguments that
are a JSON object within bounds, or the reason why they must not be executed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Final, cast

from bascule.bridge.result import JsonValue
from bascule.models.definitions import JsonObject
from bascule.models.names import NameMap
from bascule.models.turn import ModelCall
from bascule.tools.canonical import check_plain

MAX_CALLS: Final = 64
"""Calls of one turn that are looked at; the rest is dropped from the history too."""

MAX_ARGUMENT_CHARS: Final = 400_000
"""Longest JSON of a call's arguments: a script of 256 KiB fits, with its escapes."""

MAX_TEXT_CHARS: Final = 1_000_000
SHOWN_CHARS: Final = 2_000
"""Characters of invalid arguments that stay in the history, so that the model sees what it wrote."""

MAX_TOKENS_SAID: Final = 10**12

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def object_of(value: object) -> JsonObject:
    """Return a JSON object, empty when it is none."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def objects_of(value: object) -> list[JsonObject]:
    """Return the objects in a list, without what is none."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("JsonObject", item) for item in items if isinstance(item, dict)]


def text_of(value: object) -> str:
    """Return a text, bounded and encodable; empty when it is none."""
    if not isinstance(value, str):
        return ""
    return value[:MAX_TEXT_CHARS].encode("utf-8", "replace").decode()


def count_of(value: object) -> int | None:
    """Return a number of tokens; None when it is no credible one."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS_SAID:
        return value
    return None


def clean(value: object) -> JsonValue:
    """Return JSON that can be sent again: what is not plain data becomes text or null."""
    try:
        check_plain(value, path="")
        return cast("JsonValue", value)
    except ValueError:
        return _cleaned(value, 0)


def _cleaned(value: object, depth: int) -> JsonValue:
    if isinstance(value, str):
        return text_of(value)
    if depth < 60 and isinstance(value, dict):
        members = cast("dict[object, object]", value).items()
        return {text_of(str(key)): _cleaned(item, depth + 1) for key, item in members}
    if depth < 60 and isinstance(value, list):
        return [_cleaned(item, depth + 1) for item in cast("list[object]", value)]
    try:
        check_plain(value, path="")
    except ValueError:
        return None
    return cast("JsonValue", value)


class CallReader:
    """Reads the calls of one turn.

    Args:
        taken: ids that stand in the history already.
        restore: undoes, by the name of a tool, what strict schemas did to its arguments.
    """

    def __init__(self, names: NameMap, taken: Collection[str]) -> None:
        self._names = names
        self._taken = set(taken)
        self._made = 0

    def read(self, id: object, name: object, arguments: object, caller: object = None) -> ModelCall:
        """Return one call.

        Args:
            arguments: JSON text, or an object that is decoded already.
        """
        decoded, problem = read_arguments(arguments)
        written = text_of(name)[:1000]
        return ModelCall(
            id=self._fresh_id(id),
            name=self._names.from_wire(written),
            arguments=decoded,
            problem=problem,
            caller=object_of(caller) or None,
        )

    def _fresh_id(self, id: object) -> str:
        """Return the server's id when it can be sent back, else one of our own."""
        found = id if isinstance(id, str) and _ID.fullmatch(id) and id not in self._taken else ""
        while not found or found in self._taken:
            self._made += 1
            found = f"call_{len(self._taken)}_{self._made}"
        self._taken.add(found)
        return found


def read_arguments(arguments: object) -> tuple[JsonObject | None, str]:
    """Return arguments as an object, or None and what is wrong with them, in words for the model."""
    if isinstance(arguments, str):
        if len(arguments) > MAX_ARGUMENT_CHARS:
            return None, _too_long(len(arguments))
        try:
            arguments = _decode(arguments) if arguments.strip() else {}
            if isinstance(arguments, str):  # encoded twice, a common slip
                arguments = _decode(arguments)
        except RecursionError:
            return None, "the arguments are nested too deep"
        except ValueError as error:
            return None, f"the arguments are not valid JSON: {str(error)[:200]}"
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return None, "the arguments are not a JSON object"
    try:
        check_plain(cast("object", arguments), path="arguments")
    except ValueError as error:
        return None, str(error)[:300]
    size = len(json.dumps(arguments, ensure_ascii=False))
    if size > MAX_ARGUMENT_CHARS:
        return None, _too_long(size)
    return cast("JsonObject", arguments), ""


def _too_long(chars: int) -> str:
    return f"the arguments have {chars} characters, at most {MAX_ARGUMENT_CHARS} are read"


def sent_arguments(call: ModelCall, written: object) -> JsonObject:
    """Return the arguments as they stand in the history: always an object, whatever was written."""
    if call.arguments is not None:
        return call.arguments
    shown = written if isinstance(written, str) else json.dumps(clean(written))
    return {"invalid_arguments": text_of(shown[:SHOWN_CHARS])}


def _decode(text: str) -> object:
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:60]!r} appears twice")
        found[key] = value
    return found


def ids_in(messages: Collection[Mapping[str, JsonValue]], *keys: str) -> set[str]:
    """Return every text that stands under one of ``keys`` anywhere in a history."""
    found: set[str] = set()
    waiting: list[object] = list(messages)
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            for key, value in cast("dict[str, object]", node).items():
                if key in keys and isinstance(value, str):
                    found.add(value)
                else:
                    waiting.append(value)
        elif isinstance(node, list):
            waiting.extend(cast("list[object]", node))
    return found
