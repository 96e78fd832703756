"""Asks the person at the terminal. One prompt at a time; only an explicit ``y`` approves.

Everything shown goes through `show`, because the arguments and the script's line come from an untrusted
script. What was typed before the prompt appeared is thrown away, so that nobody approves what they have not
seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
import threading
from collections.abc import AsyncGenerator
from typing import Final, TextIO
from weakref import WeakKeyDictionary

from bascule.bridge.approval import ApprovalRequest, Decision
from bascule.bridge.display import show, show_json

_ARGUMENT_CHARS: Final = 4000
_PROMPT: Final = "Approve this call? [y]es, [n]o, n REASON, [v]iew everything: "
_BY: Final = "terminal"

_MAX_LINE_BYTES: Final = 4096

READ_S: Final = 0.5
"""Time between a card and its prompt. What is typed until then was meant for what stood there before."""

_POLL_S: Final = 0.05

screen: Final = threading.Lock()
"""Held from a card to its answer: whoever writes to the terminal waits, so that nothing pushes it away."""

_one_at_a_time: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def ask_in_terminal(request: ApprovalRequest) -> Decision:
    """Ask on standard error, read from standard input. Enter alone asks again; the end of input denies.

    Without a terminal on standard input it denies and says so.
    """
    if not sys.stdin.isatty():
        print(f"bascule: no terminal to ask about {show(request.tool)}; denied", file=sys.stderr)
        return Decision(verdict="reject", reason="there is no terminal to ask", by=_BY)
    lock = _one_at_a_time.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    async with lock, _screen_held():  # the second for other event loops of this process
        return await converse(request, read=sys.stdin.fileno(), write=sys.stderr)


@contextlib.asynccontextmanager
async def _screen_held() -> AsyncGenerator[None]:
    while not screen.acquire(blocking=False):  # noqa: ASYNC110  # the holder may be in another thread
        await asyncio.sleep(_POLL_S)
    try:
        yield
    finally:
        screen.release()


async def converse(request: ApprovalRequest, *, read: int, write: TextIO) -> Decision:
    """Hold one conversation about one request, over an input descriptor and an output stream."""
    try:
        return await _converse(request, read=read, write=write)
    except asyncio.CancelledError:
        write.write("\nwithdrawn: nobody waits for this call any more\n")
        write.flush()
        raise


async def _converse(request: ApprovalRequest, *, read: int, write: TextIO) -> Decision:
    write.write(describe_request(request))
    write.flush()
    await asyncio.sleep(READ_S)
    with contextlib.suppress(termios.error):
        termios.tcflush(read, termios.TCIFLUSH)
    while True:
        write.write(_PROMPT)
        write.flush()
        line = await read_line(read)
        if not line:
            write.write("\nend of input: denied\n")
            return Decision(verdict="reject", reason="the terminal was closed", by=_BY)
        word, _, reason = line.strip().partition(" ")
        match word.lower():
            case "y" | "yes" if not reason and line.endswith(("\n", "\r")):
                return Decision(verdict="approve", by=_BY)
            case "n" | "no":
                return Decision(verdict="reject", reason=reason.strip(), by=_BY)
            case "v" | "view" if not reason:
                write.write(
                    f"  arguments  {show_json(request.arguments, max_chars=len(request.arguments))}\n"
                )
            case _:
                write.write("Please answer y or n.\n")


def describe_request(request: ApprovalRequest) -> str:
    """Return the card: what would run, where it comes from, which rule asks; safe to show."""
    rows = [
        ("call", f"{request.seq} of {request.run_id}"),
        ("tool", f"{show(request.tool)} ({request.effects})"),
        ("about", show(request.description.partition("\n")[0], max_chars=200)),
        ("arguments", show_json(request.arguments, max_chars=_ARGUMENT_CHARS)),
        ("script", f"line {request.line}: {show(request.source, max_chars=200)}"),
        ("asked by", show(", ".join(request.why))),
        ("digest", request.digest[:16]),
    ]
    if request.duplicate:
        rows.append(("beware", "the same call with the same arguments was already made in this run"))
    return "\n" + "".join(f"  {name:<10} {text}\n" for name, text in rows)


async def read_line(descriptor: int) -> str:
    """Return what one read gives, on a terminal a line; an empty text at the end of input.

    Without a thread: one that waits in a read could not be ended when the run is cancelled.
    """
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, _MAX_LINE_BYTES).decode("utf-8", "replace")


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
