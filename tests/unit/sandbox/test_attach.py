"""AttachProtocol: takes the engine's multiplexed stream apart, at any cut."""

from __future__ import annotations

import asyncio
import socket

import pytest

from bascule.sandbox.attach import AttachProtocol
from bascule.sandbox.errors import SandboxClosed


def piece(channel: int, data: bytes) -> bytes:
    return bytes([channel, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


@pytest.mark.anyio
@pytest.mark.parametrize("cut", [1, 3, 8, 9, 1000])
async def test_stdout_becomes_payloads_and_stderr_the_tail_at_any_cut(cut: int) -> None:
    attached = AttachProtocol(frame_bytes=100)
    # One frame spread over three pieces, with stderr in between.
    data = piece(1, b"\0\0") + piece(2, b"warn") + piece(1, b"\0\5he") + piece(2, b"ing") + piece(1, b"llo")
    for start in range(0, len(data), cut):
        attached.data_received(data[start : start + cut])
    assert await attached.stream.receive() == b"hello"
    assert attached.stream.stderr_tail == "warning"


@pytest.mark.anyio
async def test_an_empty_piece_changes_nothing() -> None:
    attached = AttachProtocol(frame_bytes=100)
    attached.data_received(piece(1, b"") + piece(1, b"\0\0\0\1x"))
    assert await attached.stream.receive() == b"x"


@pytest.mark.anyio
async def test_a_lost_connection_ends_the_stream_and_refuses_to_send() -> None:
    attached = AttachProtocol(frame_bytes=100)
    attached.connection_lost(None)
    with pytest.raises(SandboxClosed):
        await attached.stream.receive()
    with pytest.raises(SandboxClosed):
        await attached.send(b"frame")


@pytest.mark.anyio
async def test_sending_waits_while_the_guest_does_not_read() -> None:
    attached = AttachProtocol(frame_bytes=100)
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    far.setblocking(False)
    transport, _ = await loop.create_unix_connection(lambda: attached, sock=near)
    sending = asyncio.ensure_future(attached.send(bytes(4 << 20)))
    await asyncio.sleep(0)
    assert not sending.done()
    received = 0
    while received < 4 << 20:
        received += len(await loop.sock_recv(far, 1 << 20))
    await sending
    transport.close()
    far.close()
