"""Runs a script in this process against Python functions as tools: the host's half of the conversation.

Every frame goes through the real codec. Time is virtual: a sleep is over once nothing else is left to answer.
No limit of the process is applied; limits the guest counts itself (output, calls, results) end the run.
"""

from __future__ import annotations

import inspect
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from bascule.guest.ending import RunEnded
from bascule.guest.position import SCRIPT_FILE
from bascule.guest.run import Run
from bascule.guest.script import run_script
from bascule.wire import (
    Act,
    Call,
    Cancel,
    Delivery,
    Done,
    Finish,
    GuestLimits,
    Note,
    Output,
    ScriptError,
    Sleep,
    Start,
    ToolFailure,
    ToolStub,
    decode_guest_frame,
    decode_host_frame,
    encode_frame,
)
from bascule.wire.frames import Command

NOW = 1_750_000_000.0
"""Host time at the start, 2025-06-15T15:06:40Z."""

Order = Literal["fifo", "lifo", "random"]
Tools = Mapping[str, Callable[..., Any]]

_HEADER_BYTES = 4
_ended: list[Run] = []
_FRAME_BYTES = 1 << 20


@dataclass(kw_only=True)
class Outcome:
    """What came of a run.

    Attributes:
        output: everything printed, in order.
        calls: tool and arguments of each call, in issue order.
        cancelled: sequence numbers that the script gave up.
        acts: the frames between Start and Finish.
    """

    finish: Finish
    output: str
    calls: list[tuple[str, dict[str, Any]]]
    cancelled: list[int]
    acts: list[Act]

    @property
    def status(self) -> str:
        """How the run ended."""
        return self.finish.status

    @property
    def value(self) -> Any:
        """The result."""
        return self.finish.value

    @property
    def value_source(self) -> str:
        """Which rule chose the result."""
        return self.finish.value_source

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the author should know."""
        return self.finish.notes

    @property
    def errors(self) -> tuple[ScriptError, ...]:
        """Everything that was wrong."""
        return self.finish.errors

    @property
    def error(self) -> ScriptError:
        """The only error."""
        (error,) = self.finish.errors
        return error


@dataclass(kw_only=True)
class MemoryHost:
    """Plays the host: executes calls in issue order, completes them in the order asked for.

    Args:
        tools: functions by tool name; exceptions become failures under their own name.
        order: which of several open calls is completed first.
        batch: complete everything that is open in one frame.
    """

    tools: Tools
    order: Order = "fifo"
    batch: bool = False
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    now: float = NOW
    commands: list[Command] = field(default_factory=list[Command])
    acts: list[Act] = field(default_factory=list[Act])
    _open: dict[int, Delivery] = field(default_factory=dict[int, Delivery])
    _timers: dict[int, float] = field(default_factory=dict[int, float])
    _last_seq: int = 0

    def exchange(self, act: Act) -> Done:
        """Take an Act; answer with what is completed next."""
        decoded = _through_the_wire(act)
        assert isinstance(decoded, Act)
        assert decoded.blocked
        self.acts.append(decoded)
        for activation in decoded.activations:
            for command in activation.commands:
                self._take(command)
        done = Done(deliveries=self._choose())
        payload = encode_frame(done, max_bytes=1 << 30)[_HEADER_BYTES:]
        answer = decode_host_frame(payload)
        assert isinstance(answer, Done)
        return answer

    def hand_over(self, act: Act) -> None:
        """Take output in the middle of a stretch."""
        decoded = _through_the_wire(act)
        assert isinstance(decoded, Act)
        assert not decoded.blocked
        (activation,) = decoded.activations
        for command in activation.commands:
            assert isinstance(command, Output)
            self._take(command)
        self.acts.append(decoded)

    def take_finish(self, finish: Finish) -> Finish:
        """Take the last frame."""
        decoded = _through_the_wire(finish)
        assert isinstance(decoded, Finish)
        for activation in decoded.activations:
            for command in activation.commands:
                self._take(command)
        return decoded

    def _take(self, command: Command) -> None:
        self.commands.append(command)
        if isinstance(command, Call | Sleep):
            assert command.seq > self._last_seq
            self._last_seq = command.seq
        if isinstance(command, Call):
            self._open[command.seq] = self._execute(command)
        elif isinstance(command, Sleep):
            self._timers[command.seq] = self.now + command.seconds
        elif isinstance(command, Cancel):
            self._open.pop(command.seq, None)
            self._timers.pop(command.seq, None)

    def _execute(self, call: Call) -> Delivery:
        try:
            value = self.tools[call.tool](**call.args)
            if inspect.iscoroutine(value):
                value = _finish_coroutine(value)
        except Exception as error:
            message = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
            known = next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "builtins")
            failure = ToolFailure(kind="failed", message=message, exception=known)
            return Delivery(seq=call.seq, now=self.now, value=msgspec.Raw(b"null"), failure=failure)
        return Delivery(seq=call.seq, now=self.now, value=msgspec.Raw(msgspec.json.encode(value)))

    def _choose(self) -> tuple[Delivery, ...]:
        if self._open:
            order = list(self._open)
            if self.order == "lifo":
                order.reverse()
            elif self.order == "random":
                self.rng.shuffle(order)
            chosen = order if self.batch else order[:1]
            return tuple(self._open.pop(seq) for seq in chosen)
        assert self._timers, "the guest waits for nothing"
        seq, due = min(self._timers.items(), key=lambda item: (item[1], item[0]))
        del self._timers[seq]
        self.now = max(self.now, due)
        return (Delivery(seq=seq, now=self.now, value=msgspec.Raw(b"null")),)


def run(
    script: str,
    tools: Tools | None = None,
    *,
    stubs: Sequence[ToolStub] | None = None,
    order: Order = "fifo",
    batch: bool = False,
    seed: int = 0,
    host: MemoryHost | None = None,
    rehearsal: bool = False,
    **limits: int,
) -> Outcome:
    """Run a script in this process.

    Args:
        script: its text.
        tools: functions by tool name.
        stubs: what the guest is told of them; made from the functions' signatures when omitted.
        order: see MemoryHost.
        batch: see MemoryHost.
        seed: of the run, and of a random order.
        host: plays the host instead of one made from ``tools``, ``order`` and ``batch``.
        rehearsal: see Start.
        **limits: fields of GuestLimits to change.
    """
    if host is None:
        host = MemoryHost(tools=tools or {}, order=order, batch=batch, rng=random.Random(seed))
    if stubs is None:
        stubs = [stub_of(name, function) for name, function in (tools or {}).items()]
    start = Start(
        script=script,
        tools=tuple(stubs),
        seed=seed,
        now=NOW,
        limits=guest_limits(**limits),
        rehearsal=rehearsal,
    )
    part = Run(start, host, _end)
    finish = host.take_finish(run_script(part))
    if part.loop.tasks:
        # A process would be gone now. Here, letting go of suspended coroutines would run parts of the script.
        _ended.append(part)
    return Outcome(
        finish=finish,
        output="".join(command.text for command in host.commands if isinstance(command, Output)),
        calls=[(command.tool, command.args) for command in host.commands if isinstance(command, Call)],
        cancelled=[command.seq for command in host.commands if isinstance(command, Cancel)],
        acts=host.acts,
    )


def guest_limits(**changed: float) -> GuestLimits:
    """Return generous limits, some of them changed."""
    limits = GuestLimits(
        wall_s=10.0,
        cpu_s=10.0,
        memory_bytes=256 << 20,
        output_bytes=256 << 10,
        recursion=500,
        calls=10_000,
        frame_bytes=_FRAME_BYTES,
    )
    return msgspec.structs.replace(limits, **changed)


def stub_of(name: str, function: Callable[..., Any]) -> ToolStub:
    """Describe a function by its parameter names and annotations."""
    kinds = {
        "str": "string",
        "int": "integer",
        "float": "number",
        "bool": "boolean",
        "list": "array",
        "dict": "object",
    }
    properties: dict[str, Any] = {}
    required: list[str] = []
    for key, parameter in inspect.signature(function).parameters.items():
        annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
        properties[key] = {"type": kinds[annotation]} if annotation in kinds else {}
        if parameter.default is inspect.Parameter.empty:
            required.append(key)
        else:
            properties[key]["default"] = parameter.default
    return ToolStub(
        name=name,
        parameters={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        summary=(function.__doc__ or "").partition("\n")[0],
    )


def _warn_of_our_own(coroutine: Any) -> None:
    # What a script that has ended never awaited is no concern of the process that tests it.
    if coroutine.cr_code.co_filename != SCRIPT_FILE:
        _warn_unawaited(coroutine)


_interpreter_hooks: Any = warnings
_warn_unawaited: Callable[[Any], None] = _interpreter_hooks._warn_unawaited_coroutine
_interpreter_hooks._warn_unawaited_coroutine = _warn_of_our_own


def _end(finish: Finish) -> Any:
    raise RunEnded(finish)


def _through_the_wire(frame: Act | Finish) -> object:
    return decode_guest_frame(encode_frame(frame, max_bytes=_FRAME_BYTES)[_HEADER_BYTES:])


def _finish_coroutine(coroutine: Any) -> Any:
    while True:
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value
