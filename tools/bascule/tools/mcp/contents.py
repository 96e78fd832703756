"""What a server answered, as plain data for scripts.

One text alone is that text; what is structured is given as it is; anything else is a list with one object for
each part. Binary parts stay base64, with their type and size: scripts have no use for the bytes, but may pass
them on. The server is not trusted: sizes are bounded by the transport, values are checked by the bridge.
"""

from __future__ import annotations

import json
from typing import Final

import mcp_types as types
from pydantic import JsonValue

from bascule.tools.imported.failures import ServiceFailed
from bascule.tools.safe_text import shorten

MAX_ERROR_CHARS: Final = 4000
MAX_PARTS: Final = 10_000


def read_result(result: types.CallToolResult, *, as_json: bool) -> JsonValue:
    """Return the plain data of an answer.

    Args:
        as_json: whether one text alone is JSON, by what the operator says.

    Raises:
        ServiceFailed: the answer says that the call failed; with its text.
    """
    parts = result.content[:MAX_PARTS]
    if result.is_error:
        texts = [part.text for part in parts if isinstance(part, types.TextContent)]
        said = "\n".join(texts).strip() or json.dumps(result.structured_content)
        raise ServiceFailed(shorten(said, MAX_ERROR_CHARS))
    if result.structured_content is not None:
        structured: JsonValue = result.structured_content
        return structured
    if not parts:
        return None
    if len(parts) == 1 and isinstance(parts[0], types.TextContent):
        return _read_text(parts[0].text, as_json=as_json)
    return [_read_part(part) for part in parts]


def _read_text(text: str, *, as_json: bool) -> JsonValue:
    if as_json:
        try:
            value: JsonValue = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return value
    return text


def _read_part(part: types.ContentBlock) -> JsonValue:
    match part:
        case types.TextContent():
            return {"type": "text", "text": part.text}
        case types.ImageContent() | types.AudioContent():
            return {"type": part.type, **_binary(part.data, part.mime_type)}
        case types.ResourceLink():
            return {
                "type": "link",
                "uri": part.uri,
                "name": part.name,
                "mime_type": part.mime_type,
                "description": part.description,
            }
        case types.EmbeddedResource():
            resource = part.resource
            about: dict[str, JsonValue] = {"type": "resource", "uri": resource.uri}
            if isinstance(resource, types.TextResourceContents):
                return {**about, "mime_type": resource.mime_type, "text": resource.text}
            return {**about, **_binary(resource.blob, resource.mime_type)}


def _binary(data: str, mime_type: str | None) -> dict[str, JsonValue]:
    size = len(data) // 4 * 3 - data[-2:].count("=")
    return {"mime_type": mime_type, "size_bytes": max(size, 0), "base64": data}
