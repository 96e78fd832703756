"""One run in lockstep: the guest acts until it is blocked, the host answers with completions.

The guest is hostile by assumption. It may send Hello once, Act and Finish; it must answer each delivery with
one activation, number its commands from 1 rising, cancel only what it issued, and be silent while it is
blocked. Whatever else it does ends the run as ``protocol_violation``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from bascule.bridge.clock import RunClock
from bascule.bridge.crossing import Crossing
from bascule.bridge.first_step import begin
from bascule.bridge.inbox import Inbox
from bascule.bridge.journal import EventKind, Fact, digest_of
from bascule.bridge.outstanding import Outstanding
from bascule.bridge.replay import Replay
from bascule.bridge.run_limits import check_sleep, out_of_time
from bascule.bridge.verdict import RunStopped, violation
from bascule.bridge.writing import Writing
from bascule.sandbox import Sandbox, SandboxClosed
from bascule.wire import (
    Act,
    Activation,
    Call,
    Cancel,
    Delivery,
    Done,
    Finish,
    Output,
    Start,
    decode_guest_frame,
    encode_frame,
)
from bascule.wire.codec import MAX_HOST_FRAME_BYTES
from bascule.wire.frames import GuestFrame

WORTH_SUSPENDING_S: Final = 1.0
"""A sandbox is held when it will be needed again sooner than this, which a new one would take to start."""

EXIT_S: Final = 3.0
"""Longest wait for the guest's stream to end after its finish."""

MAX_GUEST_BYTES: Final = 64 << 20
"""Bytes of frames taken from one guest, its output apart: what is kept of them costs the host memory."""

MAX_COMMANDS: Final = 250_000
"""Sleeps, cancels and outputs of one run; each is an entry of the journal. Calls have their own limit."""


class Conversation:
    """Speaks with one guest."""

    def __init__(
        self, sandbox: Sandbox, inbox: Inbox, shared: Crossing, clock: RunClock, replay: Replay | None = None
    ) -> None:
        self._sandbox = sandbox
        self._shared = shared
        self._clock = clock
        self._inbox = inbox
        self._replay = replay
        self._outstanding = Outstanding(
            shared, replay=replay, changed=self._inbox.wake, stop=self._inbox.stop_with
        )
        self._writing = Writing(shared.journal, failed=inbox.stop_with)
        self._act = 0
        self._output: list[str] = []
        self._output_bytes = 0
        self._received_bytes = 0
        self._commands = 0

    @property
    def output(self) -> str:
        """What the script printed so far, within the limit."""
        return "".join(self._output)

    @property
    def output_bytes(self) -> int:
        """UTF-8 bytes of it."""
        return self._output_bytes

    def wake(self) -> None:
        """Have deadlines computed anew."""
        self._inbox.wake()

    async def converse(self, start: Start) -> Finish:
        """Have the script run; return the guest's finish.

        Raises:
            RunStopped: a limit or a violation ended the run.
            SandboxClosed: the guest is gone before it finished.
            FrameError: the guest sent what is no frame.
        """
        expected = 1
        self._act = 0
        await self._send(start)
        while True:
            frame = await self._next_frame()
            if isinstance(frame, Finish):
                await self._take_finish(frame, expected, exits=not start.session)
                return frame
            if not isinstance(frame, Act):
                raise violation("a second hello")
            if not frame.blocked:
                self._take_output_only(frame)
                continue
            self._clock.guest_waits()
            if len(frame.activations) != expected:
                raise violation(f"{len(frame.activations)} activations for {expected} deliveries")
            self._take_activations(frame.activations)
            deliveries = None if self._replay is None else self._replay.next_batch()
            if deliveries is None:
                self._replay = None
                await self._writing.keep_up()
                self._outstanding.start_issued()
                deliveries = await self._next_deliveries()
                self._writing.later()
            else:
                self._outstanding.note_replayed(deliveries)
            self._act += expected
            expected = len(deliveries)
            await self._send(Done(deliveries=deliveries))

    async def end(self) -> None:
        """End the calls that are left."""
        self._writing.end()
        await self._outstanding.end()

    async def _send(self, frame: Start | Done) -> None:
        """Send one frame; a guest that does not read it runs out of time like one that does not answer."""
        encoded = encode_frame(frame, max_bytes=MAX_HOST_FRAME_BYTES)
        self._clock.guest_runs()
        rest = begin(self._sandbox.send(encoded))
        if rest is None:
            return
        try:
            async with asyncio.timeout(self._clock.remaining_s()):
                await rest
        except TimeoutError:
            raise out_of_time(self._clock.expired() or "wall_limit", self._shared.limits) from None

    async def _next_frame(self) -> GuestFrame:
        while (payload := self._inbox.take_frame()) is None:
            await self._wait()
        self._received_bytes += len(payload)
        allowed = MAX_GUEST_BYTES + self._shared.limits.output_bytes
        if self._received_bytes > allowed:
            raise RunStopped(
                "limit", "traffic_limit", f"stopped: the script sent more than {allowed} bytes in all"
            )
        return decode_guest_frame(payload)

    async def _next_deliveries(self) -> tuple[Delivery, ...]:
        """Wait for completions and return those that are ready, in the order they became so.

        Raises:
            RunSuspended: for longer than it is worth to hold the sandbox, only people and timers are awaited.
        """
        idle_since: float | None = None
        while True:
            if self._inbox.has_news and self._inbox.take_frame() is not None:
                raise violation("a frame while blocked")
            if self._outstanding.any_ready:
                break
            if not self._outstanding.any_awaited:
                raise violation("blocked although nothing is outstanding")
            if not self._outstanding.idle:
                idle_since = None
                await self._wait()
                continue
            idle_since = time.monotonic() if idle_since is None else idle_since
            hold_s = self._shared.limits.hold_warm_s if self._shared.parking.holds else 0.0
            left_s = hold_s - (time.monotonic() - idle_since)
            if left_s <= 0 and self._outstanding.sleeps_longer_than(WORTH_SUSPENDING_S):
                raise self._outstanding.suspension()
            check_sleep(self._outstanding, self._clock, self._shared.limits, suspended_in_s=max(left_s, 0.0))
            await self._wait(left_s if left_s > 0 else None)
        return self._outstanding.take_ready()

    async def _take_finish(self, frame: Finish, expected: int, *, exits: bool) -> None:
        self._clock.guest_waits()
        if len(frame.activations) > expected:
            raise violation(f"{len(frame.activations)} activations for {expected} deliveries")
        self._take_activations(frame.activations, final=True)
        if self._replay is not None and frame.status != "limit":
            self._replay.end(self._act + len(frame.activations) - 1)
        if not exits:
            if self._inbox.has_news and self._inbox.take_frame() is not None:
                raise violation("a frame after finish")
            return
        until = time.monotonic() + EXIT_S
        while (left := until - time.monotonic()) > 0:
            try:
                if self._inbox.take_frame() is not None:
                    raise violation("a frame after finish")
            except SandboxClosed:
                return
            await self._inbox.wait(left)

    def _take_output_only(self, frame: Act) -> None:
        commands = frame.activations[0].commands if len(frame.activations) == 1 else ()
        if not commands or not all(isinstance(each, Output) and each.text for each in commands):
            raise violation("an unblocked act must hand over output and nothing else")
        self._take_commands(frame.activations[0], self._act, whole=False)

    def _take_activations(self, activations: Sequence[Activation], *, final: bool = False) -> None:
        for number, activation in enumerate(activations, self._act):
            self._take_commands(activation, number, final=final)
            if self._replay is not None:
                self._replay.end_act(number)

    def _take_commands(
        self, activation: Activation, act: int, *, final: bool = False, whole: bool = True
    ) -> None:
        for command in activation.commands:
            if not isinstance(command, Call):
                self._count_command()
            match command:
                case Output(text=text):
                    self._take_output(text, act, whole=whole)
                case Cancel(seq=seq):
                    self._outstanding.cancel(seq, act)
                case Call():
                    self._outstanding.issue(command, act, final=final)
                case _:
                    self._outstanding.start_sleep(command, act, final=final)

    def _count_command(self) -> None:
        self._commands += 1
        if self._commands > MAX_COMMANDS:
            raise RunStopped(
                "limit",
                "command_limit",
                f"stopped: the script slept, cancelled and printed more than {MAX_COMMANDS} times",
            )

    def _take_output(self, text: str, act: int, *, whole: bool) -> None:
        limit = self._shared.limits.output_bytes
        raw = text.encode()
        room = limit - self._output_bytes
        if len(raw) > room:
            # Cut when secrets are out of it, or half of one would stay.
            shown = self._shared.redactor.text(text).encode()
            self._output.append(shown[:room].decode("utf-8", "ignore"))
            self._output_bytes = limit
            raise RunStopped("limit", "output_limit", f"stopped: the script printed more than {limit} bytes")
        self._output_bytes += len(raw)
        if self._replay is not None:
            # What was recorded is shown as it was then, whichever secrets are registered now.
            recorded, raw = self._replay.take_text(act, raw)
            self._output.append(recorded.decode())
        if raw:
            kept = self._show(raw.decode())
            facts: dict[str, Fact] = {}
            if kept != raw:
                facts = {"raw_bytes": len(raw), "raw_sha256": digest_of(raw)}
            self._shared.journal.append(EventKind.OUTPUT, kept, act=act, whole=whole, **facts)
            self._shared.narrator.run("run.output", text=kept.decode())

    def _show(self, text: str) -> bytes:
        """Add to what the script printed, without secrets; return what was added."""
        shown = self._shared.redactor.text(text)
        self._output.append(shown)
        return shown.encode()

    async def _wait(self, timeout_s: float | None = None) -> None:
        """Wait for anything to happen, or for ``timeout_s``.

        Raises:
            RunStopped: a limit of the run is reached.
        """
        if self._inbox.stop is None:
            left_s = self._clock.remaining_s()
            if left_s is None or (timeout_s is not None and timeout_s < left_s):
                left_s = timeout_s
            await self._inbox.wait(left_s)
        if self._inbox.stop is not None:
            raise self._inbox.stop
        expired = self._clock.expired()
        if expired is None or self._inbox.has_news:
            return
        raise out_of_time(expired, self._shared.limits)
