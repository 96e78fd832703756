"""A server as a child process: started with next to no environment, read within bounds, ended with its group.

The SDK's own transport inherits more of the environment and keeps a line of any length; that is why this one
exists. The server is not trusted: what is no message is skipped and counted, and a line or a flood beyond the
bounds ends the connection. A process that leaves its group (``setsid``) cannot be found again.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from bascule.tools.mcp.config import ServerConfig
from bascule.tools.mcp.stderr_tail import StderrTail

MAX_MESSAGE_BYTES: Final = 16 << 20
"""Longest message of a server, and most of what it may write that is none."""

MAX_JUNK_LINES: Final = 1000
GRACE_S: Final = 2.0
"""Seconds a server has to end after its input is closed, and again after it was told to."""

_INHERITED: Final = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ")
"""Of our environment, what a program needs to run at all; none of it is a secret."""

_POLL_S: Final = 0.02

ReadStream = MemoryObjectReceiveStream[SessionMessage | Exception]
WriteStream = MemoryObjectSendStream[SessionMessage]


def make_environment(server: ServerConfig) -> dict[str, str]:
    """Return the whole environment of a server's process."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return inherited | dict(server.env)


@asynccontextmanager
async def open_stdio(
    server: ServerConfig, tail: StderrTail, lost: asyncio.Event
) -> AsyncGenerator[tuple[ReadStream, WriteStream]]:
    """Start a server and give the two streams of messages the SDK works with.

    Args:
        tail: takes what it writes beside messages.
        lost: set when it writes no more.

    Raises:
        OSError: it cannot be started.
    """
    assert server.command is not None
    process = await anyio.open_process(
        [server.command, *server.args],
        env=make_environment(server),
        cwd=server.cwd,
        start_new_session=True,
    )
    try:
        into_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks, into_session, from_server, to_server, from_session:
            tasks.start_soon(_read_messages, process, into_session, tail, lost)
            tasks.start_soon(_write_messages, process, from_session, into_session)
            tasks.start_soon(_read_stderr, process, tail)
            try:
                yield from_server, to_server
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _release(process)


async def _read_messages(
    process: Process,
    into_session: MemoryObjectSendStream[SessionMessage | Exception],
    tail: StderrTail,
    lost: asyncio.Event,
) -> None:
    try:
        await _forward_messages(process, into_session, tail)
    finally:
        lost.set()


async def _forward_messages(
    process: Process, into_session: MemoryObjectSendStream[SessionMessage | Exception], tail: StderrTail
) -> None:
    assert process.stdout is not None
    junk_lines = junk_bytes = 0
    buffer = bytearray()
    async with into_session:
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                data = await process.stdout.receive()
                *lines, rest = data.split(b"\n")
                for line in lines:
                    buffer += line
                    message = _parse(bytes(buffer))
                    if message is not None:
                        await into_session.send(message)
                    elif buffer.strip():
                        junk_lines, junk_bytes = junk_lines + 1, junk_bytes + len(buffer)
                        tail.add(b"[on stdout] " + bytes(buffer[:200]) + b"\n")
                    buffer.clear()
                buffer += rest
                if len(buffer) > MAX_MESSAGE_BYTES:
                    tail.add(
                        f"[a message of more than {MAX_MESSAGE_BYTES} bytes: connection ended]\n".encode()
                    )
                    return
                if junk_lines > MAX_JUNK_LINES or junk_bytes > MAX_MESSAGE_BYTES:
                    tail.add(b"[too much on stdout that is no message: connection ended]\n")
                    return


def _parse(line: bytes) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        return None


async def _write_messages(
    process: Process,
    from_session: MemoryObjectReceiveStream[SessionMessage],
    into_session: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    assert process.stdin is not None
    try:
        async for each in from_session:
            line = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            await process.stdin.send(line.encode() + b"\n")
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        await into_session.aclose()  # the session sees the connection end instead of waiting for ever


async def _read_stderr(process: Process, tail: StderrTail) -> None:
    stream: ByteReceiveStream | None = process.stderr
    assert stream is not None
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        while True:
            tail.add(await stream.receive())


async def _end(process: Process) -> None:
    """Close the server's input, then tell its group to end, then kill it; each step is bounded in time."""
    assert process.stdin is not None
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    if not await _ended_within(process, GRACE_S):
        _signal_group(process.pid, signal.SIGTERM)
        await _ended_within(process, GRACE_S)
    _signal_group(process.pid, signal.SIGKILL)  # whoever is left of the group, its leader or not
    await _ended_within(process, GRACE_S)


async def _ended_within(process: Process, seconds: float) -> bool:
    """Poll: waiting for the process would also wait for whoever inherited its pipes."""
    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110  # nothing else tells
            await anyio.sleep(_POLL_S)
    return process.returncode is not None


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def _release(process: Process) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await stream.aclose()
    # A process that left the group keeps the pipes open, and with them the transport; only this closes it.
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    close = getattr(transport, "close", None)
    if callable(close):
        with suppress(PermissionError):
            close()
