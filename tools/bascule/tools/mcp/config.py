"""The file that names MCP servers, in the common ``mcpServers`` format, and what we add to it.

The operator writes it and is trusted; mistakes are reported with their place. Unknown keys are refused where
they could be a misspelt restriction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bascule.tools.errors import ToolLoadError
from bascule.tools.imported.globs import matches_any
from bascule.tools.imported.secrets import SecretBook
from bascule.tools.options import DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S, Effects
from bascule.tools.schema import is_object

MAX_CONFIG_BYTES: Final = 1 << 20
MAX_SERVERS: Final = 100

OTHERS: Final = frozenset({"autoApprove", "alwaysAllow", "autoStart", "timeout", "icon"})
"""Keys of other clients that are passed over: none of them could narrow what may be called here."""

_Patterns = list[Annotated[str, Field(min_length=1, max_length=200)]]


class ServerModel(BaseModel):
    """An entry as it stands in the file; docs/mcp-servers.md explains every key."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    transport: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    disabled: bool = False
    description: str | None = None
    namespace: str | None = None
    timeout_s: Annotated[float, Field(gt=0, le=MAX_TIMEOUT_S)] = DEFAULT_TIMEOUT_S
    start_timeout_s: Annotated[float, Field(gt=0, le=600)] = 60.0
    effects: dict[str, Effects] = {}
    labels: list[str] = []
    allow: _Patterns | None = None
    deny: _Patterns = []
    hidden_arguments: dict[str, Any] = {}
    parse_json: _Patterns = []
    unsafe_trust_definitions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """One server.

    Attributes:
        name: its key in the file.
        command, args, env, cwd: how it is started; command is None for one that is reached by ``url``.
        namespace: of its tools, None to make one of the name.
        timeout_s: seconds one call may take.
        start_timeout_s: seconds until it has answered and listed its tools.
        effects: by pattern of its tools' own names; the longest pattern that matches decides.
        labels: of every tool.
        allow, deny: patterns of its tools' own names; a tool must be allowed and not denied.
        hidden_arguments: arguments sent with every call to a tool that takes them, and hidden from scripts.
        parse_json: patterns of tools whose text is JSON, to be given to scripts as data.
        unsafe_trust_definitions: whether tools are offered without anybody having confirmed them.
        secrets: where its secret values come from.
    """

    name: str
    command: str | None
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    url: str | None
    headers: Mapping[str, str]
    namespace: str | None
    timeout_s: float
    start_timeout_s: float
    effects: Mapping[str, Effects]
    labels: frozenset[str]
    allow: tuple[str, ...] | None
    deny: tuple[str, ...]
    hidden_arguments: Mapping[str, Any]
    parse_json: tuple[str, ...]
    unsafe_trust_definitions: bool
    secrets: SecretBook

    def offers(self, tool: str) -> bool:
        """Tell whether the operator wants a tool of this name at all."""
        wanted = self.allow is None or matches_any(tool, self.allow)
        return wanted and not matches_any(tool, self.deny)

    def effects_of(self, tool: str) -> Effects | None:
        """Return the effects the file gives a tool, None when it says nothing."""
        fitting = [pattern for pattern in self.effects if matches_any(tool, (pattern,))]
        return self.effects[max(fitting, key=lambda each: (each == tool, len(each)))] if fitting else None


def read_config(
    spec: str, text: str, *, secrets: Mapping[str, str] | None = None, folder: Path | None = None
) -> list[ServerConfig]:
    """Return the servers a configuration names, in order, without the disabled ones.

    Args:
        spec: how the file is called in messages.
        secrets: values for ``${NAME}``, before the environment.
        folder: where relative ``cwd`` start; None for the process's own.

    Raises:
        ToolLoadError: naming file, line or server, and what is wrong.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_CONFIG_BYTES:
        raise ToolLoadError("tool_source_invalid", f"{spec}: larger than {MAX_CONFIG_BYTES} bytes")
    try:
        data: object = json.loads(text, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        raise ToolLoadError(
            "tool_source_invalid",
            f"{spec}:{error.lineno}: not valid JSON: {error.msg} (column {error.colno})",
        ) from error
    except (ValueError, RecursionError) as error:
        raise ToolLoadError("tool_source_invalid", f"{spec}: {error}") from error
    servers = data.get("mcpServers", data.get("servers")) if is_object(data) else None
    if not is_object(servers) or not servers:
        raise ToolLoadError("tool_source_invalid", f"{spec}: it has no mcpServers; write one entry a server")
    if len(servers) > MAX_SERVERS:
        raise ToolLoadError("tool_source_invalid", f"{spec}: more than {MAX_SERVERS} servers")
    book = SecretBook(secrets)
    found = [_read_server(spec, text, name, entry, book, folder) for name, entry in servers.items()]
    return [server for server in found if server is not None]


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r:.60} is there twice")
        found[key] = value
    return found


def _read_server(
    spec: str, text: str, name: str, entry: object, book: SecretBook, folder: Path | None
) -> ServerConfig | None:
    where = f"{_place(spec, text, name)}: server {name!r:.60}"
    if is_object(entry):
        entry = {key: value for key, value in entry.items() if key not in OTHERS}
    try:
        model = ServerModel.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise ToolLoadError("tool_source_invalid", f"{where}: {path}: {first['msg']}") from None
    if model.disabled:
        return None
    if (model.command is None) == (model.url is None):
        raise ToolLoadError("tool_source_invalid", f"{where}: give either command or url")
    kind = model.type or model.transport
    if kind is not None and (kind == "stdio") != (model.command is not None):
        raise ToolLoadError("tool_source_invalid", f"{where}: type {kind} does not go with what is given")
    if model.url is not None and not re.match(r"https?://[^\s/]", model.url):
        raise ToolLoadError("tool_source_invalid", f"{where}: url must begin with http:// or https://")
    for key, value in (*model.env.items(), *model.headers.items()):
        book.note_literal(key, value)
    cwd = None if model.cwd is None else book.expand(model.cwd, where=where)
    if folder is not None:
        cwd = None if cwd is None else str(folder / cwd)
    return ServerConfig(
        name=name,
        command=None if model.command is None else book.expand(model.command, where=where),
        args=tuple(book.expand(each, where=where) for each in model.args),
        env={key: book.expand(value, where=where) for key, value in model.env.items()},
        cwd=cwd,
        url=None if model.url is None else book.expand(model.url, where=where),
        headers={key: book.expand(value, where=where) for key, value in model.headers.items()},
        namespace=model.namespace,
        timeout_s=model.timeout_s,
        start_timeout_s=model.start_timeout_s,
        effects=model.effects,
        labels=frozenset(model.labels),
        allow=None if model.allow is None else tuple(model.allow),
        deny=tuple(model.deny),
        hidden_arguments=model.hidden_arguments,
        parse_json=tuple(model.parse_json),
        unsafe_trust_definitions=model.unsafe_trust_definitions,
        secrets=book,
    )


def _place(spec: str, text: str, name: str) -> str:
    """Return file and line of a server's entry."""
    found = re.search(rf"{re.escape(json.dumps(name))}\s*:", text)
    return f"{spec}:{text.count(chr(10), 0, found.start()) + 1}" if found else spec
