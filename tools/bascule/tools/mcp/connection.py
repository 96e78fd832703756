"""One server, connected as long as its source is open: started again when it dies, with growing pauses.

Everything of one connection lives in one task, because the SDK's scopes must end where they began; calls come
from other tasks. A call is never repeated here: what its loss means is for the bridge, by its effects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final, cast

import mcp_types as types
from mcp import Client, MCPError
from mcp.client import IncomingMessage
from pydantic import JsonValue, ValidationError
from tenacity import AsyncRetrying, retry_if_exception, wait_random_exponential

from bascule.tools.context import ToolContext
from bascule.tools.errors import ToolLoadError
from bascule.tools.imported.failures import ServiceFailed, lost_call
from bascule.tools.imported.secrets import spell_secrets
from bascule.tools.mcp.config import ServerConfig
from bascule.tools.mcp.stderr_tail import StderrTail
from bascule.tools.options import Effects
from bascule.tools.safe_text import clean_line

MAX_PAGES: Final = 100
MAX_TOOLS: Final = 5000
MAX_PAUSE_S: Final = 30.0
STABLE_S: Final = 30.0
"""A connection that lived this long was a good one: the pauses begin small again."""

WAIT_FOR_SERVER_S: Final = 10.0
"""Longest wait of a call for a server that is being started again."""

IDEMPOTENCY_KEY: Final = "idempotency-key"
"""Where in ``_meta`` the key stands."""

_CLOSED_TEXT: Final = "Connection closed"
_log = logging.getLogger("bascule.tools")

OnList = Callable[[list[types.Tool]], None]


class _Lost(Exception):
    """The connection ended."""


class Connection:
    """Keeps one server connected.

    Args:
        on_list: told its tools at every connection, and whenever it says that they changed.
    """

    def __init__(self, server: ServerConfig, on_list: OnList) -> None:
        self._server = server
        self._on_list = on_list
        self._tail = StderrTail()
        self._client: Client | None = None
        self._lost = asyncio.Event()
        self._changed = asyncio.Event()
        self._ready = asyncio.Event()
        self._first: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self.connects = 0

    async def start(self) -> None:
        """Connect and list the tools.

        Raises:
            ToolLoadError: ``mcp_server_failed``; with the last words of the server.
        """
        loop = asyncio.get_running_loop()
        self._first = loop.create_future()
        self._task = loop.create_task(self._keep_connected(), name=f"mcp {self._server.name}")
        try:
            await asyncio.shield(self._first)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the connection, and the server if it is a process of ours."""
        task, self._task = self._task, None
        self._ready.clear()
        if task is None:
            return
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await asyncio.shield(asyncio.gather(task, return_exceptions=True))

    async def call(
        self, tool: str, arguments: dict[str, JsonValue], context: ToolContext, *, effects: Effects
    ) -> types.CallToolResult:
        """Call a tool once.

        Raises:
            ServiceFailed: the server refused the call, or answered it with what is no result.
            ServiceUnreachable: the server is not there, or was lost; the call may be repeated.
            OutcomeUnknown: it was lost after a ``once`` call was sent.
        """
        name = f"the MCP server {self._server.name}"
        client = await self._wait_until_ready(name, effects)
        lost = self._lost

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            context.progress(progress, total, message or "")

        parameters = types.CallToolRequestParams(
            name=tool, arguments=arguments, _meta=_meta(context.idempotency_key)
        )
        try:
            return await client.session.send_request(
                types.CallToolRequest(params=parameters), types.CallToolResult, progress_callback=on_progress
            )
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED and error.message == _CLOSED_TEXT:
                lost.set()
                raise lost_call(name, "was lost before it answered", sent=True, effects=effects) from error
            if error.code == types.INVALID_REQUEST and "session" in error.message.lower():
                lost.set()  # a server reached over HTTP that was started anew knows no session of before
                raise lost_call(
                    name, "does not know this session any more", sent=False, effects=effects
                ) from error
            raise ServiceFailed(clean_line(error.message) or f"error {error.code}") from error
        except (ValidationError, RecursionError) as error:
            _log.warning("%s answered %r with what is no result", name, tool[:100])
            raise lost_call(name, "answered with what is no result", sent=True, effects=effects) from error
        except Exception as error:  # the SDK lets errors of its HTTP library through
            lost.set()
            raise lost_call(name, f"was lost ({type(error).__name__})", sent=True, effects=effects) from error

    async def _wait_until_ready(self, name: str, effects: Effects) -> Client:
        if self._lost.is_set():  # the task of the connection may not have seen it yet
            self._ready.clear()
        if not self._ready.is_set() and self._task is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ready.wait(), min(WAIT_FOR_SERVER_S, self._server.timeout_s / 2))
        client = self._client
        if client is None or not self._ready.is_set():
            again = "connected to" if self._server.command is None else "started"
            raise lost_call(name, f"is not running; it is being {again} again", sent=False, effects=effects)
        return client

    # ------------------------------------------------------------ the task of the connection

    async def _keep_connected(self) -> None:
        while True:
            again = AsyncRetrying(
                retry=retry_if_exception(_may_pass),
                wait=wait_random_exponential(multiplier=0.5, max=MAX_PAUSE_S),
            )
            try:
                await again(self._connect_once)
            except _Stop:
                return

    async def _connect_once(self) -> None:
        """Connect and stay so; return when a connection that held for long was lost."""
        assert self._first is not None
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._server.start_timeout_s):
                    client = await stack.enter_async_context(self._connected())
                    self._on_list(await _list_tools(client))
                self._client = client
                self.connects += 1
                self._ready.set()
                if not self._first.done():
                    self._first.set_result(None)
                await self._serve(client)
        except Exception as error:
            if not self._first.done():
                self._first.set_exception(self._failed(error))
                raise _Stop from error
            _log.warning("MCP server %s: %s", self._server.name, self._reason(error))
            if loop.time() - begun < STABLE_S:
                raise
        finally:
            self._ready.clear()
            self._client = None

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Client]:
        self._lost, self._changed = asyncio.Event(), asyncio.Event()
        client = Client(
            cast("Any", _open_transport(self._server, self._tail, self._lost)),
            cache=None,
            message_handler=self._on_message,
            client_info=types.Implementation(name="bascule", version="1"),
        )
        async with client:
            yield client

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed.set()

    async def _serve(self, client: Client) -> None:
        """Look at the tools again whenever the server says that they changed, until it is lost."""
        listener = asyncio.create_task(self._listen(client))
        try:
            while True:
                await _first_of(self._lost.wait(), self._changed.wait())
                if self._lost.is_set():
                    raise _Lost("the connection was lost")
                self._changed.clear()
                async with asyncio.timeout(self._server.start_timeout_s):
                    self._on_list(await _list_tools(client))
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)

    async def _listen(self, client: Client) -> None:
        """Ask to be told of changes, where the protocol of the server wants to be asked."""
        capability = client.server_capabilities.tools
        if capability is None or not capability.list_changed or client.session.initialize_result is not None:
            return
        with suppress(Exception):  # a server that does not tell is looked at again at the next connection
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._changed.set()

    def _failed(self, error: Exception) -> ToolLoadError:
        return ToolLoadError("mcp_server_failed", f"MCP server {self._server.name}: {self._reason(error)}")

    def _reason(self, error: Exception) -> str:
        """Say what went wrong, without what the SDK wraps around it, and what the server wrote last."""
        while isinstance(error, ExceptionGroup):
            inner = cast("ExceptionGroup[Exception]", error).exceptions
            error = inner[0]
        if isinstance(error, TimeoutError) and not str(error):
            said = f"it did not answer within {self._server.start_timeout_s:g} s"
        elif isinstance(error, FileNotFoundError) and self._server.command is not None:
            said = f"there is no program {clean_line(self._server.command)}, or no folder to start it in"
        else:
            said = clean_line(str(error)) or type(error).__name__
        tail = self._tail.shown()
        text = f"{said}; it wrote: {tail}" if tail else said
        for secret in spell_secrets(self._server.secrets.given):
            text = text.replace(secret, "[redacted]")
        return text


def _may_pass(error: BaseException) -> bool:
    """Tell whether to connect again; a cancellation means that the source is being closed."""
    return isinstance(error, Exception) and not isinstance(error, _Stop)


class _Stop(Exception):
    """Ends the task: the first connection failed, which whoever opens the source is told."""


@asynccontextmanager
async def _open_transport(server: ServerConfig, tail: StderrTail, lost: asyncio.Event) -> AsyncGenerator[Any]:
    if server.command is None:
        from bascule.tools.mcp.http import open_http

        async with open_http(server) as streams:
            yield streams
        return
    from bascule.tools.mcp.stdio import open_stdio

    async with open_stdio(server, tail, lost) as streams:
        yield streams


async def _list_tools(client: Client) -> list[types.Tool]:
    """Return all tools, through all pages.

    Raises:
        ToolLoadError: there are more than we take, or the pages have no end.
    """
    found: list[types.Tool] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        if len(found) > MAX_TOOLS:
            raise ToolLoadError("mcp_server_failed", f"it lists more than {MAX_TOOLS} tools")
        cursor = page.next_cursor
        if cursor is None:
            return found
        if cursor in seen:
            raise ToolLoadError("mcp_server_failed", "its list of tools goes round in a circle")
        seen.add(cursor)
    raise ToolLoadError("mcp_server_failed", f"its list of tools has more than {MAX_PAGES} pages")


def _meta(key: str) -> types.RequestParamsMeta | None:
    return cast("types.RequestParamsMeta", {IDEMPOTENCY_KEY: key}) if key else None


async def _first_of(*waits: Awaitable[Any]) -> None:
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
