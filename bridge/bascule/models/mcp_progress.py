"""Progress of a run as MCP notifications: how many steps, and the last one, a few times a second at most.

Only names and states go out, never arguments, output or results: hosts show progress to people and may show
it to models.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from bascule.bridge import Executor
from bascule.bridge.events import Event

SPACING_S: Final = 0.25
"""Seconds between two notifications of one call."""

_TOLD: Final = {
    "run.started": "the script started",
    "call.started": "started",
    "call.waiting_approval": "waits for approval",
    "call.completed": "done",
    "call.failed": "failed",
    "call.denied": "denied",
    "run.finished": "the script ended",
}

Report = Callable[[float, str], Awaitable[None]]
"""Sends one notification: a number that rises, and a sentence."""


@contextlib.asynccontextmanager
async def relay_progress(executor: Executor, run_id: str | None, report: Report) -> AsyncGenerator[None]:
    """Report what a run does while the body runs.

    Args:
        run_id: None reports nothing.
        report: may fail when the peer is gone; that ends the reports and nothing else.
    """
    if run_id is None:
        yield
        return
    loop = asyncio.get_running_loop()
    news = asyncio.Event()
    state = _State()

    def note(event: Event) -> None:  # on the events' own thread
        if event.run_id == run_id and event.name in _TOLD:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(add, event)

    def add(event: Event) -> None:
        state.add(event)
        news.set()

    async def tell() -> None:
        while True:
            await news.wait()
            news.clear()
            with contextlib.suppress(Exception):  # whatever the transport raises, the call goes on
                await report(float(state.steps), state.text)
            await asyncio.sleep(SPACING_S)

    unsubscribe = executor.subscribe(note)
    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        unsubscribe()
        telling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await telling


class _State:
    """What one run did so far."""

    def __init__(self) -> None:
        self.steps = 0
        self._calls = 0
        self._last = ""

    def add(self, event: Event) -> None:
        self.steps += 1
        self._calls += event.name == "call.started"
        told = _TOLD[event.name]
        self._last = f"{event.tool[:80]} {told}" if event.tool else told

    @property
    def text(self) -> str:
        return f"{self._last} ({self._calls} calls so far)" if self._calls else self._last
