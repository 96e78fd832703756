"""What a server says of a tool, in one fixed form: its digest is what people confirm.

Everything here is the server's word. Its annotations become a suggestion that people see, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import mcp_types as types
from pydantic import JsonValue

from bascule.tools.canonical import canonical_json, check_plain
from bascule.tools.options import Effects
from bascule.tools.schema import JsonSchema

MAX_DEFINITION_BYTES: Final = 256 << 10
MAX_TOOL_NAME_CHARS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One tool as its server describes it.

    Attributes:
        tool: its name there; untrusted, as all that follows.
        plain: everything that counts, as plain data.
        digest: SHA-256 in hex of that.
        suggested: the effects its annotations suggest.
    """

    tool: str
    plain: dict[str, JsonValue]
    digest: str
    suggested: Effects

    @property
    def description(self) -> object:
        """Its description, or its title where there is none."""
        return self.plain["description"] or self.plain["title"]

    @property
    def input_schema(self) -> object:
        """Schema of its arguments."""
        return self.plain["inputSchema"]

    @property
    def output_schema(self) -> object:
        """Schema of its structured result, or None."""
        return self.plain["outputSchema"]


def read_definition(listed: types.Tool) -> Definition:
    """Return the definition of a tool that a server lists.

    Raises:
        ValueError: it cannot be used; the message says why, without words of the server.
    """
    if len(listed.name) > MAX_TOOL_NAME_CHARS:
        raise ValueError(f"its name has more than {MAX_TOOL_NAME_CHARS} characters")
    hints = listed.annotations
    plain: dict[str, JsonValue] = {
        "name": listed.name,
        "title": listed.title,
        "description": listed.description,
        "inputSchema": listed.input_schema,
        "outputSchema": listed.output_schema,
        "annotations": None
        if hints is None
        else hints.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    check_plain(plain, path="")
    encoded = canonical_json(plain)
    if len(encoded) > MAX_DEFINITION_BYTES:
        raise ValueError(f"its definition has more than {MAX_DEFINITION_BYTES} bytes")
    return Definition(
        tool=listed.name, plain=plain, digest=sha256(encoded).hexdigest(), suggested=_suggest_effects(hints)
    )


def _suggest_effects(hints: types.ToolAnnotations | None) -> Effects:
    if hints is None:
        return "once"
    if hints.read_only_hint:
        return "read"
    return "idempotent" if hints.idempotent_hint else "once"


def root_properties(schema: JsonSchema) -> bool:
    """Tell whether arguments are named at all; a server may take any object."""
    return bool(schema.get("properties"))
