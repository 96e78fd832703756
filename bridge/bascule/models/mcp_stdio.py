"""JSON-RPC over two descriptors, a message a line, everything bounded: the stdio transport of the MCP server.

The peer is a program that somebody configured, but what it relays a model wrote: lines may be of any length,
no JSON, or thousands at once. A line that is no message is answered with an error of its own, whatever comes
next is read as if nothing had been. The SDK's own transport reads lines of any length into memory, which is
why this one exists; the protocol above it is the SDK's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from typing import Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

MAX_LINE_BYTES: Final = 4 << 20
"""Largest message; the longest script with all its escapes needs 1.5 MiB."""

MAX_IN_FLIGHT: Final = 256
"""Requests that are not answered yet; further ones are refused at once."""

_READ_BYTES: Final = 64 << 10
_SERVER_BUSY: Final = -32000

_Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
_Outgoing = MemoryObjectSendStream[SessionMessage]


class LineSplitter:
    """Cuts bytes into lines of at most `MAX_LINE_BYTES`; a longer one is dropped and given as None."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._dropping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return the lines that are complete with ``data``."""
        lines: list[bytes | None] = []
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._add(part)
            lines.append(None if self._dropping else bytes(self._rest))
            self._rest.clear()
            self._dropping = False
        self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        if self._dropping or len(self._rest) + len(part) > MAX_LINE_BYTES:
            self._dropping = True
            self._rest.clear()
        else:
            self._rest += part


class _Writer:
    """Writes lines on a thread of its own that nobody waits for: a peer that does not read cannot hold us."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._write_all, name="bascule-mcp-out", daemon=True).start()

    async def write(self, message: types.JSONRPCMessage) -> None:
        """Write one message.

        Raises:
            OSError: the peer is gone.
        """
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        written: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((line, written))
        await written

    def close(self) -> None:
        self._lines.put(None)

    def _write_all(self) -> None:
        while (item := self._lines.get()) is not None:
            line, written = item
            failure: OSError | None = None
            try:
                while line:
                    line = line[os.write(self._descriptor, line) :]
            except OSError as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(_settle, written, failure)


def _settle(future: asyncio.Future[None], failure: OSError | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(None)
    else:
        future.set_exception(failure)


class _Wire:
    """Both directions of one connection, and which requests are not answered yet."""

    def __init__(self, writer: _Writer) -> None:
        self._writer = writer
        self._open: set[str | int] = set()

    async def take(self, line: bytes | None) -> SessionMessage | None:
        """Return the message of a line, None when it was refused here.

        Raises:
            OSError: the peer is gone.
        """
        if line is None:
            await self._refuse(None, types.INVALID_REQUEST, f"a message has at most {MAX_LINE_BYTES} bytes")
            return None
        if not line.strip():
            return None
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            await self._refuse(None, types.PARSE_ERROR, "that is no JSON-RPC message")
            return None
        if isinstance(message, types.JSONRPCRequest):
            if message.id in self._open:
                await self._refuse(message.id, types.INVALID_REQUEST, "a request with this id is open")
                return None
            if len(self._open) >= MAX_IN_FLIGHT:
                await self._refuse(message.id, _SERVER_BUSY, f"{MAX_IN_FLIGHT} requests are open; wait")
                return None
            self._open.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._open.discard(_cancelled_id(message))  # it will never be answered
        return SessionMessage(message)

    async def send(self, message: types.JSONRPCMessage) -> None:
        """Write one message of ours."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
            self._open.discard(message.id)
        await self._writer.write(message)

    async def _refuse(self, request: str | int | None, code: int, text: str) -> None:
        error = types.ErrorData(code=code, message=text)
        await self._writer.write(types.JSONRPCError(jsonrpc="2.0", id=request, error=error))


def _cancelled_id(message: types.JSONRPCNotification) -> str | int:
    found = (message.params or {}).get("requestId")
    return found if isinstance(found, str | int) else ""


@contextlib.asynccontextmanager
async def open_lines(read_from: int, write_to: int) -> AsyncGenerator[tuple[_Incoming, _Outgoing]]:
    """Connect two descriptors with the streams that the SDK's server runs on, until the body ends.

    The incoming stream ends when ``read_from`` does, or when ``write_to`` cannot be written any more.
    """
    writer = _Writer(write_to)
    wire = _Wire(writer)
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)

    async def read_all() -> None:
        async with to_server:
            with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                async for line in _read_lines(read_from):
                    message = await wire.take(line)
                    if message is not None:
                        await to_server.send(message)

    async def write_all() -> None:
        async with from_server:
            with contextlib.suppress(OSError):
                async for message in from_server:
                    await wire.send(message.message)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_all)
        tasks.start_soon(write_all)
        try:
            yield incoming, outgoing
        finally:
            tasks.cancel_scope.cancel()
            writer.close()


async def _read_lines(descriptor: int) -> AsyncIterator[bytes | None]:
    """Give the lines of a descriptor, read on a thread that waits until each chunk is worked off."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    worked_off = threading.Semaphore(2)

    def read() -> None:
        data = b"-"
        while data:
            worked_off.acquire()
            try:
                data = os.read(descriptor, _READ_BYTES)
            except OSError:
                data = b""
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, data)
            except RuntimeError:  # the loop is closed
                return

    threading.Thread(target=read, name="bascule-mcp-in", daemon=True).start()
    splitter = LineSplitter()
    while data := await chunks.get():
        for line in splitter.feed(data):
            yield line
        worked_off.release()
    for line in splitter.feed(b"\n"):  # a last line without its end
        if line:
            yield line


@contextlib.contextmanager
def claim_descriptors() -> Generator[tuple[int, int]]:
    """Take standard input and output away from everything else in the process, and give them back.

    Meanwhile tools and programs they start read nothing, and what they print goes to standard error.
    """
    read_from, write_to = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield read_from, write_to
    finally:
        os.dup2(read_from, 0)
        os.dup2(write_to, 1)
        os.close(nothing)
