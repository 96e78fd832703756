"""A tool's own word on what a call would do, for the people who decide about it.

The function is the tool author's and must change nothing; what it says may hold anything that the arguments
or the world behind the tool hold, so it is cut and cleaned of secrets here, and shown through `display` only.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec

from bascule.bridge.redaction import Redactor
from bascule.bridge.workers import Workers
from bascule.tools import AnyTool, Arguments, ToolContext

MAX_PREVIEW_CHARS: Final = 8000
PREVIEW_S: Final = 10.0
"""Seconds a preview may take at most; people wait for it."""

_log = logging.getLogger("bascule.bridge")


async def preview_call(
    tool: AnyTool, arguments: Arguments, context: ToolContext, *, workers: Workers, redactor: Redactor
) -> str:
    """Return what the tool says a call would do; empty when it says nothing. Never raises for the tool."""
    if tool.preview is None:
        return ""
    try:
        async with asyncio.timeout(min(tool.timeout_s, PREVIEW_S)):
            said = await _ask(tool.preview, arguments, context, workers)
        text = said if isinstance(said, str) else msgspec.json.encode(said).decode()
    except Exception as error:  # it is only a help: the call is asked about without it
        _log.warning(
            "run %s call %d: the preview of %s failed: %r", context.run_id, context.seq, tool.name, error
        )
        return f"the preview failed: {type(error).__name__}"
    cleaned = redactor.text(text)
    if len(cleaned) > MAX_PREVIEW_CHARS:
        return f"{cleaned[:MAX_PREVIEW_CHARS]} [... {len(cleaned) - MAX_PREVIEW_CHARS} characters left out]"
    return cleaned


async def _ask(
    preview: Callable[[Mapping[str, Any], ToolContext], Any],
    arguments: Arguments,
    context: ToolContext,
    workers: Workers,
) -> object:
    if inspect.iscoroutinefunction(preview):
        return cast("object", await preview(arguments.values, context))
    return await workers.submit(lambda: preview(arguments.values, context))
