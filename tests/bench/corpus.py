"""The slow-down on what models write: the public tasks, plain and guarded, in this process, in turn.

Both sides get the same wrapping into a function and the same tools, which answer what they answered when the
task was first run, and are compiled beforehand; what differs is the guards, the facades and the loop. CPU
time, so other work on the machine matters little. Tasks that sleep are left out: plain Python would wait.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import statistics
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import CodeType
from typing import Any, NoReturn, cast

from bascule.guest import hidden
from bascule.guest.aio.runner import run_to_end
from bascule.guest.bindings import bound_in
from bascule.guest.cleanup import clean_text, clean_tree
from bascule.guest.compiler import CompiledScript, compile_script
from bascule.guest.ending import RunEnded
from bascule.guest.namespace import build_namespace
from bascule.guest.outline import outline
from bascule.guest.run import Run
from bascule.tools import AnyTool
from bascule.wire import Act, Done, Finish, GuestLimits, Start
from tests.conformance.tasks import Suite, Task, load_tasks

_LIMITS = GuestLimits(
    wall_s=600, cpu_s=600, memory_bytes=1 << 30, output_bytes=1 << 30, recursion=800, calls=1 << 30,
    frame_bytes=8 << 20,
)  # fmt: skip
_SAMPLE_S = 0.01
"""CPU seconds of plain Python in one sample; short tasks are repeated."""

Tools = dict[str, Callable[..., Any]]


class _Nobody:
    """A host of which nothing is asked: tools answer in this process."""

    def exchange(self, act: Act) -> Done:
        """Refuse: no task here waits for a host."""
        raise AssertionError(f"a task waits for the host: {act}")

    def hand_over(self, act: Act) -> None:
        """Drop output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowdown:
    """CPU time guarded over CPU time plain of one task, the median of the rounds."""

    id: str
    is_async: bool
    factor: float


def slowdowns(rounds: int) -> list[Slowdown]:
    """Measure every task that does not sleep."""
    suites: dict[str, Suite] = {}
    found: list[Slowdown] = []
    for task in load_tasks():
        if "sleep(" in task.script:
            continue
        suite = suites.setdefault(task.suite, Suite(task.suite))
        found.append(_slowdown(task, suite, rounds))
    return found


def _slowdown(task: Task, suite: Suite, rounds: int) -> Slowdown:
    answers = Answers(suite)
    functions = {tool.name: answers.tool(tool) for tool in suite.tools}
    compiled = compile_script(task.script, tool_names=functions)
    tools = _awaitable(functions) if compiled.uses_async else functions
    plain, ours = _plain(task, tools), _ours(compiled, tools)
    suite.reset()
    expected = plain()
    answers.begin()
    assert ours() == expected, f"{task.id} prints something else"
    once_s = _cpu_s(plain, answers, 3) / 3
    times = max(1, round(_SAMPLE_S / max(once_s, 1e-6)))
    ratios: list[float] = []
    for _ in range(rounds):
        plain_s = _cpu_s(plain, answers, times)
        ratios.append(_cpu_s(ours, answers, times) / plain_s)
    return Slowdown(id=task.id, is_async=compiled.uses_async, factor=statistics.median(ratios))


class Answers:
    """What the tools of a suite said when a task called them first, to be said again without them."""

    def __init__(self, suite: Suite) -> None:
        self._said: dict[str, list[bytes | Exception]] = {}
        self._next: dict[str, int] = {}
        self._suite = suite

    def begin(self) -> None:
        """Say everything again from the first answer on."""
        self._next.clear()

    def tool(self, tool: AnyTool) -> Callable[..., Any]:
        """Return a function that answers as the tool did, with fresh plain data."""
        names = list(tool.parameters["properties"])

        def call(*args: Any, **kwargs: Any) -> Any:
            key = f"{tool.name}{args}{kwargs}"
            number = self._next.get(key, 0)
            self._next[key] = number + 1
            said = self._said.setdefault(key, [])
            if number == len(said):
                said.append(_answer(tool, _bound(names, args, kwargs)))
            answer = said[number]
            if isinstance(answer, Exception):
                raise answer
            return json.loads(answer)

        return call


def _bound(names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by name; a lone dict whose keys are parameters is all of them."""
    if len(args) == 1 and not kwargs and isinstance(args[0], dict):
        given = cast("dict[str, Any]", args[0])
        if given.keys() <= set(names):
            return given
    return dict(zip(names, args, strict=False), **kwargs)


def _answer(tool: AnyTool, given: dict[str, Any]) -> bytes | Exception:
    try:
        value = tool.call(tool.validate(given).values)
        return tool.dump_result(_finished(value) if inspect.iscoroutine(value) else value)
    except Exception as error:
        # Whatever the tool raises is its answer.
        return error


def _finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Drive a coroutine that waits for nothing to its end; a loop may be running already."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as ended:
            return ended.value


def _cpu_s(run: Callable[[], str], answers: Answers, times: int) -> float:
    total_s = 0.0
    for _ in range(times):
        answers.begin()
        began = time.process_time()
        run()
        total_s += time.process_time() - began
    return total_s


def _awaitable(functions: Tools) -> Tools:
    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        async def tool(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return tool

    return {name: make(function) for name, function in functions.items()}


def _plain(task: Task, tools: Tools) -> Callable[[], str]:
    """Return what runs a task in plain Python and returns its output."""
    code, is_async = _wrapped(task, list(tools))
    namespace: dict[str, Any] = {"__name__": "__main__", **tools}
    exec(code, namespace)
    function = namespace[hidden.SCRIPT]

    def run() -> str:
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            if is_async:
                asyncio.run(function())
            else:
                function()
        return text.getvalue()

    return run


def _wrapped(task: Task, tool_names: list[str]) -> tuple[CodeType, bool]:
    """Compile a task as ours is, a function with its names declared global, without any guard."""
    _, text, _ = clean_text(task.script)
    tree = ast.parse(text)
    clean_tree(tree, outline(tree), tool_names)
    is_async = any(_awaits_at_top(node) for node in tree.body)
    tree = _WithoutAnnotations().visit(tree)
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    names = sorted(bound_in(tree.body))
    function = ast.parse("async def wrapped(): pass" if is_async else "def wrapped(): pass").body[0]
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    function.name = hidden.SCRIPT
    function.body = [
        *([ast.Global(names)] if names else []),
        *(node for node in tree.body if node not in futures),
    ]
    module = ast.fix_missing_locations(ast.Module([*futures, function], []))
    return compile(module, "<plain>", "exec", dont_inherit=True), is_async


class _WithoutAnnotations(ast.NodeTransformer):
    """Drops the annotations of module-level names, which cannot be global and annotated at once."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Make it an assignment, or nothing."""
        made = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        return ast.copy_location(made, node)

    def keep(self, node: ast.AST) -> ast.AST:
        """Leave what has a scope of its own as it is."""
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = keep


def _awaits_at_top(node: ast.AST) -> bool:
    if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
        return True
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return False
    return any(_awaits_at_top(child) for child in ast.iter_child_nodes(node))


def _ours(compiled: CompiledScript, tools: Tools) -> Callable[[], str]:
    """Return what runs a compiled task with the guards and returns its output."""
    start = Start(script="", tools=(), seed=1, now=0.0, limits=_LIMITS)
    run_of = Run(start, _Nobody(), _end)
    environment = run_of.environment
    namespace = build_namespace(compiled, environment, dict(tools))
    exec(compiled.code, namespace)
    function = cast("Callable[[], Any]", namespace[hidden.SCRIPT])

    def run() -> str:
        if compiled.is_async:
            run_to_end(run_of.loop, function())
        else:
            function()
        run_of.loop.finish_workers()
        return environment.output.take()

    return run


def _end(finish: Finish) -> NoReturn:
    raise RunEnded(finish)
