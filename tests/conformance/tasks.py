"""The model-written tasks: how they are read, run through an executor, and compared with plain CPython.

A task is right when output, value, final state of the suite and number of calls equal the reference. A
difference that comes with an error is a refusal; one without is *wrong*, which is worse.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from bascule.bridge import Executor, Limits, Result, approve_all
from bascule.sandbox import Backend
from bascule.tools import AnyTool
from bascule.tools.loading import load_tools

CASES = Path(__file__).parent / "cases"
LIMITS = Limits(wall_s=20.0, cpu_s=20.0, run_s=60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task; the expectations are what plain CPython gave."""

    id: str
    suite: str
    dialect: str
    script: str
    stdout: str
    value: Any
    state_sha256: str
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How one task compares.

    Attributes:
        kind: ``right``, ``refused`` (differs, and an error says so) or ``wrong`` (differs without an error).
        differences: one line each.
    """

    task: Task
    kind: Literal["right", "refused", "wrong"]
    differences: tuple[str, ...] = ()


def load_tasks() -> list[Task]:
    """Return every task, by number."""
    tasks: list[Task] = []
    for path in sorted((CASES / "tasks").glob("*.json")):
        data = cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
        tasks.append(
            Task(
                id=data["id"],
                suite=data["suite"],
                dialect=data["dialect"],
                script=data["script"],
                stdout=data["expected_stdout"],
                value=data["expected_value"],
                state_sha256=data["expected_state_sha256"],
                calls=data["n_tool_calls"],
            )
        )
    return tasks


class Suite:
    """A tool suite with its state, loaded once and reset before each task."""

    def __init__(self, name: str) -> None:
        self.tools: list[AnyTool] = load_tools(str(CASES / "suites" / f"{name}.py"))
        module = self.tools[0].function.__globals__
        self._reset = cast("Callable[[], None]", module["reset"])
        self._state = cast("Callable[[], Any]", module["state"])

    def reset(self) -> None:
        """Bring the suite back to its beginning."""
        self._reset()

    def state_sha256(self) -> str:
        """Return the hash of the suite's state as the reference takes it."""
        text = json.dumps(self._state(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


async def run_suite(name: str, tasks: Sequence[Task], backend: Backend) -> list[Verdict]:
    """Run the tasks of one suite in turn; each in a fresh sandbox, everything approved."""
    suite = Suite(name)
    verdicts: list[Verdict] = []
    async with Executor(suite.tools, approver=approve_all, limits=LIMITS, backend=backend) as executor:
        for task in tasks:
            suite.reset()
            result = await executor.run(task.script, seed=1)
            verdicts.append(compare(task, result, suite.state_sha256()))
    return verdicts


def compare(task: Task, result: Result, state_sha256: str) -> Verdict:
    """Compare a result with the reference."""
    given = result.value if result.value_source in ("return", "last_expression") else None
    differences: list[str] = []
    if result.status != "ok":
        differences.append(f"{result.status}: {result.error and result.error.message}"[:300])
    if result.output != task.stdout:
        differences.append(f"output {result.output[:120]!r} != {task.stdout[:120]!r}")
    if given != task.value:
        differences.append(f"value {given!r:.120} != {task.value!r:.120} ({result.value_source})")
    if state_sha256 != task.state_sha256:
        differences.append("final state differs")
    if len(result.calls) != task.calls:
        differences.append(f"{len(result.calls)} calls != {task.calls}")
    if not differences:
        return Verdict(task=task, kind="right")
    return Verdict(
        task=task, kind="wrong" if result.status == "ok" else "refused", differences=tuple(differences)
    )


def table(verdicts: Sequence[Verdict]) -> str:
    """Return the failures as text, with a summary line."""
    bad = [verdict for verdict in verdicts if verdict.kind != "right"]
    right = len(verdicts) - len(bad)
    lines = [
        f"{right} of {len(verdicts)} tasks right, "
        f"{sum(verdict.kind == 'wrong' for verdict in bad)} wrong without an error"
    ]
    for verdict in bad:
        task = verdict.task
        lines.append(
            f"  {verdict.kind:8} {task.id} {task.suite}/{task.dialect}: {'; '.join(verdict.differences)}"
        )
    return "\n".join(lines)
