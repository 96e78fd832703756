"""The frames: every message that can cross the wall, as typed structs.

One run is one conversation, in lockstep::

    guest: Hello
    host:  Start
    guest: Act      the script ran until nothing was ready; here are its commands
    host:  Done     one or more completions, in the order they are to be delivered
    guest: Act ...  one activation for each delivery
    guest: Finish   nothing may follow

The guest may send Hello, Act and Finish; the host may send Start and Done. There is no message by which a
guest could approve, register or configure anything. Unknown fields are refused on both sides.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

PROTOCOL = 1
"""Version of this conversation. Host and guest refuse each other when it differs."""

MAX_SLEEP_S: Final = 366 * 86_400.0
"""Longest sleep a guest may ask for; a script's longer ones are asked for as this one."""


class Frame(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """Base of all structs on the wire."""


# ---------------------------------------------------------------- host to guest


class ToolStub(Frame, frozen=True, kw_only=True, tag="tool"):
    """What the guest is told of one tool: enough to bind arguments and to explain mistakes.

    Attributes:
        name: the callable's name in the script; dots make namespaces (``crm.find_contact``).
        parameters: JSON Schema of the arguments, an object whose ``properties`` are in positional order.
        returns: JSON Schema of the result, or None when the tool declares none.
        summary: one line for messages.
    """

    name: str
    parameters: dict[str, Any]
    returns: dict[str, Any] | None = None
    summary: str = ""


class GuestLimits(Frame, frozen=True, kw_only=True, tag="limits"):
    """Limits the guest enforces on itself, a little before the host would; all are finite.

    Attributes:
        wall_s: seconds the guest may be running (time blocked on the host does not count).
        cpu_s: seconds of CPU time.
        memory_bytes: address space the script may add to the idle guest.
        output_bytes: UTF-8 bytes of printed text kept in all; the script ends when it prints more.
        recursion: depth of nested script calls.
        calls: tool calls in all.
        frame_bytes: largest frame the guest may send.
    """

    wall_s: float
    cpu_s: float
    memory_bytes: int
    output_bytes: int
    recursion: int
    calls: int
    frame_bytes: int


class Start(Frame, frozen=True, kw_only=True, tag="start"):
    """The one order to run.

    Attributes:
        script: the model's text, untouched.
        tools: everything the script may call.
        seed: decides random, uuid4 and secrets; 0 <= seed < 2**63.
        now: host time as seconds since the epoch, UTC; the script's clock stands still until a delivery.
        session: the guest keeps the script's variables after its Finish and takes another Start.
        rehearsal: results are withheld; the guest watches for their use more closely than it need else.
    """

    script: str
    tools: tuple[ToolStub, ...]
    seed: int
    now: float
    limits: GuestLimits
    session: bool = False
    rehearsal: bool = False


class ToolFailure(Frame, frozen=True, kw_only=True, tag="failure"):
    """Why a call gave no value, in words made for the script.

    Attributes:
        kind: ``invalid_arguments | denied | timeout | unavailable | unknown_outcome | budget_exceeded |
            unknown_tool | failed``; decides the ToolError subclass raised in the script.
        exception: built-in exception name under which scripts may also catch it (``ValueError``), or None.
        raised: class name of what the tool raised, an ASCII identifier of at most 64 characters; the script's
            exception shows it, so that ``type(e).__name__`` says what the tool's author said. Or None.
        retryable: whether the same call may succeed later.
    """

    kind: str
    message: str
    suggestion: str | None = None
    retryable: bool = False
    exception: str | None = None
    raised: str | None = None


class Delivery(Frame, frozen=True, kw_only=True, tag="delivery"):
    """The completion of one call or sleep.

    Attributes:
        seq: the command it completes.
        now: the script's clock from here on, seconds since the epoch, UTC.
        value: the result as JSON; null for a sleep and when ``failure`` is set.
    """

    seq: int
    now: float
    value: msgspec.Raw
    failure: ToolFailure | None = None


class Done(Frame, frozen=True, kw_only=True, tag="done"):
    """Completions in delivery order, at least one. The guest runs until quiescent after each."""

    deliveries: tuple[Delivery, ...]


# ---------------------------------------------------------------- guest to host


class Hello(Frame, frozen=True, kw_only=True, tag="hello"):
    """First frame of a guest: which protocol it speaks and which image it runs from."""

    protocol: int
    image: str
    python: str


class Call(Frame, frozen=True, kw_only=True, tag="call"):
    """Call a tool. ``args`` maps parameter names to plain data; ``line`` is the script's line, from 1."""

    seq: int
    tool: str
    args: dict[str, Any]
    line: int


class Cancel(Frame, frozen=True, kw_only=True, tag="cancel"):
    """The script no longer waits for this call or sleep; the host decides what can still be stopped."""

    seq: int


class Sleep(Frame, frozen=True, kw_only=True, tag="sleep"):
    """Ask for a completion after ``seconds`` (a durable timer on the host).

    Attributes:
        seconds: 0 to MAX_SLEEP_S.
        line: the script's line that waits, from 1; None where no line does.
    """

    seq: int
    seconds: float
    line: int | None = None


class Output(Frame, frozen=True, kw_only=True, tag="output"):
    """Text the script printed since the last output command."""

    text: str


Command = Call | Cancel | Sleep | Output


class Activation(Frame, frozen=True, kw_only=True, tag="activation"):
    """What the script did in one stretch, commands in the order they were issued."""

    commands: tuple[Command, ...] = ()


class Act(Frame, frozen=True, kw_only=True, tag="act"):
    """The guest stopped running.

    Attributes:
        activations: the first Act after Start has one, every other one per delivery of the Done it answers.
        blocked: True: the guest waits for a Done. False: it only hands over output in the middle of a
            stretch and goes on running; such an Act holds one activation of outputs only and is not answered.
    """

    activations: tuple[Activation, ...]
    blocked: bool = True


class Note(Frame, frozen=True, kw_only=True, tag="note"):
    """Something the author of the script should know: a clean-up made, a coercion, a forgotten await."""

    code: str
    message: str
    line: int | None = None


class ScriptError(Frame, frozen=True, kw_only=True, tag="error"):
    """Why a script did not end well, in words made for the model that wrote it.

    Attributes:
        kind: stable code, for example ``syntax_error``, ``refused_import``, ``missing_await``,
            ``uncaught_exception``, ``wall_limit``.
        exception: class name of the uncaught exception, if there was one.
        line, column: position in the submitted text, both from 1.
        source: the line of the script with a caret line below it.
        suggestion: what to write instead.
    """

    kind: str
    message: str
    exception: str | None = None
    line: int | None = None
    column: int | None = None
    source: str | None = None
    suggestion: str | None = None


class GuestUsage(Frame, frozen=True, kw_only=True, tag="usage"):
    """What the guest measured of itself; evidence, not proof."""

    cpu_s: float
    peak_memory_bytes: int


class Finish(Frame, frozen=True, kw_only=True, tag="finish"):
    """The last frame of a guest.

    Attributes:
        status: ``ok``; ``failed`` (an exception left the script); ``refused`` (nothing ran); ``limit``.
        activations: what happened since the last Act, as there.
        value: the result as plain data, null when there is none.
        value_source: ``return | last_expression | last_assignment | none``.
        errors: empty when ok; preflight gives every finding, everything else exactly one.
    """

    status: Literal["ok", "failed", "refused", "limit"]
    activations: tuple[Activation, ...]
    value: Any = None
    value_source: Literal["return", "last_expression", "last_assignment", "none"] = "none"
    errors: tuple[ScriptError, ...] = ()
    notes: tuple[Note, ...] = ()
    usage: GuestUsage


GuestFrame = Hello | Act | Finish
HostFrame = Start | Done
