"""Calling tools in tests as the bridge does: arguments validated, results checked and made plain."""

from __future__ import annotations

import json
from typing import Any

from bascule.tools import AnyTool, ToolContext

NOBODY = ToolContext(idempotency_key="key-1")


def call(tools: list[AnyTool], name: str, /, *, context: ToolContext = NOBODY, **arguments: Any) -> Any:
    """Call one of some tools and return its result as a script gets it."""
    (made,) = [each for each in tools if each.name == name]
    result = made.call(made.validate(arguments).values, context)
    return json.loads(made.dump_result(result))
