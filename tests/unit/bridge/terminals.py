"""A pseudo-terminal with a person at it, for tests of what is asked there."""

from __future__ import annotations

import asyncio
import io
import os


class Screen(io.StringIO):
    """Text that was shown; whoever waits is woken when it is flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = asyncio.Event()

    def flush(self) -> None:
        self.changed.set()


class Terminal:
    """A pseudo-terminal: we type at one end, the code reads the other; `close` it."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        self.shown = Screen()

    def close(self) -> None:
        """Close both ends."""
        os.close(self.master)
        os.close(self.slave)

    def type(self, text: str) -> None:
        """Type text, line ends included."""
        os.write(self.master, text.encode())

    async def prompted(self, times: int = 1, *, prompt: str = "Approve this call?") -> None:
        """Wait until a prompt was shown so many times."""
        while self.shown.getvalue().count(prompt) < times:
            self.shown.changed.clear()
            await self.shown.changed.wait()

    async def answer(self, *typed: str) -> None:
        """Type each line after one more prompt was shown."""
        for count, line in enumerate(typed, 1):
            await self.prompted(count, prompt="? ")
            self.type(f"{line}\n")
