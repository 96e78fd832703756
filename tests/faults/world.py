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
    """What tools did.

    Attributes:
        effects: (tool, argument, idempotency key) of every effect that took place, in order.
        executions: how often each tool's function ran to its effect.
    """

    rng: random.Random
    plan: Plan = field(default_factory=Plan)
    effects: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])
    executions: Counter[str] = field(default_factory=Counter[str])
    values: dict[str, int] = field(default_factory=dict[str, int])

    async def work(self) -> None:
        """Take a random number of turns of the loop."""
        for _ in range(self.rng.randrange(MAX_HOPS)):
            await asyncio.sleep(0)
        self.plan.step()

    async def effect(self, name: str, n: int, key: str) -> int:
        """Do something that must not happen twice."""
        await self.work()
        self.effects.append((name, n, key))
        self.executions[name] += 1
        self.values[key] = n * 10
        self.plan.step()
        return n * 10

    async def set_again(self, n: int, key: str) -> int:
        """Do something that a second time changes nothing."""
        await self.work()
        if not self.happened(key):
            self.effects.append(("store", n, key))
        self.values[key] = n * 10
        self.executions["store"] += 1
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


class Stage:
    """Tools that are defined once and act on the world that is on stage; defining them takes longest."""

    def __init__(self) -> None:
        self.world = World(random.Random(0))
        self.tools = self._define()

    async def _effect(self, name: str, n: int, context: ToolContext) -> int:
        return await self.world.effect(name, n, context.idempotency_key)

    def _define(self) -> list[AnyTool]:
        @tool(effects="read")
        async def look(n: int) -> int:
            """Read."""
            await self.world.work()
            self.world.executions["look"] += 1
            return n * 2

        @tool(effects="read")
        async def broken(n: int) -> int:
            """Fail."""
            await self.world.work()
            raise ValueError(f"no {n}")

        @tool(effects="read")
        async def never(n: int) -> int:
            """Never end."""
            await asyncio.get_running_loop().create_future()
            return n

        @tool(effects="once")
        async def put(n: int, context: ToolContext) -> int:
            """Do something that nobody can ask about."""
            return await self._effect("put", n, context)

        @tool(effects="once", parallel_safe=True)
        async def push(n: int, context: ToolContext) -> int:
            """Do something beside others."""
            return await self._effect("push", n, context)

        async def reconcile(key: str) -> Happened | DidNotHappen:
            world = self.world
            world.plan.step()
            return Happened(world.values[key]) if world.happened(key) else DidNotHappen()

        @tool(effects="once", reconcile=reconcile)
        async def pay(n: int, context: ToolContext) -> int:
            """Do something that can be asked about."""
            return await self._effect("pay", n, context)

        @tool(effects="idempotent")
        async def store(n: int, context: ToolContext) -> int:
            """Do something that a second time changes nothing."""
            return await self.world.set_again(n, context.idempotency_key)

        return [look, broken, never, put, push, pay, store]
