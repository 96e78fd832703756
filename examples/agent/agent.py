"""An agent that asks first: reads are made at once, a refund waits for a person, another process goes on."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from bascule.bridge import Executor, ask_elsewhere
from bascule.bridge.limits import Limits
from bascule.bridge.sqlite_store import SqliteStore
from bascule.models import Agent, OpenAIChat
from bascule.tools import tool
from bascule.wire import BasculeError

SAVED = Path("conversation.json")


@tool(effects="read")
def orders(customer: str) -> list[dict[str, float | str]]:
    """List the orders of a customer, the newest last."""
    return [{"id": n, "total": 10.0 * n, "status": "paid"} for n in range(1, 5)]


@tool(effects="once")
def refund(order: int, amount: float) -> str:
    """Refund an order."""
    with Path("refunds.log").open("a") as log:
        log.write(f"{order} {amount:.2f}\n")
    return f"order {order}: {amount:.2f} refunded"


async def talk(question: str | None, saved: bytes) -> bytes:
    """Ask the model, or go on with a saved conversation; return the conversation as it stands then."""
    store = SqliteStore(Path("runs.db"))
    client = OpenAIChat(os.environ.get("MODEL", "gpt-5.4"))
    limits = Limits(hold_warm_s=1.0)
    async with Executor([orders, refund], store=store, approver=ask_elsewhere, limits=limits) as executor:
        agent = Agent(client, executor, instructions="You help the billing team.")
        result = await (agent.resume(saved) if question is None else agent.run(question))
    for run_id in result.waiting:
        print(f"{run_id} waits: bascule approvals list --store runs.db")
    if result.status != "suspended":
        print(result.text)
    await client.close()
    store.close()
    return result.state.to_json()


if __name__ == "__main__":
    asked = sys.argv[1] if sys.argv[1:] else None
    if not asked and not SAVED.exists():
        print(f"nothing is saved to go on with: {sys.argv[0]} QUESTION", file=sys.stderr)
        sys.exit(2)
    if not os.environ.get("OPENAI_API_KEY"):
        print("set OPENAI_API_KEY; a server of your own may take any text", file=sys.stderr)
        sys.exit(2)
    try:
        SAVED.write_bytes(asyncio.run(talk(asked, b"" if asked else SAVED.read_bytes())))
    except BasculeError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
