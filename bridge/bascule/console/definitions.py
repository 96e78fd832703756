"""Definitions of tools that servers give and nobody has confirmed: what waits, and the one way to decide.

What a server says is untrusted. A decision names the digest that was displayed, so a definition that changes
between looking and pressing is not confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bascule.bridge.store import Store
from bascule.console.principal import Principal
from bascule.console.problems import Problem
from bascule.console.state import require
from bascule.tools.errors import ToolLoadError
from bascule.tools.imported.review import Review, Reviewed
from bascule.tools.options import Effects


class Definitions:
    """The definitions of the sources a console was started with."""

    def __init__(self, sources: Iterable[Any], store: Store) -> None:
        self._sources = [source for source in sources if isinstance(source, Reviewed)]
        self._store = store

    def all(self) -> list[Review]:
        """Return what is not in force, with what people decided about it. Reads a file."""
        try:
            return [review for source in self._sources for review in source.review()]
        except ToolLoadError as error:
            raise Problem(503, error.code, error.message) from error

    def find(self, server: str, tool: str) -> Review:
        """Return one.

        Raises:
            Problem: 404.
        """
        for each in self.all():
            if (each.server, each.tool) == (server, tool):
                return each
        raise Problem(404, "definition_not_found", f"{tool} of {server} does not wait to be confirmed")

    def settle(
        self,
        principal: Principal,
        server: str,
        tool: str,
        digest: str,
        *,
        confirm: bool,
        effects: Effects | None,
        reason: str,
    ) -> Review:
        """Write a decision, and return the definition with it; every route to one passes here.

        Raises:
            Problem: 403: this one may not; 404; 409: it is not what was displayed; 503: it cannot be written.
        """
        require(principal, "administer")
        self.find(server, tool)
        try:
            kept = self._settle(
                server, tool, digest, confirm=confirm, by=principal.name, effects=effects, reason=reason
            )
        except ToolLoadError as error:
            status = 409 if error.code in ("definition_changed", "tool_not_confirmable") else 503
            raise Problem(status, error.code, error.message) from error
        except OSError as error:
            raise Problem(503, "definition_not_written", f"it cannot be written: {error.strerror}") from error
        after = self.find(server, tool)
        self._store.append_audit(
            f"definition.{after.state}",
            {
                "server": server,
                "tool": tool,
                "digest": digest,
                "effects": kept,
                "by": principal.name,
                "channel": principal.channel,
                "reason": reason,
            },
        )
        return after

    def _settle(self, server: str, tool: str, digest: str, **decision: Any) -> Effects | None:
        for source in self._sources:
            if any((each.server, each.tool) == (server, tool) for each in source.review()):
                return source.settle(server, tool, digest, **decision)
        raise ToolLoadError("definition_changed", f"{tool!r:.100} does not wait any more")
