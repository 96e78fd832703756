"""Which kind of source a file describes: MCP servers or an OpenAPI document, by what stands in it.

Only looks; each kind has a reader of its own, which needs its extra.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bascule.tools.errors import ToolLoadError
from bascule.tools.source import ToolSource

LOOKED_AT_BYTES: Final = 1 << 20
_SERVERS = re.compile(r'"(?:mcpServers|servers)"\s*:\s*\{')
_OPENAPI = re.compile(r'["\']?(?:openapi|swagger)["\']?\s*:')


def read_described_source(spec: str, path: Path, *, secrets: Mapping[str, str] | None = None) -> ToolSource:
    """Return the source that a file describes, not yet open.

    Args:
        spec: how it is called in messages.
        secrets: values for ``${NAME}``, before the environment.

    Raises:
        ToolLoadError: it describes none; ``extra_missing``: its kind is not installed.
    """
    try:
        with path.open("rb") as file:
            text = file.read(LOOKED_AT_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise ToolLoadError("tool_source_invalid", f"{spec}: {error}") from error
    if path.suffix.lower() == ".json" and _SERVERS.search(text) and not _OPENAPI.search(text[:2000]):
        from bascule.tools import mcp

        return mcp.read_source(spec, path, secrets=secrets)
    if path.suffix.lower() == ".json" and not _OPENAPI.search(text):
        _check_json(spec, text)
        raise ToolLoadError(
            "tool_source_invalid", f"{spec}: it has neither mcpServers nor openapi; it describes no tools"
        )
    from bascule.tools import openapi

    return openapi.read_source(spec, path, secrets=secrets)


def _check_json(spec: str, text: str) -> None:
    """Refuse a small file that is no JSON, with the place: then that is what is wrong with it."""
    if len(text) >= LOOKED_AT_BYTES:
        return
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise ToolLoadError(
            "tool_source_invalid",
            f"{spec}:{error.lineno}: not valid JSON: {error.msg} (column {error.colno})",
        ) from error
    except (ValueError, RecursionError) as error:
        raise ToolLoadError("tool_source_invalid", f"{spec}: not valid JSON: {error}") from error
