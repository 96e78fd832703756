"""The tools and executors of the model tests: a small shop, run by the guest's real program in forks."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

from bascule.bridge import Executor, Limits, ask_elsewhere
from bascule.tools import Tool, tool
from tests.forks.backend import ForkBackend

Status = Literal["open", "paid"]


class Shop:
    """Orders, and what was done to them.

    Attributes:
        sent: mails that were sent.
        refunds: refunds that were made.
    """

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.refunds: list[tuple[int, float]] = []
        self.tools = (*self._reads(), *self._effects())

    def _reads(self) -> tuple[Tool[Any, Any], ...]:
        @tool(effects="read", name="crm.orders", labels={"private"})
        def orders(customer: str, status: Status | None = None) -> list[dict[str, Any]]:
            """List the orders of a customer.

            Args:
                customer: name of the customer.
            """
            found: list[dict[str, Any]] = [
                {
                    "id": number,
                    "customer": customer,
                    "status": "paid" if number % 2 else "open",
                    "total": 10.5,
                }
                for number in range(1, 41)
            ]
            return [order for order in found if status in (None, order["status"])]

        @tool(effects="read")
        def add(a: int, b: int = 0) -> int:
            """Add two numbers."""
            return a + b

        @tool(effects="read")
        def broken() -> int:
            """Always fail."""
            raise ValueError("the ledger is closed on Sundays")

        return orders, add, broken

    def _effects(self) -> tuple[Tool[Any, Any], ...]:
        @tool(labels={"external"}, name="mail.send")
        def send(to: str, text: str) -> str:
            """Send a mail."""
            self.sent.append(f"{to}: {text}")
            return f"sent to {to}"

        @tool(effects="idempotent")
        def refund(order: int, amount: float) -> dict[str, Any]:
            """Refund an order."""
            self.refunds.append((order, amount))
            return {"order": order, "amount": amount}

        return send, refund


QUICK = Limits(hold_warm_s=0.0)
"""A run that waits for people is suspended at once."""


@asynccontextmanager
async def open_executor(backend: ForkBackend, shop: Shop, **options: Any) -> AsyncGenerator[Executor]:
    """Give an executor over forks; calls with effects wait for a decision unless an approver is given."""
    options.setdefault("approver", ask_elsewhere)
    options.setdefault("limits", QUICK)
    async with Executor(shop.tools, backend=backend, **options) as executor:
        yield executor
