"""What a strong model naturally writes runs unchanged: the public tasks, against what plain CPython gives.

Twice: with forked guests (no wall, fast: the interpreter and the bridge), and in the real container.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

import pytest

from bascule.sandbox import Backend, open_backend
from tests.conformance.tasks import Task, Verdict, load_tasks, run_suite, table
from tests.forks.backend import ForkBackend

TASKS = load_tasks()
THRESHOLD = 0.99


def run_all(open_one: Callable[[], Backend], *, at_once: int) -> list[Verdict]:
    """Run all tasks, a few suites at a time; within a suite one after the other."""
    by_suite: dict[str, list[Task]] = defaultdict(list)
    for task in TASKS:
        by_suite[task.suite].append(task)

    async def run() -> list[Verdict]:
        backend = open_one()
        slots = asyncio.Semaphore(at_once)

        async def one(name: str) -> list[Verdict]:
            async with slots:
                return await run_suite(name, by_suite[name], backend)

        try:
            return [verdict for some in await asyncio.gather(*map(one, by_suite)) for verdict in some]
        finally:
            await backend.close()

    return asyncio.run(run())


def report(verdicts: list[Verdict], capsys: pytest.CaptureFixture[str]) -> None:
    """Print the table, passing or not, and hold it against the threshold."""
    with capsys.disabled():
        print(f"\n{table(verdicts)}")
    assert len(verdicts) == len(TASKS)
    assert [verdict.task.id for verdict in verdicts if verdict.kind == "wrong"] == []
    assert sum(verdict.kind == "right" for verdict in verdicts) >= THRESHOLD * len(verdicts)


def test_the_interpreter_gives_what_plain_python_gives(capsys: pytest.CaptureFixture[str]) -> None:
    report(run_all(ForkBackend, at_once=2), capsys)


@pytest.mark.engine
def test_the_container_gives_what_plain_python_gives(capsys: pytest.CaptureFixture[str]) -> None:
    report(run_all(lambda: open_backend("container", build=True), at_once=3), capsys)
