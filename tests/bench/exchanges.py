"""Runs tasks that others wrote as scripts and counts their tokens; every call must equal the recorded one.

What is measured is the protocol: the calls are given, none is a model's choice. So the figures say what a
script saves when the model writes the right one, and nothing about how often it does.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from bascule.bridge import Executor, Limits, approve_all
from bascule.bridge.memory_store import MemoryStore
from bascule.models import ToolSurface, build_prompt
from bascule.models.counting import TokenCounter
from bascule.models.exchange import Exchange
from bascule.models.run_account import Definitions, account_journal
from bascule.sandbox import Backend
from bascule.tools import AnyTool
from tests.bench.nestful import Replay, Task, TravelApi
from tests.conformance.tasks import Suite
from tests.conformance.tasks import Task as WrittenTask

LIMITS = Limits(wall_s=60.0, cpu_s=30.0, output_bytes=4 << 20)
AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """One task: what it cost, or how it differs from what was recorded."""

    id: str
    exchange: Exchange | None
    problem: str = ""


_One = TypeVar("_One")


def measure_definitions(executor: Executor, counter: TokenCounter) -> Definitions:
    """Return the tokens of an executor's tools, as functions of their own and as a surface for scripts."""
    surface = ToolSurface(executor, direct="none", count_tokens=counter.count)
    direct = [
        {"name": each.name, "description": each.description, "parameters": each.parameters}
        for each in executor.registry
    ]
    own = [
        {"name": each.name, "description": each.description, "parameters": each.parameters}
        for each in surface.tools
    ]
    return Definitions(
        direct=_count_json(direct, counter),
        script=build_prompt(surface).tokens + _count_json(own, counter),
    )


async def measure_travel(
    api: TravelApi, tasks: Sequence[Task], backend: Backend, counter: TokenCounter
) -> list[Measured]:
    """Run the scripts of ComplexFuncBench against the recorded responses."""

    async def one(task: Task) -> Measured:
        replay = Replay(task)
        exchange, problem = await _run(
            task.id, api.tools(task, replay.answer), task.script(), task.question, backend, counter
        )
        if not problem and replay.calls != replay.expected:
            problem = f"calls {replay.calls} are not {replay.expected}"
        if exchange is not None:  # which call needs which result is known here, not guessed
            known = zip(exchange.calls, task.steps, strict=True)
            exchange = replace(
                exchange,
                origin="ComplexFuncBench",
                calls=tuple(replace(call, round=step.round) for call, step in known),
            )
        return Measured(task.id, exchange, problem)

    return await _in_turn(tasks, one)


async def measure_written(
    tasks: Sequence[WrittenTask], backend: Backend, counter: TokenCounter
) -> list[Measured]:
    """Run the model-written scripts of tests/conformance; the questions are not known and count nothing."""
    measured: list[Measured] = []
    for name, some in itertools.groupby(
        sorted(tasks, key=lambda task: task.suite), key=lambda task: task.suite
    ):
        suite = Suite(name)
        for task in some:
            suite.reset()
            exchange, problem = await _run(task.id, suite.tools, task.script, "", backend, counter)
            if exchange is not None:
                exchange = replace(exchange, origin="Scripts that models wrote")
            measured.append(Measured(task.id, exchange, problem))
    return measured


async def _run(
    name: str,
    tools: Sequence[AnyTool],
    script: str,
    question: str,
    backend: Backend,
    counter: TokenCounter,
) -> tuple[Exchange | None, str]:
    """Run one script; return what it cost, or why it cannot be counted."""
    store = MemoryStore(keep_values=True)
    executor = Executor(tools, backend=backend, store=store, approver=approve_all, limits=LIMITS)
    async with executor:
        result = await executor.run(script, seed=1)
        journal = store.journal(result.run_id)
        assert journal is not None
        if result.status != "ok":
            return None, f"{result.status}: {result.error and result.error.message}"
        counted = account_journal(
            result.run_id,
            journal.entries,
            counter,
            definitions=measure_definitions(executor, counter),
            question=question,
        )
    return replace(counted, id=name), ""


async def _in_turn(tasks: Sequence[_One], measure: Callable[[_One], Awaitable[Measured]]) -> list[Measured]:
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(task: _One) -> Measured:
        async with slots:
            return await measure(task)

    return list(await asyncio.gather(*map(one, tasks)))


def _count_json(value: object, counter: TokenCounter) -> int:
    return counter.count(msgspec.json.encode(value).decode())
