"""What commands say of tools that nobody has confirmed: how many wait, and the command that confirms them.

Names come from servers and are shown escaped; nothing here decides whether a tool may be called.
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from bascule.tools.imported.review import Review
    from bascule.tools.mcp import Waiting
    from bascule.tools.source import AnySource


def waiting_of(source: AnySource) -> list[Waiting]:
    """Return what waits in an open source; nothing for a source or a tool of another kind."""
    return cast("list[Waiting]", getattr(source, "waiting", []))


def name_waiting(waiting: Waiting) -> str:
    """Return how a tool that waits is called on the command line, escaped."""
    from bascule.bridge.display import show

    return f"{show(waiting.server)}:{show(waiting.tool, max_chars=200)}"


def count_tools(count: int) -> str:
    """Return ``1 tool`` or ``2 tools``."""
    return "1 tool" if count == 1 else f"{count} tools"


def tell_waiting(sources: Sequence[AnySource]) -> None:
    """Say on standard error, one line a server, which tools of open sources cannot be called yet."""
    from bascule.bridge.display import show
    from bascule.tools.imported.review import Reviewed

    for source in sources:
        reviews: Sequence[Review] = source.review() if isinstance(source, Reviewed) else ()
        found = [each for each in reviews if each.digest is not None and each.state == "waiting"]
        if not found:
            continue
        command = f"bascule tools confirm --tools {shlex.quote(str(getattr(source, 'name', '')))} --all"
        for server, count in Counter(each.server for each in found).items():
            verb = "waits" if count == 1 else "wait"
            print(
                f"bascule: {count_tools(count)} of server {show(server)} {verb} for "
                f"`{show(command, max_chars=1000)}`",
                file=sys.stderr,
            )
