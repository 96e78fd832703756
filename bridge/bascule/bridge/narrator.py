"""Turns what happens in a run into events, with every untrusted text made safe to show."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Final

from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.display import show, show_json
from bascule.bridge.events import Event, EventChannel, EventName
from bascule.bridge.ledger import CallRecord
from bascule.bridge.redaction import Redactor
from bascule.tools.context import Progress

_SHOWN_CHARS: Final = 300
PROGRESS_EVERY_S: Final = 0.1
"""A tool may tell of its progress as often as it likes; watchers hear of it this often."""


@dataclass(frozen=True, slots=True)
class Narrator:
    """Speaks for one run. Costs next to nothing while nobody listens."""

    run_id: str
    channel: EventChannel

    def call(self, name: EventName, record: CallRecord) -> None:
        """Tell about one call: its arguments as long as it goes on, its error when it has one."""
        if not self.channel.watched:
            return
        if record.error is not None:
            text = show(record.error.message, max_chars=_SHOWN_CHARS)
        elif record.arguments is not None:
            text = show_json(record.arguments, max_chars=_SHOWN_CHARS)
        else:
            text = ""
        self.channel.publish(
            Event(
                name=name,
                run_id=self.run_id,
                at=time.time(),
                seq=record.call.seq,
                tool=show(record.call.tool, max_chars=100),
                text=text,
                duration_s=record.duration_s,
            )
        )

    def progress(self, record: CallRecord, redactor: Redactor) -> Progress:
        """Return what tells how far a call is, without secrets, at most once within `PROGRESS_EVERY_S`."""
        told_at = -math.inf

        def tell(done: float, total: float | None, text: str) -> None:
            nonlocal told_at
            now = time.monotonic()
            if record.state != "running" or now - told_at < PROGRESS_EVERY_S:
                return
            told_at = now
            share = f"{done:g}" if total is None else f"{done:g} of {total:g}"
            words = redactor.text(text)
            event = Event(
                name="call.progress",
                run_id=self.run_id,
                at=time.time(),
                seq=record.call.seq,
                tool=show(record.call.tool, max_chars=100),
                text=show(f"{share}: {words}" if words else share, max_chars=_SHOWN_CHARS),
            )
            self.channel.publish(event)

        return tell

    def remind(self, approval: ApprovalRecord) -> None:
        """Tell that an approval is about to expire."""
        if self.channel.watched and approval.expires_at is not None:
            left_s = max(0.0, approval.expires_at - time.time())
            event = Event(
                name="approval.reminder",
                run_id=self.run_id,
                at=time.time(),
                seq=approval.seq,
                text=f"{approval.id} expires in {left_s:.0f} s",
            )
            self.channel.publish(event)

    def run(self, name: EventName, *, text: str = "", duration_s: float = 0.0) -> None:
        """Tell about the run itself."""
        if self.channel.watched:
            shown = show(text, max_chars=_SHOWN_CHARS)
            event = Event(name=name, run_id=self.run_id, at=time.time(), text=shown, duration_s=duration_s)
            self.channel.publish(event)
