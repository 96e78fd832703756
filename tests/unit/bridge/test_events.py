"""Live events: in order, safe to show, and never in the way of a call."""

from __future__ import annotations

import threading

import pytest

from bascule.bridge import Event, Executor
from bascule.bridge.events import EventChannel
from bascule.tools import tool
from tests.unit.bridge.guests import GuestBackend, sequence


@tool(effects="read")
def look(what: str) -> str:
    """Look."""
    return what


@tool(effects="once")
def send(what: str) -> None:
    """Send."""


@pytest.mark.anyio
async def test_a_subscriber_sees_what_happens_in_order_with_safe_texts() -> None:
    seen: list[Event] = []
    guest = sequence(("look", {"what": "\x1b[2J"}), ("send", {"what": "x"}), ("nothing\n", {}))
    async with Executor([look, send], backend=GuestBackend(guest)) as executor:
        executor.subscribe(seen.append)
        await executor.run("")
    assert [(event.name, event.seq) for event in seen] == [
        ("run.started", 0),
        ("call.started", 1),
        ("call.completed", 1),
        ("call.waiting_approval", 2),
        ("call.denied", 2),
        ("call.failed", 3),
        ("run.finished", 0),
    ]
    assert seen[1].text == '{"what":"\\u001b[2J"}'
    assert seen[5].tool == "nothing\\n"
    assert seen[-1].text == "ok"
    assert len({event.run_id for event in seen}) == 1


def test_a_subscriber_that_raises_or_blocks_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    channel = EventChannel()
    release = threading.Event()
    seen: list[str] = []

    def block(event: Event) -> None:
        release.wait(10)
        raise ValueError("subscriber is broken")

    channel.subscribe(block)
    end = channel.subscribe(lambda event: seen.append(event.run_id))
    for number in range(3):
        channel.publish(Event(name="run.started", run_id=str(number), at=0.0))
    assert seen == []
    release.set()
    channel.close()
    assert seen == ["0", "1", "2"]
    assert "subscriber raised" in caplog.text
    end()
    end()


def test_events_beyond_the_bound_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bascule.bridge.events.MAX_WAITING_EVENTS", 2)
    channel = EventChannel()
    for _ in range(5):
        channel.publish(Event(name="run.started", run_id="1", at=0.0))
    assert channel.dropped == 3
    channel.close()
