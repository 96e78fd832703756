"""The result of an own tool, told as JSON Schema instead of a type, and checked as that of an imported one.

The schema is the author's, so what cannot be read of it as a whole is an error and not "anything". Within it
the subset of `checking` counts; what it does not know is neither told nor checked.
"""

from __future__ import annotations

import copy
from typing import Any

from pydantic import TypeAdapter

from bascule.tools.canonical import check_plain
from bascule.tools.errors import ToolDefinitionError
from bascule.tools.imported.bounds import MAX_ARGUMENT_NODES
from bascule.tools.imported.checking import make_result_adapter
from bascule.tools.imported.taming import Tamer, read_pointer, tame_pair
from bascule.tools.schema import JsonSchema


def read_result_schema(
    name: str, schema: JsonSchema, location: str | None
) -> tuple[JsonSchema, TypeAdapter[Any]]:
    """Return what is told of a tool's result, and what checks it.

    Args:
        name: the tool's, for messages.
        schema: a JSON Schema; it may refer to its own ``$defs``.

    Raises:
        ToolDefinitionError: ``tool_type_unsupported``: it is no JSON, or nothing in it can be checked.
    """
    where = f"{name}(): the JSON Schema in returns"
    try:
        check_plain(schema, path="returns")
    except ValueError as error:
        raise ToolDefinitionError(
            "tool_type_unsupported", f"{where} is no JSON: {error}", location=location
        ) from error
    tamer = Tamer(
        lambda reference: read_pointer(schema, reference), side="result", max_nodes=MAX_ARGUMENT_NODES
    )
    told = copy.deepcopy(tame_pair(tamer, schema))
    if not set(told) - {"description", "format"}:
        raise ToolDefinitionError(
            "tool_type_unsupported",
            f"{where} says nothing that can be checked; write type, properties, items, enum or anyOf",
            location=location,
        )
    return told, make_result_adapter(told)
