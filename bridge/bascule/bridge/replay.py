"""Replay: a fresh guest is led through what the journal recorded, and every step it takes is compared.

It starts no tool and writes nothing. A command that is missing, extra or different ends the run as
``diverged``, with both sides as evidence.
"""

from __future__ import annotations

import msgspec

from bascule.bridge.history import Act, Command, History, Printed
from bascule.bridge.journal import digest_of
from bascule.bridge.verdict import RunStopped
from bascule.wire import Delivery

_NOTHING = Act()


class Replay:
    """Compares one guest with one history.

    Args:
        history: what is recorded.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self._batch = 0
        self._position = 0
        self._piece = 0
        self._begun = b""
        self._act = 0
        self._last_act = sum(map(len, history.batches))

    def take_command(self, act: int, command: Command) -> bool:
        """Compare one command; return False when it lies beyond what is recorded.

        Raises:
            RunStopped: ``diverged``.
        """
        self._move_to(act)
        recorded = self._recorded
        if self._position < len(recorded.commands):
            expected = recorded.commands[self._position]
            if expected.what != command.what:
                raise _diverged(act, expected.shown, command.shown)
            self._position += 1
            return True
        if recorded.whole:
            raise _diverged(act, "nothing more", command.shown)
        return False

    def take_text(self, act: int, text: bytes) -> tuple[bytes, bytes]:
        """Compare printed text; return what is kept of the recorded part, and what lies beyond.

        Raises:
            RunStopped: ``diverged``.
        """
        self._move_to(act)
        kept = b""
        while text:
            if self._piece == len(self._recorded.printed):
                if self._recorded.whole:
                    raise _diverged(act, "no more output", f"the output {_quote(text)}")
                return kept, text
            piece = self._recorded.printed[self._piece]
            room = piece.raw_bytes - len(self._begun)
            self._begun, text = self._begun + text[:room], text[room:]
            self._compare_piece(act, piece)
            if len(self._begun) == piece.raw_bytes:
                kept += piece.text
                self._piece, self._begun = self._piece + 1, b""
        return kept, b""

    def _compare_piece(self, act: int, piece: Printed) -> None:
        """Compare what came so far of one recorded piece."""
        if piece.raw_sha256 is None:
            same = piece.text.startswith(self._begun)
        else:
            same = len(self._begun) < piece.raw_bytes or digest_of(self._begun) == piece.raw_sha256
        if not same:
            raise _diverged(act, f"the output {_quote(piece.text)}", f"the output {_quote(self._begun)}")

    def end_act(self, act: int) -> None:
        """Note that the guest has ended an act.

        Raises:
            RunStopped: ``diverged``: something that is recorded did not come.
        """
        self._move_to(act)
        recorded = self._recorded
        if self._position < len(recorded.commands):
            raise _diverged(act, recorded.commands[self._position].shown, "nothing more")
        if self._piece < len(recorded.printed):
            missing = recorded.printed[self._piece].text
            raise _diverged(act, f"the output {_quote(missing)}", "nothing more")

    def end(self, act: int) -> None:
        """Note that the guest has finished with this act.

        Raises:
            RunStopped: ``diverged``: more is recorded.
        """
        if act < self._last_act:
            raise _diverged(act, f"{self._last_act - act} more deliveries", "the end of the script")

    def next_batch(self) -> tuple[Delivery, ...] | None:
        """Return the next recorded deliveries, or None when the run goes live.

        Raises:
            RunStopped: ``diverged``: the recorded run had ended here.
        """
        if self._batch >= len(self.history.batches):
            if self.history.finished is not None:
                raise _diverged(self._last_act, "the end of the script", "a wait for more")
            return None
        batch = self.history.batches[self._batch]
        self._batch += 1
        return tuple(self._delivery(seq, now) for seq, now in batch)

    def _delivery(self, seq: int, now: float) -> Delivery:
        call = self.history.calls.get(seq)
        if call is None:
            return Delivery(seq=seq, now=now, value=msgspec.Raw(b"null"))
        return Delivery(seq=seq, now=now, value=msgspec.Raw(call.value), failure=call.failure)

    @property
    def _recorded(self) -> Act:
        return self.history.acts.get(self._act, _NOTHING)

    def _move_to(self, act: int) -> None:
        if act != self._act:
            self._act = act
            self._position = 0
            self._piece = 0
            self._begun = b""


def _diverged(act: int, recorded: str, found: str) -> RunStopped:
    return RunStopped(
        "diverged",
        "diverged",
        f"the replayed script did something else than before, after {act} deliveries:"
        f" recorded was {recorded}, now came {found}; no tool was started",
    )


def _quote(text: bytes) -> str:
    shown = text[:80].decode("utf-8", "replace")
    return f"{shown!r}{' …' if len(text) > 80 else ''}"
