"""What a model passes to the surface's own functions, read strictly: untrusted, as decoded from JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from bascule.bridge.result import JsonValue
from bascule.models.definitions import MAX_READ, MAX_SEARCH_RESULTS, READ, SEARCH_RESULTS


class CodeArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Of ``run_script``."""

    code: str


class SearchArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Of ``search_tools``; a limit out of range becomes the nearest in it."""

    query: str
    limit: int = SEARCH_RESULTS

    def __post_init__(self) -> None:
        self.limit = min(max(self.limit, 1), MAX_SEARCH_RESULTS)


class NamedArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Of ``describe_tool``."""

    name: str


class PartArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Of ``read_output``; numbers out of range become the nearest in it."""

    handle: str
    path: str = ""
    offset: int = 0
    limit: int = READ

    def __post_init__(self) -> None:
        self.offset = max(self.offset, 0)
        self.limit = min(max(self.limit, 1), MAX_READ)


class RunArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Of ``get_run`` and ``resume_run``."""

    run_id: str


def read_arguments(given: dict[str, JsonValue], kind: type[Any]) -> Any:
    """Return the arguments of one of the surface's own tools; null is the same as left out.

    Raises:
        msgspec.ValidationError: one is missing, unknown or of the wrong type.
    """
    present = {key[:100]: value for key, value in given.items() if value is not None}
    return msgspec.convert(present, kind)
