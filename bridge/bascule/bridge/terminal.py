"""Asks the person at the terminal. One prompt at a time; only an explicit answer approves.

Everything shown goes through `show`, because the arguments and the script's line come from an untrusted
script. What was typed before the prompt appeared is thrown away, so that nobody approves what they have not
seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import sys
import termios
import threading
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Final, TextIO, cast
from weakref import WeakKeyDictionary

from bascule.bridge.approval import ApprovalRequest, Decision
from bascule.bridge.approval_card import DEFAULT_GRANTED_CALLS, Grade
from bascule.bridge.cards import describe_batch, describe_request
from bascule.bridge.display import show, show_json
from bascule.bridge.result import JsonValue

_MAX_LINE_BYTES: Final = 4096
_HELP: Final = {
    "approve": "[y]es",
    "reject": "[n]o, n REASON",
    "edit": "e PATH=JSON ...",
    "respond": "r JSON",
    "terminate": "[t]erminate the run",
}
_GRANTS: Final = {
    "args_in_run": "ya same arguments",
    "tool_in_run": "yt this tool",
    "script": "ys the script",
}
_GRANT_WORDS: Final[dict[str, Grade]] = {"ya": "args_in_run", "yt": "tool_in_run", "ys": "script"}

READ_S: Final = 0.5
"""Time between a card and its prompt. What is typed until then was meant for what stood there before."""

_POLL_S: Final = 0.05

screen: Final = threading.Lock()
"""Held from a card to its answer: whoever writes to the terminal waits, so that nothing pushes it away."""

_one_at_a_time: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class TerminalApprover:
    """Asks on standard error, reads from standard input. Enter alone asks again; the end of input denies.

    Without a terminal on standard input it denies and says so.
    """

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """Ask about one call."""
        return (await self.ask_batch([request]))[0]

    async def ask_batch(self, requests: Sequence[ApprovalRequest]) -> Sequence[Decision]:
        """Ask about calls that were issued together: all in full, then one answer for all or one for each."""
        if not sys.stdin.isatty():
            shown = ", ".join(show(request.tool) for request in requests)
            print(
                f"bascule: no terminal to ask about {shown}; denied (with --store FILE the run would wait)",
                file=sys.stderr,
            )
            no = Decision(verdict="reject", reason="there is no terminal to ask", by="bascule")
            return [no for _ in requests]
        lock = _one_at_a_time.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock, _screen_held():  # the second for other event loops of this process
            read, write = sys.stdin.fileno(), sys.stderr
            if len(requests) == 1:
                return [await converse(requests[0], read=read, write=write)]
            return await converse_about_all(requests, read=read, write=write)


@contextlib.asynccontextmanager
async def _screen_held() -> AsyncGenerator[None]:
    while not screen.acquire(blocking=False):  # noqa: ASYNC110  # the holder may be in another thread
        await asyncio.sleep(_POLL_S)
    try:
        yield
    finally:
        screen.release()


ask_in_terminal: Final = TerminalApprover()
"""The approver that asks the person at the terminal."""


async def converse_about_all(
    requests: Sequence[ApprovalRequest], *, read: int, write: TextIO
) -> list[Decision]:
    """Hold one conversation about calls that were issued together."""
    write.write(describe_batch(requests))
    await _let_it_be_read(write)
    _forget_what_was_typed(read)
    while True:
        write.write(f"Approve these {len(requests)} calls? [a]ll, [n]one, or [o]ne by one: ")
        write.flush()
        line = await read_line(read)
        if not line:
            write.write("\nend of input: denied\n")
            return [_reject("the terminal was closed") for _ in requests]
        word, _, reason = line.strip().partition(" ")
        match word.lower():
            case "a" | "all" if not reason and _is_whole(line):
                return [_approve() for _ in requests]
            case "n" | "none":
                return [_reject(reason.strip()) for _ in requests]
            case "o" | "one" if not reason:
                return [await converse(request, read=read, write=write) for request in requests]
            case _:
                write.write("Please answer a, n or o.\n")


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
    await _let_it_be_read(write)
    _forget_what_was_typed(read)
    offers = [_HELP[move] for move in request.may] + [
        _GRANTS[rung] for rung in request.grantable if rung != "once"
    ]
    while True:
        write.write(f"Approve this call? {', '.join(offers)}, [v]iew everything: ")
        write.flush()
        line = await read_line(read)
        if not line:
            write.write("\nend of input: denied\n")
            return _reject("the terminal was closed")
        word, _, rest = line.strip().partition(" ")
        word, rest = word.lower(), rest.strip()
        if word in ("v", "view") and not rest:
            write.write(f"  arguments  {show_json(request.spelled, max_chars=len(request.spelled))}\n")
            continue
        try:
            if not _is_whole(line) and word not in ("n", "no"):
                raise ValueError("Please end the line with Enter.")
            decision = _read_answer(request, word, rest)
        except ValueError as error:
            write.write(f"{error}\n")
            continue
        if decision.grant != "once" and not await _confirm_grant(request, decision, read=read, write=write):
            continue
        return decision


def _read_answer(request: ApprovalRequest, word: str, rest: str) -> Decision:
    if word in ("y", "yes") and not rest:
        return _approve()
    if word in ("n", "no"):
        return _reject(rest)
    if word in _GRANT_WORDS and _GRANT_WORDS[word] in request.grantable and (not rest or rest.isdigit()):
        count = int(rest) if rest else DEFAULT_GRANTED_CALLS
        return replace(_approve(), grant=_GRANT_WORDS[word], grant_count=count)
    if word in ("t", "terminate") and "terminate" in request.may:
        return Decision(verdict="terminate", reason=rest, by=whoami())
    if word in ("e", "edit") and "edit" in request.may:
        return Decision(verdict="edit", by=whoami(), arguments=edit_arguments(request.arguments, rest))
    if word in ("r", "respond") and "respond" in request.may:
        return Decision(verdict="respond", by=whoami(), response=cast("JsonValue", json.loads(rest)))
    raise ValueError("Please give one of these answers; y alone approves.")


def edit_arguments(canonical: bytes, text: str) -> dict[str, JsonValue]:
    """Return arguments with one value replaced: ``PATH=JSON``, for example ``address.city="Bonn"``.

    Raises:
        ValueError: the text is no edit.
    """
    path, equals, value = text.partition("=")
    if not equals:
        raise ValueError('write PATH=JSON, for example subject="Hello"')
    arguments = cast("dict[str, JsonValue]", json.loads(canonical))
    holder: dict[str, JsonValue] = arguments
    *way, last = path.strip().split(".")
    for name in way:
        found = holder.get(name)
        if not isinstance(found, dict):
            raise ValueError(f"there is nothing at {path.strip()}")
        holder = found
    try:
        holder[last] = cast("JsonValue", json.loads(value))
    except ValueError as error:
        quoted = f"{path.strip()}={json.dumps(value, ensure_ascii=False)}"
        raise ValueError(
            f"{show(value, max_chars=100)} is not JSON; text needs quotation marks:"
            f" {show(quoted, max_chars=200)}"
        ) from error
    return arguments


async def _confirm_grant(request: ApprovalRequest, decision: Decision, *, read: int, write: TextIO) -> bool:
    """Show the exact rule that would be saved, and ask once more."""
    what = f"the same call of {show(request.tool)} with exactly these arguments"
    if decision.grant == "tool_in_run":
        what = f"any call of {show(request.tool)}, whatever its arguments"
    elif decision.grant == "script":
        what = f"any call of {show(', '.join(request.tools))} by this script, whatever its arguments"
    write.write(f"  This also approves {what}, at most {decision.grant_count} more in this run.\n  [y]es? ")
    write.flush()
    return (await read_line(read)).strip().lower() in ("y", "yes")


def whoami() -> str:
    """Return the login name of whoever runs this process."""
    # Not getpass.getuser, which believes the environment: one person would be as many as they like.
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def _approve() -> Decision:
    return Decision(verdict="approve", by=whoami())


def _reject(reason: str) -> Decision:
    return Decision(verdict="reject", reason=reason, by=whoami())


async def _let_it_be_read(write: TextIO) -> None:
    write.flush()
    await asyncio.sleep(READ_S)


def _is_whole(line: str) -> bool:
    return line.endswith(("\n", "\r"))


def _forget_what_was_typed(descriptor: int) -> None:
    with contextlib.suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)


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
