"""The parts of one run and its ways to end. Builds the last frame so that it fits, whatever happened."""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Literal, NoReturn

import msgspec

from bascule.guest.calls import Tool
from bascule.guest.clock import Clock
from bascule.guest.commands import Commands
from bascule.guest.compiler import CompiledScript
from bascule.guest.depth import check_depth
from bascule.guest.environment import Environment
from bascule.guest.facade import Facade
from bascule.guest.limits import recursion_of
from bascule.guest.loop import Host, Loop
from bascule.guest.output import Output
from bascule.guest.position import calling_line, script_line
from bascule.guest.statement_at import statement_at
from bascule.wire import Finish, GuestUsage, ScriptError, Start

_RESERVE_BYTES = 32 << 10
"""Room in the last frame for notes and errors."""

_MAX_NOTES = 50

_SLOW = {
    "": "Waiting for tools does not count; make the computation smaller or end the loop.",
    "in a regular expression": "A pattern like (a+)+ tries for ever: write it without a repeat inside a "
    "repeat, or use str methods.",
    "in a power": "The number is huge: use pow(base, exponent, modulus), or floats and math.log.",
}
_TOO_MUCH = "Hold less at once: work through the data in parts, and build no text or list by repetition."

ValueSource = Literal["return", "last_expression", "last_assignment", "none"]

_encode = msgspec.json.Encoder().encode


class Run:
    """Everything that belongs to one run.

    Args:
        start: the order.
        host: takes commands and gives completions.
        end: ends the run at once with a last frame; does not return.

    Attributes:
        namespace: globals of the scripts of a session, None before the first and outside sessions.
    """

    def __init__(self, start: Start, host: Host, end: Callable[[Finish], NoReturn]) -> None:
        self.start = start
        self.compiled: CompiledScript | None = None
        self._last: Finish | None = None
        self._cpu_before_s = 0.0
        self.namespace: dict[str, object] | None = None
        self._host = host
        self._end = end
        limits = start.limits
        self.output = Output(
            cap_bytes=limits.output_bytes, hand_over=self._hand_over, overflow=self._output_overflow
        )
        self._commands = Commands(output=self.output, frame_bytes=limits.frame_bytes)
        clock = Clock(start.now)
        self.loop = Loop(host=host, clock=clock, commands=self._commands, ender=self, max_calls=limits.calls)
        self.environment = Environment(
            clock=clock, rng=random.Random(start.seed), output=self.output, loop=self.loop
        )

    def begin(self, start: Start) -> None:
        """Make everything ready for the next script of a session; variables, clock and numbers go on."""
        self.start = start
        self.compiled = None
        self._last = None
        self._cpu_before_s = time.process_time()
        self.environment.notes.clear()
        self.environment.rng.seed(start.seed)
        self.environment.clock.set(start.now)
        self.output.begin(start.limits.output_bytes)
        self.loop.reopen(max_calls=start.limits.calls)

    def tools(self, *, awaitable: bool) -> dict[str, object]:
        """Return the names under which the script finds its tools; dots make namespaces."""
        flat: dict[str, object] = {}
        spaces: dict[str, dict[str, object]] = {}
        for stub in self.start.tools:
            tool = Tool(stub, environment=self.environment, awaitable=awaitable)
            space, _, name = stub.name.rpartition(".")
            (spaces.setdefault(space, {}) if space else flat)[name] = tool
        for space, members in sorted(spaces.items(), key=lambda item: -item[0].count(".")):
            outer, _, name = space.rpartition(".")
            (spaces.setdefault(outer, {}) if outer else flat)[name] = Facade(space, members)
        return flat

    def stop(
        self,
        *,
        status: Literal["failed", "limit"],
        kind: str,
        message: str,
        line: int | None,
        suggestion: str | None = None,
    ) -> NoReturn:
        """End the run at once, without unwinding the script."""
        if self._last is None:
            self._last = self.finish(status, errors=(self._error(kind, message, line, suggestion),))
            self.loop.closed = True
        self._end(self._last)

    def time_is_up(
        self, kind: Literal["wall_limit", "cpu_limit"], limit_s: float, frame: FrameType | None
    ) -> NoReturn:
        """End the run because it ran too long; ``frame`` is where the main thread is."""
        worker = self.loop.threads.current
        if worker is not None and worker.carrier is not None:
            # There is no public way to the frames of other threads.
            frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
            frame = frames.get(worker.carrier.ident, frame)
        # Between two turns of the loop no line of the script runs: then a task tells where it stands.
        line = script_line(frame) or self.loop.waiting_line()
        what = "of CPU time " if kind == "cpu_limit" else ""
        where = self._in(line)
        self.stop(
            status="limit",
            kind=kind,
            message=f"stopped{self._at(line)} after {limit_s:g} s {what}{where}".rstrip(),
            line=line,
            suggestion=_SLOW.get(where, _SLOW[""]),
        )

    def out_of_memory(self, line: int | None) -> Finish:
        """Return the last frame of a run whose memory ran out."""
        mib = self.start.limits.memory_bytes / (1 << 20)
        message = f"out of memory{self._at(line)} {self._in(line)}: the script may use {mib:g} MiB"
        error = self._error("memory_limit", message.replace(" :", ":"), line, _TOO_MUCH)
        return self.finish("limit", errors=(error,))

    def recursion_message(self, line: int | None) -> str:
        """Say that calls nested too deep."""
        return f"recursion deeper than {recursion_of(self.start.limits)} calls{self._at(line)}"

    def finish(
        self,
        status: Literal["ok", "failed", "refused", "limit"],
        *,
        value: object = None,
        value_source: ValueSource = "none",
        errors: tuple[ScriptError, ...] = (),
    ) -> Finish:
        """Return the last frame, within its bound."""
        for act in self._commands.take_rest_of_text():
            self._host.hand_over(act)
        activations = self._commands.take_activations()
        room_bytes = self.start.limits.frame_bytes - _RESERVE_BYTES - len(_encode(activations))
        encoded = _encode(value)
        if len(encoded) > max(room_bytes, 0):
            status, value, value_source = "limit", None, "none"
            message = f"the result has {len(encoded)} bytes as JSON, the most is {max(room_bytes, 0)}"
            hint = "Return a part or a summary."
            errors = (self._error("result_limit", message, None, hint),)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return Finish(
            status=status,
            activations=activations,
            value=value,
            value_source=value_source,
            errors=errors,
            notes=tuple(self.environment.notes[:_MAX_NOTES]),
            usage=GuestUsage(
                cpu_s=time.process_time() - self._cpu_before_s,
                peak_memory_bytes=usage.ru_maxrss * 1024,
            ),
        )

    def _error(self, kind: str, message: str, line: int | None, suggestion: str | None) -> ScriptError:
        if self.compiled is None:
            return ScriptError(kind=kind, message=message, line=line, suggestion=suggestion)
        return self.compiled.source.error(kind, message, line=line, suggestion=suggestion)

    def _at(self, line: int | None) -> str:
        return "" if line is None else f" at line {line}"

    def _in(self, line: int | None) -> str:
        if line is None or self.compiled is None:
            return ""
        try:
            return statement_at(self.compiled.tree, line)
        except RecursionError:
            return ""  # a script can be nested too deeply to be parsed again at the depth it stands at

    def _hand_over(self) -> None:
        check_depth()
        act = self._commands.take_output()
        if act is not None:
            self._host.hand_over(act)

    def _output_overflow(self, printed_bytes: int) -> NoReturn:
        line = calling_line()
        self.stop(
            status="limit",
            kind="output_limit",
            message=f"the script printed {printed_bytes} bytes{self._at(line)}, the most is "
            f"{self.start.limits.output_bytes}",
            line=line,
            suggestion="Print a summary, or return what is needed.",
        )
