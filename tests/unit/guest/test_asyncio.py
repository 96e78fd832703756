"""The asyncio facade does what CPython's asyncio does, in an order that never changes."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

import pytest

from tests.unit.guest.asyncio_scripts import SCRIPTS
from tests.unit.guest.harness import run
from tests.unit.guest.virtual_loop import VirtualLoop


def double(i: int) -> int:
    """Return twice the number."""
    return 2 * i


def fail(text: str) -> None:
    """Raise ValueError."""
    raise ValueError(text)


TOOLS: dict[str, Callable[..., Any]] = {"double": double, "fail": fail}


def printed_by_cpython(script: str) -> str:
    """Run a script on the real asyncio, outside of any sandbox: the scripts are our own."""

    def asynchronous(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        async def tool(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0)
            return function(*args, **kwargs)

        return tool

    lines: list[str] = []

    def show(*values: object) -> None:
        lines.append(" ".join(map(str, values)) + "\n")

    namespace: dict[str, Any] = {
        "asyncio": asyncio,
        "print": show,
        **{name: asynchronous(function) for name, function in TOOLS.items()},
    }
    with warnings.catch_warnings(), mock.patch.object(asyncio.events, "new_event_loop", VirtualLoop):
        warnings.simplefilter("ignore")
        exec(script, namespace)
    return "".join(lines)


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_prints_what_cpython_prints(name: str) -> None:
    script = f"import asyncio\n{SCRIPTS[name]}\nasyncio.run(main())\n"
    outcome = run(script, TOOLS)
    assert outcome.errors == ()
    assert outcome.output == printed_by_cpython(script)


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_prints_the_same_twice(name: str) -> None:
    script = f"import asyncio\n{SCRIPTS[name]}\nawait main()\n"
    first, second = run(script, TOOLS), run(script, TOOLS)
    assert first.output == second.output
    assert first.acts == second.acts


def test_the_real_asyncio_is_not_what_a_script_gets() -> None:
    outcome = run("import asyncio\nprint(asyncio)\nasyncio.subprocess\n")
    assert outcome.output in {"<module 'asyncio'>\n", ""}
    assert outcome.status in {"failed", "refused"}


@pytest.mark.parametrize(
    "use",
    [
        "loop.set_debug(True)",
        "loop.set_exception_handler(print)",
        "loop.call_soon(print)",
        "loop._ready",
        "loop.stop()",
        "asyncio.current_task().get_coro()",
        "asyncio.current_task().get_stack()",
        "asyncio.current_task()._coroutine",
        "asyncio.current_task().get_loop()",
        "asyncio.Future()._loop",
    ],
)
def test_the_loop_and_the_insides_of_tasks_are_out_of_reach(use: str) -> None:
    outcome = run(
        f"import asyncio\nloop = asyncio.get_running_loop()\nawait double(1)\nprint({use})\n", TOOLS
    )
    assert outcome.status in {"failed", "refused"}
    assert outcome.output == ""


def test_the_older_way_to_run_a_coroutine_works() -> None:
    outcome = run(
        "import asyncio\nasync def main():\n    return await double(2)\n"
        "loop = asyncio.get_event_loop()\nprint(loop.run_until_complete(main()), loop.is_running())\n"
        "loop.close()\n",
        TOOLS,
    )
    assert outcome.output == "4 False\n"


def test_run_until_complete_in_a_running_loop_says_what_to_write() -> None:
    outcome = run(
        "import asyncio\nawait double(1)\nloop = asyncio.get_event_loop()\n"
        "loop.run_until_complete(asyncio.gather(double(1)))\n",
        TOOLS,
    )
    assert outcome.status in {"failed", "refused"}
    assert "await" in outcome.error.message + (outcome.error.suggestion or "")


def test_a_wait_that_never_ends_is_found_and_located() -> None:
    outcome = run("import asyncio\nqueue = asyncio.Queue()\nprint('start')\nitem = await queue.get()\n")
    assert outcome.status == "failed"
    assert (outcome.error.kind, outcome.error.line) == ("deadlock", 4)
    assert outcome.output == "start\n"


def test_a_deadlock_cannot_be_swallowed() -> None:
    outcome = run(
        "import asyncio\nwhile True:\n    try:\n        await asyncio.Event().wait()\n"
        "    finally:\n        print('swallowed')\n        continue\n"
    )
    assert outcome.error.kind == "deadlock"
    assert outcome.output == ""


def test_gathered_calls_leave_in_one_stretch() -> None:
    outcome = run("import asyncio\nawait asyncio.gather(*[double(i) for i in range(50)])\n", TOOLS)
    assert len(outcome.acts[0].activations[0].commands) == 50


@pytest.mark.parametrize("order", ["fifo", "lifo", "random"])
@pytest.mark.parametrize("batch", [False, True])
def test_results_stay_with_their_calls_in_any_order_of_completion(order: Any, batch: bool) -> None:
    outcome = run(
        "import asyncio\nasync def twice(i):\n    return await double(await double(i))\n"
        "await asyncio.gather(*[twice(i) for i in range(20)])\n",
        TOOLS,
        order=order,
        batch=batch,
        seed=3,
    )
    assert outcome.value == [4 * i for i in range(20)]


def test_a_timed_out_call_is_cancelled_on_the_host_and_its_late_answer_ignored() -> None:
    outcome = run(
        "import asyncio\nasync def slow():\n    await asyncio.sleep(60)\n    return await double(1)\n"
        "try:\n    await asyncio.wait_for(slow(), timeout=1)\n"
        "except asyncio.TimeoutError:\n    print('late')\n"
        "print(await double(5))\n",
        TOOLS,
    )
    assert outcome.output == "late\n10\n"
    assert outcome.cancelled == [1] or outcome.cancelled == [2]
    assert outcome.calls == [("double", {"i": 5})]


def test_a_timer_that_is_not_needed_any_more_is_cancelled() -> None:
    outcome = run("import asyncio\nprint(await asyncio.wait_for(double(1), timeout=30))\n", TOOLS)
    assert outcome.output == "2\n"
    assert len(outcome.cancelled) == 1


def test_sets_of_tasks_iterate_in_the_order_of_their_creation() -> None:
    outcome = run(
        "import asyncio\ntasks = [asyncio.create_task(double(i)) for i in range(40)]\n"
        "done, pending = await asyncio.wait(tasks)\nprint([task.result() for task in done])\n",
        TOOLS,
        order="lifo",
    )
    assert outcome.output == f"{[2 * i for i in range(40)]}\n"


def test_a_call_that_was_never_awaited_is_noted_with_its_line() -> None:
    outcome = run("await double(1)\ncalls = [double(i) for i in range(2)]\nprint(len(calls))\n", TOOLS)
    notes = [(note.code, note.line) for note in outcome.notes]
    if outcome.status == "ok":
        assert notes == [("never_awaited", 2)]
        assert outcome.notes[0].message.endswith("(2 times)")
    else:
        assert outcome.error.kind == "missing_await"
    assert len(outcome.calls) <= 1


def test_a_task_left_behind_and_a_failure_nobody_saw_are_noted() -> None:
    outcome = run(
        "import asyncio\nasync def bad():\n    raise ValueError('unseen')\nasync def slow():\n"
        "    await asyncio.sleep(99)\none = asyncio.create_task(bad())\ntwo = asyncio.create_task(slow())\n"
        "await double(1)\n",
        TOOLS,
    )
    assert [note.code for note in outcome.notes] == ["task_cancelled", "task_failed"]
    assert "unseen" in outcome.notes[1].message


def test_nothing_in_this_file_brought_asyncio_into_the_guest() -> None:
    loaded = [name for name in sys.modules if name.startswith("bascule.guest")]
    for name in loaded:
        assert not hasattr(sys.modules[name], "asyncio")
