"""Random scripts that run much side by side, and whose result does not depend on who is faster."""

from __future__ import annotations

import random

_TOOLS = ("look", "look", "put", "push", "pay", "store")


class ScriptMaker:
    """Writes one script.

    Args:
        rng: decides everything.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._number = 0
        self._lines: list[str] = []

    def make(self) -> str:
        """Return a script of a few steps that returns what all of them gave."""
        self._lines = ["import asyncio", "out = []", "gate = asyncio.Semaphore(2)", *_HELPERS]
        for _ in range(self._rng.randrange(2, 5)):
            self._step()
        self._lines.append("return out")
        return "\n".join(self._lines) + "\n"

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _call(self) -> str:
        return f"{self._rng.choice(_TOOLS)}({self._next()})"

    def _awaitable(self, depth: int = 0) -> str:
        kind = self._rng.randrange(6 if depth < 2 else 3)
        if kind == 1:
            return f"chain({self._next()}, {self._rng.randrange(1, 3)})"
        if kind == 2:
            return f"gated({self._call()})"
        if kind in (3, 4):
            inner = ", ".join(self._awaitable(depth + 1) for _ in range(self._rng.randrange(1, 4)))
            return f"asyncio.gather({inner})"
        if kind == 5:
            return f"careful({self._next()})"
        return self._call()

    def _step(self) -> None:
        kind = self._rng.randrange(7)
        add = self._lines.append
        if kind == 0:
            add(f"out.append(await {self._call()})")
        elif kind == 1:
            parts = ", ".join(self._awaitable() for _ in range(self._rng.randrange(2, 5)))
            add(f"out.append(await asyncio.gather({parts}))")
        elif kind == 2:
            first, second = self._next(), self._next()
            add(f"t{first} = asyncio.create_task(chain({first}, 2))")
            add(f"out.append(await {self._call()})")
            add(f"t{second} = asyncio.create_task(gated({self._call()}))")
            add(f"out.append([await t{second}, await t{first}])")
        elif kind == 3:
            add("try:")
            add(f"    await asyncio.wait_for(never({self._next()}), 0.001)")
            add("except TimeoutError:")
            add("    out.append('late')")
        elif kind == 4:
            add(f"print('step', {self._next()}, out)")
            add(f"out.append(await asyncio.wait_for({self._call()}, 60))")
        elif kind == 5:
            first = self._next()
            self._number += 1
            add(f"made = [asyncio.create_task(chain(i, 1)) for i in range({first}, {first + 2})]")
            add("done, rest = await asyncio.wait(made)")
            add("out.append(sorted(task.result() for task in done))")
        else:
            add("async with asyncio.TaskGroup() as group:")
            names = [f"g{self._next()}" for _ in range(self._rng.randrange(1, 4))]
            for name in names:
                add(f"    {name} = group.create_task(chain({self._next()}, 1))")
            add(f"out.append([{', '.join(f'{name}.result()' for name in names)}])")


_HELPERS = (
    "async def gated(call):",
    "    async with gate:",
    "        return await call",
    "async def chain(n, times):",
    "    total = 0",
    "    for i in range(times):",
    "        total += await look(n + i)",
    "        total += await put(n * 100 + i)",
    "    return total",
    "async def careful(n):",
    "    try:",
    "        return await broken(n)",
    "    except ValueError as error:",
    "        await asyncio.sleep(0)",
    "        return str(error)",
)
