"""One script, a harmless tool, and a run that must leave no sandbox open: for guests of the tests' own."""

from __future__ import annotations

from typing import Final

from bascule.bridge import Executor, Limits, Result, approve_all
from bascule.tools import AnyTool, tool
from tests.unit.bridge.guests import Guest, GuestBackend

SCRIPT: Final = "first()\nsecond()\nthird()\n"


@tool(effects="read")
async def echo(text: str = "x") -> str:
    """Echo."""
    return text


async def run(guest: Guest, *tools: AnyTool, limits: Limits | None = None) -> Result:
    """Run `SCRIPT`, as whatever the guest makes of it, with every call approved."""
    backend = GuestBackend(guest)
    async with Executor(
        tools or (echo,), backend=backend, limits=limits or Limits(), approver=approve_all
    ) as executor:
        result = await executor.run(SCRIPT)
    assert [sandbox.closed for sandbox in backend.sandboxes] == [True]
    return result
