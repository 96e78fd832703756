"""The MCP servers of one file as a source of tools.

Offers only what people confirmed, exactly as they confirmed it: a definition that changes while its server is
connected, or is another one after it was started again, cannot be called any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import mcp_types as types
from pydantic import JsonValue

from bascule.tools.context import ToolContext
from bascule.tools.errors import ToolDefinitionError, ToolLoadError
from bascule.tools.imported.bounds import MAX_RESULT_NODES
from bascule.tools.imported.choosing import choose_names, choose_namespace
from bascule.tools.imported.failures import ServiceUnreachable
from bascule.tools.imported.globs import matches_any
from bascule.tools.imported.review import Review
from bascule.tools.imported.taming import Tamer, read_pointer, tame_pair
from bascule.tools.imported.tool import Operation, import_tool
from bascule.tools.imported.words import clean_phrase, clean_text
from bascule.tools.mcp.arguments import read_members
from bascule.tools.mcp.config import ServerConfig, read_config
from bascule.tools.mcp.confirmed import Confirmation, Confirmations
from bascule.tools.mcp.connection import Connection
from bascule.tools.mcp.contents import read_result
from bascule.tools.mcp.offer import Offer, Waiting, review_waiting, sort_tools
from bascule.tools.options import Effects
from bascule.tools.schema import is_object
from bascule.tools.tool import AnyTool

_log = logging.getLogger("bascule.tools")
MAX_TITLE_CHARS: Final = 200


class ToolWithdrawn(Exception):
    """The definition of the tool is not the one that was confirmed; an operator has to look at it."""


class McpSource:
    """Connects to the servers of a configuration, and gives their confirmed tools.

    Args:
        name: what it is called in messages.
        servers: as `read_config` gives them.
        confirmations: of these servers.
    """

    def __init__(self, name: str, servers: list[ServerConfig], confirmations: Confirmations) -> None:
        self._name = name
        self._servers = servers
        self._confirmations = confirmations
        self._connections: list[Connection] = []
        self._states: dict[str, _ServerState] = {}

    @property
    def name(self) -> str:
        """The specification that named it."""
        return self._name

    @property
    def secrets(self) -> frozenset[str]:
        """Values that must be kept out of scripts, journals and logs."""
        return frozenset(secret for server in self._servers for secret in server.secrets.given)

    @property
    def waiting(self) -> list[Waiting]:
        """What is listed and cannot be called, while the source is open."""
        return [each for state in self._states.values() for each in state.waiting]

    async def open(self) -> list[AnyTool]:
        """Connect to every server and return the tools that people confirmed.

        Raises:
            ToolLoadError: a server cannot be reached, or the file of confirmations cannot be read.
        """
        confirmed = self._confirmations.read()
        taken: set[str] = set()
        for server in self._servers:
            namespace = (
                choose_namespace(server.name, taken=taken) if server.namespace is None else server.namespace
            )
            taken.add(namespace)
            self._states[server.name] = _ServerState(server, namespace, confirmed.get(server.name, {}))
        self._connections = [Connection(state.server, state.take_list) for state in self._states.values()]
        results = await asyncio.gather(*(each.start() for each in self._connections), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        if failures:
            await self.close()
            if isinstance(failures[0], ToolLoadError):
                raise ToolLoadError(failures[0].code, f"{self._name}: {failures[0].message}")
            raise failures[0]
        try:
            return [
                tool
                for connection, state in zip(self._connections, self._states.values(), strict=True)
                for tool in state.make_tools(connection)
            ]
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End every connection, and the servers that are processes of ours."""
        connections, self._connections = self._connections, []
        await asyncio.gather(*(each.stop() for each in connections))

    def confirm(self, waiting: Waiting, *, by: str, effects: Effects | None = None) -> Effects:
        """Write that a definition which waits is confirmed; it counts from the next opening on.

        Args:
            by: who says so.
            effects: of the tool; None keeps those of an earlier confirmation, and else takes ``once``.

        Raises:
            ToolLoadError: it cannot be confirmed, or the file cannot be read.
        """
        if waiting.definition is None:
            raise ToolLoadError(
                "tool_not_confirmable",
                f"{waiting.tool!r:.100} cannot be confirmed: {waiting.note or waiting.reason}",
            )
        before = None if waiting.confirmed is None else waiting.confirmed.effects
        chosen: Effects = effects or before or "once"
        self._confirmations.confirm(waiting.server, waiting.definition, effects=chosen, by=by)
        return chosen

    def review(self) -> list[Review]:
        """Return what waits, while the source is open, with what the file of confirmations says of it by now.

        Raises:
            ToolLoadError: the file cannot be read.
        """
        confirmed, refused = self._confirmations.read(), self._confirmations.refusals()
        return [
            review_waiting(
                each,
                confirmed.get(each.server, {}).get(each.tool),
                refused.get(each.server, {}).get(each.tool),
            )
            for each in self.waiting
        ]

    def settle(
        self,
        server: str,
        tool: str,
        digest: str,
        *,
        confirm: bool,
        by: str,
        effects: Effects | None,
        reason: str,
    ) -> Effects | None:
        """See `Reviewed.settle`."""
        for each in self.waiting:
            definition = each.definition
            if (
                (each.server, each.tool) != (server, tool)
                or definition is None
                or definition.digest != digest
            ):
                continue
            if confirm:
                kept = self.confirm(each, by=by, effects=effects)
                return self._states[server].server.effects_of(tool) or kept  # what the file says decides
            self._confirmations.refuse(server, definition, by=by, reason=reason)
            return None
        raise ToolLoadError(
            "definition_changed",
            f"{tool!r:.100} does not wait as it was shown; look at it again, then decide",
        )


class _ServerState:
    """What is known of one server's tools: those on offer at the opening, and what changed since."""

    def __init__(self, server: ServerConfig, namespace: str, confirmed: Mapping[str, Confirmation]) -> None:
        self.server = server
        self.namespace = namespace
        self.waiting: list[Waiting] = []
        self._confirmed = confirmed
        self._offers: list[Offer] = []
        self._digests: dict[str, str] = {}
        self._made: dict[str, str] | None = None

    def take_list(self, listed: list[types.Tool]) -> None:
        """Take what the server lists now."""
        offers, waiting = sort_tools(self.server, listed, self._confirmed)
        texts = [each.definition.tool for each in offers]
        texts += [each.tool for each in waiting if each.definition is not None]
        names = choose_names(texts, namespace=self.namespace)
        self.waiting = [
            each if each.definition is None else replace(each, name=names[each.tool]) for each in waiting
        ]
        self._digests = {offer.definition.tool: offer.definition.digest for offer in offers}
        if self._made is None:
            self._offers = offers
            return
        for tool, digest in self._made.items():
            if self._digests.get(tool) != digest:
                _log.warning(
                    "MCP server %s: the definition of %r changed; it is not called any more",
                    self.server.name,
                    tool,
                )

    def make_tools(self, connection: Connection) -> list[AnyTool]:
        """Return the tools on offer; later changes never add one."""
        names = choose_names([offer.definition.tool for offer in self._offers], namespace=self.namespace)
        self._made = {offer.definition.tool: offer.definition.digest for offer in self._offers}
        tools: list[AnyTool] = []
        for offer in self._offers:
            try:
                tools.append(self._make_tool(names[offer.definition.tool], offer, connection))
            except ToolDefinitionError as error:
                raise ToolLoadError(
                    "tool_source_broken", f"MCP server {self.server.name}: {error}"
                ) from error
        return tools

    def _make_tool(self, name: str, offer: Offer, connection: Connection) -> AnyTool:
        definition, server = offer.definition, self.server
        schema = definition.input_schema
        members, defs, whole = read_members(schema, hidden=server.hidden_arguments)
        tamer = Tamer(
            lambda reference: read_pointer(definition.output_schema, reference),
            side="result",
            max_nodes=MAX_RESULT_NODES,
        )
        returns = tame_pair(tamer, definition.output_schema) or None
        as_json = matches_any(definition.tool, server.parse_json)
        sent_along = {key: value for key, value in server.hidden_arguments.items() if _takes(schema, key)}

        async def call(arguments: dict[str, JsonValue], context: ToolContext) -> object:
            if self._digests.get(definition.tool) != definition.digest:
                raise ToolWithdrawn(
                    f"the definition of {name} changed or is gone; an operator has to confirm it first"
                )
            given = arguments.get(whole, {}) if whole is not None else arguments
            assert isinstance(given, dict)
            result = await connection.call(
                definition.tool, {**given, **sent_along}, context, effects=offer.effects
            )
            return read_result(result, as_json=as_json)

        return import_tool(
            Operation(
                name=name,
                description=clean_text(definition.description)
                or clean_phrase(definition.tool, max_chars=MAX_TITLE_CHARS),
                members=members,
                defs=defs,
                returns=returns,
                call=call,
                location=f"MCP server {server.name}",
                effects=offer.effects,
                labels=server.labels,
                timeout_s=server.timeout_s,
                transient=(ServiceUnreachable,),
                checks_result=returns is not None,
            )
        )


def _takes(schema: object, argument: str) -> bool:
    return is_object(schema) and is_object(schema.get("properties")) and argument in schema["properties"]


def read_source(spec: str, path: Path, *, secrets: Mapping[str, str] | None = None) -> McpSource:
    """Read a configuration file; nothing is started before the source is opened.

    Raises:
        ToolLoadError: naming file and line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolLoadError("tool_source_invalid", f"{spec}: {error}") from error
    servers = read_config(spec, text, secrets=secrets, folder=path.parent)
    return McpSource(spec, servers, Confirmations.beside(path))
