"""Bodies of requests: which kind is sent, as which arguments, and what its bytes are."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import quote_plus

from pydantic import JsonValue

from bascule.tools.openapi.document import Document
from bascule.tools.schema import JsonSchema, is_array, is_object

Kind = Literal["json", "form", "multipart", "text"]

MAX_SPREAD: Final = 40
"""Members of a body that become arguments of their own; a larger body is one argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The body of an operation.

    Attributes:
        kind, media_type: how it is written, and what it is called.
        schema: of the whole body; members: of each, when they are arguments of their own, else None.
        required: whether there must be one; needed: which members then.
    """

    kind: Kind
    media_type: str
    schema: object
    members: dict[str, Any] | None
    required: bool
    needed: frozenset[str]


def read_body(document: Document, node: object, merge: Callable[[object], JsonSchema]) -> Body | None:
    """Return the body an operation takes, None for none that we can write.

    Args:
        merge: makes one object schema of references and ``allOf``.
    """
    plain = document.find(node)
    content = plain.get("content")
    if not is_object(content):
        return None
    best: tuple[Kind, str, JsonSchema] | None = None
    for media_type, media in content.items():
        kind = _kind_of(media_type)
        if kind is not None and (best is None or _ORDER[kind] < _ORDER[best[0]]):
            best = (kind, media_type, document.find(media))
    if best is None:
        return None
    kind, media_type, media = best
    schema = media.get("schema", {})
    root = merge(schema)
    properties = root.get("properties")
    needed = root.get("required")
    spreads = (
        kind != "text"
        and is_object(properties)
        and 0 < len(properties) <= MAX_SPREAD
        and not any(key in root for key in ("anyOf", "oneOf"))
        and root.get("additionalProperties") in (None, False)
    )
    return Body(
        kind=kind,
        media_type=media_type,
        schema=schema,
        members=dict(properties) if spreads and is_object(properties) else None,
        required=plain.get("required") is True,
        needed=frozenset(name for name in needed if isinstance(name, str))
        if is_array(needed)
        else frozenset(),
    )


_ORDER: Final[dict[Kind, int]] = {"json": 0, "form": 1, "multipart": 2, "text": 3}


def _kind_of(media_type: str) -> Kind | None:
    name = media_type.partition(";")[0].strip().lower()
    if not name.isascii() or not name.isprintable() or len(name) > 200:
        return None
    if name == "application/json" or name.endswith("+json") or name == "*/*":
        return "json"
    if name == "application/x-www-form-urlencoded":
        return "form"
    if name == "multipart/form-data":
        return "multipart"
    return "text" if name.startswith("text/") else None


def write_body(body: Body, value: JsonValue) -> tuple[bytes, str]:
    """Return the bytes of a body and its Content-Type.

    Raises:
        ValueError: the value cannot be written that way.
    """
    if body.kind == "json":
        media_type = "application/json" if "*" in body.media_type else body.media_type
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), media_type
    if body.kind == "text":
        return (value if isinstance(value, str) else json.dumps(value)).encode(), "text/plain; charset=utf-8"
    if not isinstance(value, dict):
        raise ValueError("the body must be an object")
    fields = [(name, text) for name, item in value.items() for text in _texts(item)]
    if body.kind == "form":
        pairs = "&".join(f"{quote_plus(name)}={quote_plus(text)}" for name, text in fields)
        return pairs.encode(), "application/x-www-form-urlencoded"
    return _multipart(fields)


def _texts(value: JsonValue) -> list[str]:
    if isinstance(value, list):
        return [
            text
            for item in value
            for text in ([json.dumps(item)] if isinstance(item, list) else _texts(item))
        ]
    return ["" if value is None else value if isinstance(value, str) else json.dumps(value)]


def _multipart(fields: list[tuple[str, str]]) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)  # no value can hold what nobody knew when it was made
    parts: list[str] = []
    for name, text in fields:
        escaped = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{escaped}"\r\n\r\n{text}\r\n')
    return f"{''.join(parts)}--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"
