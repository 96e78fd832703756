"""What happened since the last Act, in order. Decides what still fits into a frame; loses nothing.

Half of a frame is for calls, half for output, so neither can keep the other back for ever. What does not fit
stays for the next stretch: the host answers the calls that went out, and the rest follows with its answer.
Arguments arrive encoded, once, so their size is exact and nothing can change them later.
"""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import msgspec

from bascule.guest.errors import ToolArgumentError
from bascule.guest.output import Output
from bascule.wire import Act, Activation, Call, Cancel, Sleep
from bascule.wire import Output as Printed

_ENVELOPE_BYTES = 160
"""Generous size of a command without its arguments or text."""

_RESERVE_BYTES = 8 << 10
"""Room in a frame for what is neither command nor text."""

_PIECE_CHARACTERS = 16 << 10
"""Longest text in one output command."""

_MAX_JSON_BYTES = 6
"""Bytes of one character in JSON, at most."""

_encode = msgspec.json.Encoder().encode

_NOTHING = Activation()

Sized = tuple[Call | Cancel | Sleep | Printed, int]


class Commands:
    """Collects commands and cuts them into activations.

    Args:
        output: printed text, which is put before the command that follows it.
        frame_bytes: largest frame the guest may send.
    """

    def __init__(self, *, output: Output, frame_bytes: int) -> None:
        self._output = output
        self._half_bytes = max((frame_bytes - _RESERVE_BYTES) // 2, 4 * _ENVELOPE_BYTES)
        room = (self._half_bytes - 2 * _ENVELOPE_BYTES) // _MAX_JSON_BYTES
        self._piece_characters = max(min(_PIECE_CHARACTERS, room), 1)
        self._queue: deque[Sized] = deque()
        self._closed: list[Activation] = []
        self._only_output = True
        self._text_bytes = 0
        self._call_bytes = 0
        self._text_full = self._calls_full = False

    def add_call(self, seq: int, tool: str, args: msgspec.Raw, line: int) -> None:
        """Add a call.

        Raises:
            ToolArgumentError: the arguments exceed what one frame carries.
        """
        size = len(args) + len(tool) + _ENVELOPE_BYTES
        if size > self._half_bytes:
            raise ToolArgumentError(
                f"{tool}(): the arguments have {len(args)} bytes as JSON, the most is {self._half_bytes}",
                suggestion="Send less in one call, or several calls.",
            )
        if self._output.waiting:
            self._collect_output()
        self._queue.append((Call(seq=seq, tool=tool, args=cast("dict[str, Any]", args), line=line), size))
        self._only_output = False

    def add_sleep(self, seq: int, seconds: float, line: int | None) -> None:
        """Add a request for a completion after ``seconds``, made at a line of the script."""
        self._add(Sleep(seq=seq, seconds=float(seconds), line=line))

    def add_cancel(self, seq: int) -> None:
        """Add that nobody waits for ``seq`` any longer."""
        self._add(Cancel(seq=seq))

    def close_stretch(self) -> None:
        """End the activation of this stretch with everything that fits."""
        if self._output.waiting:
            self._collect_output()
        queue = self._queue
        if not queue or self._calls_full:
            self._closed.append(_NOTHING)
            return
        taken: list[Call | Cancel | Sleep | Printed] = []
        kept: list[Sized] = []
        while queue:
            command, size = queue[0]
            if isinstance(command, Printed):
                self._text_full = self._text_full or self._text_bytes + size > self._half_bytes
                if self._text_full:
                    # Text may come later than the calls behind it; calls must not wait for text.
                    kept.append(queue.popleft())
                    continue
                self._text_bytes += size
            else:
                self._calls_full = self._call_bytes + size > self._half_bytes
                if self._calls_full:
                    break
                self._call_bytes += size
            queue.popleft()
            taken.append(command)
        queue.extendleft(reversed(kept))
        self._closed.append(Activation(commands=tuple(taken)))

    def take_act(self) -> Act:
        """Return all closed activations as one Act."""
        act = Act(activations=tuple(self._closed))
        self._closed.clear()
        self._text_bytes = self._call_bytes = 0
        self._text_full = self._calls_full = False
        self._only_output = not self._queue
        return act

    def take_output(self) -> Act | None:
        """Return waiting text as an Act in the middle of a stretch, or None while calls come before it."""
        if not self._only_output or self._closed:
            return None
        self._collect_output()
        return self._cut_text()

    def take_rest_of_text(self) -> list[Act]:
        """Take text out of the way of a Finish when it is more than that could carry beside its value."""
        if self._output.waiting:
            self._collect_output()
        if sum(size for command, size in self._queue if isinstance(command, Printed)) <= _PIECE_CHARACTERS:
            return []
        # What closed activations hold was printed before, so it goes first.
        for activation in reversed(self._closed):
            for command in reversed(activation.commands):
                if isinstance(command, Printed):
                    self._queue.appendleft(self._sized(command.text))
        self._closed = [
            Activation(commands=tuple(each for each in activation.commands if not isinstance(each, Printed)))
            for activation in self._closed
        ]
        self._text_bytes = 0
        acts: list[Act] = []
        while (act := self._cut_text()) is not None:
            acts.append(act)
        return acts

    def take_activations(self) -> tuple[Activation, ...]:
        """Return everything there is, for a Finish."""
        self.close_stretch()
        return self.take_act().activations

    def _cut_text(self) -> Act | None:
        texts: list[Printed] = []
        kept: deque[Sized] = deque()
        total = 0
        for command, size in self._queue:
            # Text after text that does not fit must wait too, whatever its size.
            if isinstance(command, Printed):
                total += size
            if isinstance(command, Printed) and total <= self._half_bytes:
                texts.append(command)
            else:
                kept.append((command, size))
        self._queue = kept
        return Act(activations=(Activation(commands=tuple(texts)),), blocked=False) if texts else None

    def _add(self, command: Call | Cancel | Sleep) -> None:
        if self._output.waiting:
            self._collect_output()
        self._queue.append((command, _ENVELOPE_BYTES))
        self._only_output = False

    def _collect_output(self) -> None:
        text = self._output.take()
        for start in range(0, len(text), self._piece_characters):
            self._queue.append(self._sized(text[start : start + self._piece_characters]))

    @staticmethod
    def _sized(text: str) -> Sized:
        return Printed(text=text), len(_encode(text)) + _ENVELOPE_BYTES
