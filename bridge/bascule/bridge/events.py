"""Live events for people and monitors: what a run does, as it does it.

Events are a courtesy, the journal is the truth. A subscriber runs on a thread of its own channel and so can
never hold up a call; when it falls too far behind, events are dropped and counted. Texts in events are
already safe to show.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

EventName = Literal[
    "run.started",
    "call.started",
    "call.progress",
    "call.waiting_approval",
    "approval.reminder",
    "call.completed",
    "call.failed",
    "call.denied",
    "call.withheld",
    "run.output",
    "run.finished",
]

MAX_WAITING_EVENTS: Final = 10_000
"""Events kept for a slow subscriber before further ones are dropped."""

_CLOSE_S: Final = 5.0
_log = logging.getLogger("bascule.bridge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event.

    Attributes:
        name: see `EventName`.
        run_id: the run it belongs to.
        at: host time, seconds since the epoch.
        seq: the call, 0 for events of the run itself.
        tool: name of the tool, made safe to show; empty for events of the run.
        text: arguments, reason, printed text or status, made safe to show.
        duration_s: for ends of calls and runs, how long they took.
    """

    name: EventName
    run_id: str
    at: float
    seq: int = 0
    tool: str = ""
    text: str = ""
    duration_s: float = 0.0


Subscriber = Callable[[Event], object]


class EventChannel:
    """Delivers events in order to its subscribers, away from the caller's thread."""

    def __init__(self) -> None:
        self._subscribers: list[Subscriber] = []
        self._queue: queue.Queue[Event | None] = queue.Queue(MAX_WAITING_EVENTS)
        self._thread: threading.Thread | None = None
        self.dropped = 0

    @property
    def watched(self) -> bool:
        """Whether anybody listens; when nobody does, events need not even be made."""
        return bool(self._subscribers)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Send every later event to ``subscriber``; return what ends that."""
        self._subscribers.append(subscriber)
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver, name="bascule-events", daemon=True)
            self._thread.start()

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    def publish(self, event: Event) -> None:
        """Hand over one event; never waits."""
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Deliver what is waiting, within five seconds, and end."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            self._queue.put(None, timeout=_CLOSE_S)
        except queue.Full:
            return
        thread.join(_CLOSE_S)

    def _deliver(self) -> None:
        while (event := self._queue.get()) is not None:
            for subscriber in tuple(self._subscribers):
                try:
                    subscriber(event)
                except Exception:  # a subscriber's bug must not end the events of the others
                    _log.exception("an event subscriber raised; it stays subscribed")
