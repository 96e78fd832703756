"""An OpenAPI document as a source of tools: the operations its selection file names, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bascule.tools.errors import ToolDefinitionError, ToolLoadError
from bascule.tools.imported.choosing import choose_names, choose_namespace
from bascule.tools.imported.secrets import SecretBook
from bascule.tools.imported.tool import import_tool
from bascule.tools.imported.words import clean_phrase
from bascule.tools.openapi.building import build, document_servers
from bascule.tools.openapi.client import ServiceClient
from bascule.tools.openapi.document import Document, read_document
from bascule.tools.openapi.operations import Found, find_operations
from bascule.tools.openapi.security import choose_credentials, scheme_names
from bascule.tools.openapi.selection import SUFFIX, Selection, read_selection
from bascule.tools.tool import AnyTool

MAX_TOOLS: Final = 5000


class OpenApiSource:
    """Gives the chosen operations of a document as tools.

    Args:
        name: what it is called in messages.
        document, selection: as read.
        secrets: values that must be kept out of scripts, journals and logs.
    """

    def __init__(self, name: str, document: Document, selection: Selection, secrets: frozenset[str]) -> None:
        self._name = name
        self._document = document
        self._selection = selection
        self._secrets = secrets
        self._client = ServiceClient(
            name,
            servers=selection.servers,
            private_hosts=selection.private_hosts,
            max_bytes=selection.max_response_bytes,
            secrets=secrets,
        )
        self._notes: list[str] = []

    @property
    def name(self) -> str:
        """The specification that named it."""
        return self._name

    @property
    def secrets(self) -> frozenset[str]:
        """Values that must be kept out of scripts, journals and logs."""
        return self._secrets

    @property
    def notes(self) -> list[str]:
        """What was repaired or left out, for the operator, once it is open."""
        return self._notes

    async def open(self) -> list[AnyTool]:
        """Return the tools; nothing is sent before one is called.

        Raises:
            ToolLoadError: nothing is chosen, or what is chosen cannot be sent or authenticated.
        """
        tools = self.make_tools()
        await self._client.open()
        return tools

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def make_tools(self) -> list[AnyTool]:
        """Return the tools of a document without opening anything.

        Raises:
            ToolLoadError: see `open`.
        """
        selection = self._selection
        everything = find_operations(self._document)
        chosen = [
            found
            for found in everything
            if selection.chooses(tags=found.tags, path=found.path, operation=found.id)
        ]
        if not chosen:
            raise ToolLoadError(
                "tool_source_empty",
                f"{self._name}: of {len(everything)} operations none is chosen; see include",
            )
        if len(chosen) > MAX_TOOLS:
            raise ToolLoadError(
                "tool_source_invalid",
                f"{self._name}: {len(chosen)} operations are chosen, at most {MAX_TOOLS} can be",
            )
        namespace = selection.namespace
        if namespace is None:
            namespace = choose_namespace(Path(self._document.name).name.partition(".")[0])
        names = choose_names([found.id for found in everything], namespace=namespace, fallback="operation")
        self._notes = []
        hidden = scheme_names(self._document)
        tools: list[AnyTool] = []
        for found in chosen:
            tool = self._make_tool(found, names[found.id], hidden)
            if tool is not None:
                tools.append(tool)
        return tools

    def _make_tool(self, found: Found, name: str, hidden: frozenset[tuple[str, str]]) -> AnyTool | None:
        where = f"{self._name}: {clean_phrase(found.id, max_chars=100)}"
        self._notes += [f"{where}: {note}; scripts call it {name}" for note in found.notes]
        base = self._base_of(found)
        if base is None:
            self._notes.append(f"{where}: left out: none of its own servers is among the confirmed ones")
            return None
        credentials = choose_credentials(self._document, found.plain, self._selection.auth, where=where)
        try:
            operation = build(
                self._document,
                found,
                self._selection,
                self._client,
                name=name,
                base=base,
                credentials=credentials,
                hidden=hidden,
            )
            return import_tool(operation)
        except ToolDefinitionError as error:
            raise ToolLoadError("tool_source_broken", f"{where}: {error}") from error

    def _base_of(self, found: Found) -> str | None:
        """Return the confirmed address for an operation; one with servers of its own needs one of those."""
        confirmed = [server.rstrip("/") for server in self._selection.servers]
        if found.servers is None:
            return confirmed[0]
        own = document_servers(self._document, found.servers)
        general = document_servers(self._document, self._document.data.get("servers"))
        if {_without_scheme(each) for each in own} <= {_without_scheme(each) for each in general}:
            return confirmed[0]  # it only repeats what the document says
        return next((server for server in confirmed if server in own), None)


def _without_scheme(url: str) -> str:
    return url.partition("//")[2]


def read_source(spec: str, path: Path, *, secrets: Mapping[str, str] | None = None) -> OpenApiSource:
    """Read a selection file, or a document that has one beside it.

    Args:
        spec: how it is called in messages.
        path: ``shop.tools.yaml``, or ``shop.yaml`` with the former beside it.
        secrets: values for ``${NAME}``, before the environment.

    Raises:
        ToolLoadError: naming file and line; without a selection file it says what to write.
    """
    chosen = path if path.name.endswith((SUFFIX, ".tools.yml")) else path.with_name(path.stem + SUFFIX)
    if not chosen.is_file():
        document = read_document(spec, path)
        servers = document_servers(document, document.data.get("servers"))
        shown = ", ".join(clean_phrase(server, max_chars=200) for server in servers[:5]) or "its address"
        raise ToolLoadError(
            "tool_selection_missing",
            f"{spec}: write {chosen.name} beside it: document: {path.name}, and servers: [{shown}] "
            "for the address that requests may be sent to",
        )
    book = SecretBook(secrets)
    selection = read_selection(str(spec if chosen == path else chosen), chosen, book)
    where = chosen.parent / selection.document
    if chosen != path and where.resolve() != path.resolve():
        raise ToolLoadError("tool_source_invalid", f"{spec}: {chosen.name} is about {selection.document}")
    return OpenApiSource(spec, read_document(str(where), where), selection, book.given)
