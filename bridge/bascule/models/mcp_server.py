"""The tool surface as an MCP server, over standard input and output or mounted into an HTTP application.

Decides what an MCP host is told and how much it may ask for at once. Trusts the operator who configured it;
never the host's messages, which relay what a model wrote. The server sends no requests: it never elicits,
never samples. Whatever a host answers or claims, a call that policy asks about waits for a person, who
decides in the console, on the command line or through the API; the host gets the run's handle meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from bascule.bridge.executor import new_run_id
from bascule.bridge.result import JsonValue
from bascule.models.definitions import SurfaceTool
from bascule.models.names import NameMap, wire_name
from bascule.models.prompt import build_prompt
from bascule.models.rendering import SurfaceResult, refuse
from bascule.models.surface import ToolSurface
from bascule.wire import BasculeError

try:
    import anyio
    import mcp_types as types
    from mcp.server.lowlevel.server import Server
    from mcp.server.transport_security import TransportSecuritySettings
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "the MCP server needs the mcp package: pip install 'bascule[mcp]'", name=error.name
    ) from error

from bascule.models.mcp_progress import relay_progress
from bascule.models.mcp_schemas import describe_wait, output_schema

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from starlette.applications import Starlette
    from starlette.requests import Request

CALLS_AT_ONCE: Final = 32
"""Calls that one server works on at once; further ones are refused, with words that say so."""

GRACE_S: Final = 10.0
"""Seconds that a cancelled run has for the effects it has dispatched; after that it can only be resumed."""

MAX_NAMES_CHARS: Final = 600
"""Characters of tool names in the description of ``run_script``, for hosts that show no instructions."""

TOKENS_META: Final = "bascule/tokens"
"""Key of the run's token account in the ``_meta`` of an answer; see `RunTokens`."""

_RUNS: Final = ("run_script", "resume_run")
_log = logging.getLogger("bascule.models")

SurfaceOf = Callable[["Request | None"], ToolSurface]
"""Chooses the surface for a request: by whoever the HTTP application has authenticated, None on stdio. Two
users must never be given the same surface, or they see each other's runs."""


def make_server(surface_of: SurfaceOf, *, console_url: str | None = None) -> Server[Any]:
    """Return the server, to be run over any transport.

    Args:
        surface_of: the surface of a request. Labels of what a surface has read stay with it, so one that
            serves many conversations is as careful as its most exposed one.
        console_url: where people decide; given to the host with every run that waits for them.
    """
    desk = _Desk(surface_of, None if console_url is None else console_url.rstrip("/"))
    try:
        instructions = build_prompt(surface_of(None)).text
    except LookupError:  # nobody is served without a request
        instructions = ""
    return Server(
        "bascule",
        version=version("bascule"),
        title="Bascule",
        instructions=instructions or None,
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
    )


def build_app(
    surface_of: SurfaceOf, *, console_url: str | None = None, hosts: tuple[str, ...] = (), path: str = "/mcp"
) -> Starlette:
    """Return the server as an ASGI application, each request for itself: no sessions, nothing to hijack.

    Whoever mounts it authenticates before, and enters ``app.router.lifespan_context(app)`` (a mounted
    application's own lifespan is not run by its parent).

    Args:
        hosts: names the server is reached under, as in ``Host`` headers, beside those of this machine: a
            request for any other is refused, so that no web page can reach it by a name of its own.
        path: where in the application it answers.
    """
    names = ("127.0.0.1", "localhost", "[::1]")
    allowed = [*hosts, *names, *(f"{name}:*" for name in names)]
    return make_server(surface_of, console_url=console_url).streamable_http_app(
        streamable_http_path=path,
        stateless_http=True,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=allowed,
            allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in allowed],
        ),
    )


async def serve_descriptors(server: Server[Any], read_from: int, write_to: int) -> None:
    """Serve one host over two descriptors, a message a line, until it closes its side.

    Calls that are under way then are cancelled, their sandboxes removed; dispatched effects end first.
    """
    from bascule.models.mcp_stdio import open_lines

    async with open_lines(read_from, write_to) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Desk:
    """Answers the two questions of MCP that concern tools."""

    def __init__(self, surface_of: SurfaceOf, console_url: str | None) -> None:
        self._surface_of = surface_of
        self._console_url = console_url
        self._free = CALLS_AT_ONCE

    async def list_tools(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        surface = self._surface_of(ctx.request)
        return types.ListToolsResult(tools=[_describe(surface, each) for each in surface.tools])

    async def call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if self._free <= 0:
            return _answer(refuse(f"busy: at most {CALLS_AT_ONCE} calls at once; wait for one", code="busy"))
        self._free -= 1
        try:
            surface = self._surface_of(ctx.request)
            return _answer(self._complete(surface, await _call(surface, ctx, params)))
        except BasculeError as error:
            _log.error("%s cannot be called: %s", params.name[:100], error)
            return _answer(refuse(error.for_script(), code=error.code))
        except Exception:  # a bug of ours: the host is told nothing of it, the operator everything
            _log.exception("calling %s failed", params.name[:100])
            return _answer(refuse("the server failed; its log says why", code="internal_error"))
        finally:
            self._free += 1

    def _complete(self, surface: ToolSurface, result: SurfaceResult) -> SurfaceResult:
        """Add to a run that is not over how it stands and where people decide."""
        if result.status != "suspended" or result.run_id is None:
            return result
        described = describe_wait(surface.executor.store, result.run_id, self._console_url)
        data = {**result.data, **described} if isinstance(result.data, dict) else described
        text = result.text
        if described["status"] == "pending_approval":
            where = "" if self._console_url is None else f" People decide at {described['url']}."
            text = f"{text}\nIt waits for approval; only people can give it, nothing you send can.{where}"
        return replace(result, text=text, data=data, result=None)


async def _call(
    surface: ToolSurface, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> SurfaceResult:
    arguments: dict[str, Any] = params.arguments or {}
    name = NameMap(each.name for each in surface.tools).from_wire(params.name)
    own = new_run_id()
    watched = arguments.get("run_id") if params.name == "resume_run" else own

    async def report(steps: float, text: str) -> None:
        await ctx.session.report_progress(steps, None, text)

    async with relay_progress(surface.executor, watched if isinstance(watched, str) else None, report):
        # In a task of its own: the cancellation of a request comes again at every await, and would cut short
        # what a run does to end well.
        calling = asyncio.create_task(surface.call(name, arguments, run_id=own))
        try:
            return await asyncio.shield(calling)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await _end(surface, own, calling)
            raise


async def _end(surface: ToolSurface, run_id: str, calling: asyncio.Task[SurfaceResult]) -> None:
    """End a call nobody waits for any more: its run is cancelled; one that it took up stays resumable."""
    if await surface.executor.cancel(run_id):
        await asyncio.wait({calling}, timeout=GRACE_S)
    calling.cancel()
    await asyncio.wait({calling})
    if not calling.cancelled() and (error := calling.exception()) is not None:
        _log.error("a cancelled call ended in an error: %s", error)


def _answer(result: SurfaceResult) -> types.CallToolResult:
    data: JsonValue = result.data if isinstance(result.data, dict) else {"value": result.data}
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=result.text)],
        structured_content=data,
        is_error=result.is_error,
        # Not in the structured content: hosts give that to the model.
        _meta=None if result.tokens is None else {TOKENS_META: result.tokens.to_data()},
    )


def _describe(surface: ToolSurface, tool: SurfaceTool) -> types.Tool:
    registered = None if tool.tool is None else surface.executor.registry.get(tool.tool)
    effects = "read" if registered is None else registered.effects
    return types.Tool(
        name=wire_name(tool.name),
        description=_describe_scripts(surface, tool) if tool.name == "run_script" else tool.description,
        input_schema=tool.parameters,
        output_schema=output_schema(tool),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.name not in _RUNS and effects == "read",
            idempotent_hint=tool.name != "run_script" and effects != "once",
        ),
    )


def _describe_scripts(surface: ToolSurface, tool: SurfaceTool) -> str:
    names = ", ".join(each.name for each in surface.scriptable)
    if len(names) > MAX_NAMES_CHARS:
        names = f"{names[:MAX_NAMES_CHARS].rpartition(', ')[0]} and more, which search_tools finds"
    return f"{tool.description} Scripts can call: {names}. describe_tool tells their parameters."
