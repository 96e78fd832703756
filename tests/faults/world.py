"""The world outside the host: what tools did stays done when the host dies.

It counts every execution, and what each effect did under which key, so that a doubled or a lost effect shows.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

from bascule.bridge.store import Answer
from bascule.tools import AnyTool, DidNotHappen, Happened, ToolContext, tool
from tests.faults.plan import Plan

MAX_HOPS = 6


@dataclass
class World:
    """Tools and what they did.

    Attributes:
        effects: (tool, argument, idempotency key) of every effect that took place, in order.
        executions: how often each tool's function ran to its effect.
    """

    rng: random.Random
    plan: Plan = field(default_factory=Plan)
    effects: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])
    executions: Counter[str] = field(default_factory=Counter[str])
    values: dict[str, int] = field(default_factory=dict[str, int])

    async def _work(self) -> None:
        for _ in range(self.rng.randrange(MAX_HOPS)):
            await asyncio.sleep(0)
        self.plan.step()

    async def _effect(self, name: str, n: int, key: str) -> int:
        await self._work()
        self.effects.append((name, n, key))
        self.executions[name] += 1
        self.values[key] = n * 10
        self.plan.step()
        return n * 10

    def happened(self, key: str) -> bool:
        """Return whether the effect of a key took place."""
        return key in self.values

    def answer(self, key: str) -> Answer:
        """Answer truthfully as an operator who looked."""
        if not self.happened(key):
            return Answer(kind="did_not_happen", by="operator")
        return Answer(kind="happened", value=str(self.values[key]).encode(), by="operator")

    def state(self) -> list[tuple[str, int]]:
        """Return what a second effect of one call would change: all effects, whatever their order."""
        return sorted((name, n) for name, n, _ in self.effects)

    def tools(self) -> list[AnyTool]:
        """Return the tools of this world."""

        @tool(effects="read")
        async def look(n: int) -> int:
            """Read."""
            await self._work()
            self.executions["look"] += 1
            return n * 2

        @tool(effects="read")
        async def broken(n: int) -> int:
            """Fail."""
            await self._work()
            raise ValueError(f"no {n}")

        @tool(effects="read")
        async def never(n: int) -> int:
            """Never end."""
            await asyncio.get_running_loop().create_future()
            return n

        @tool(effects="once")
        async def put(n: int, context: ToolContext) -> int:
            """Do something that nobody can ask about."""
            return await self._effect("put", n, context.idempotency_key)

        @tool(effects="once", parallel_safe=True)
        async def push(n: int, context: ToolContext) -> int:
            """Do something beside others."""
            return await self._effect("push", n, context.idempotency_key)

        async def reconcile(key: str) -> Happened | DidNotHappen:
            self.plan.step()
            return Happened(self.values[key]) if self.happened(key) else DidNotHappen()

        @tool(effects="once", reconcile=reconcile)
        async def pay(n: int, context: ToolContext) -> int:
            """Do something that can be asked about."""
            return await self._effect("pay", n, context.idempotency_key)

        @tool(effects="idempotent")
        async def store(n: int, context: ToolContext) -> int:
            """Do something that a second time changes nothing."""
            await self._work()
            key = context.idempotency_key
            if not self.happened(key):
                self.effects.append(("store", n, key))
            self.values[key] = n * 10
            self.executions["store"] += 1
            self.plan.step()
            return n * 10

        return [look, broken, never, put, push, pay, store]
