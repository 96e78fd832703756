"""Tools for the tests of executor and command line: one of each behaviour."""

from __future__ import annotations

import threading

from bascule.tools import AnyTool, tool

_NEVER = threading.Event()
sent: list[str] = []


@tool(effects="read")
def add(left: int, right: int = 1) -> int:
    """Add two numbers."""
    return left + right


@tool(effects="read")
async def add_async(left: int, right: int = 1) -> int:
    """Add two numbers, on the host's event loop."""
    return left + right


@tool(effects="read")
def fail(reason: str) -> int:
    """Raise ValueError."""
    raise ValueError(reason)


@tool(effects="read", timeout_s=0.2)
def hang() -> int:
    """Never return in time."""
    _NEVER.wait(5.0)
    return 0


@tool(effects="once")
def send(text: str) -> int:
    """Send a text."""
    sent.append(text)
    return len(text)


TOOLS: list[AnyTool] = [add, add_async, fail, hang, send]
