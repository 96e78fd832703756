"""The concurrent.futures facade: calls of several functions are under way at once, in a fixed order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.guest.harness import run


def double(i: int) -> int:
    """Return twice the number."""
    return 2 * i


def fail(text: str) -> None:
    """Raise ValueError."""
    raise ValueError(text)


TOOLS: dict[str, Callable[..., Any]] = {"double": double, "fail": fail}
IMPORT = "from concurrent.futures import ThreadPoolExecutor, as_completed, wait, FIRST_COMPLETED\n"


def printed(script: str, **options: Any) -> str:
    """Run a script that must end well; return what it printed."""
    outcome = run(IMPORT + script, TOOLS, **options)
    assert outcome.errors == ()
    return outcome.output


@pytest.mark.parametrize("order", ["fifo", "lifo", "random"])
def test_map_keeps_the_order_of_its_items_in_any_order_of_completion(order: Any) -> None:
    script = """
def twice(i):
    return double(double(i))
with ThreadPoolExecutor(max_workers=4) as pool:
    print(list(pool.map(twice, range(10))), list(pool.map(double, range(3))))
"""
    assert printed(script, order=order) == f"{[4 * i for i in range(10)]} [0, 2, 4]\n"


def test_calls_of_a_pool_leave_together_and_no_more_than_it_has_workers() -> None:
    outcome = run(
        f"{IMPORT}with ThreadPoolExecutor(max_workers=3) as pool:\n"
        "    print(list(pool.map(lambda i: double(i), range(7))))\n",
        TOOLS,
    )
    assert outcome.output == f"{[2 * i for i in range(7)]}\n"
    assert len(outcome.acts[0].activations[0].commands) == 3
    assert all(len(act.activations[0].commands) <= 3 for act in outcome.acts)


def test_a_tool_needs_no_thread_of_its_own() -> None:
    outcome = run(
        f"{IMPORT}pool = ThreadPoolExecutor()\nfutures = [pool.submit(double, i) for i in range(20)]\n"
        "print([future.result() for future in futures])\n",
        TOOLS,
    )
    assert outcome.output == f"{[2 * i for i in range(20)]}\n"
    assert len(outcome.acts[0].activations[0].commands) == 20


def test_more_functions_than_threads_wait_for_their_turn() -> None:
    script = """
pools = [ThreadPoolExecutor(max_workers=32) for _ in range(3)]
futures = [pool.submit(lambda i: double(i), i) for pool in pools for i in range(30)]
print(sum(future.result() for future in futures))
"""
    assert printed(script) == f"{3 * sum(2 * i for i in range(30))}\n"


def test_as_completed_yields_what_is_done_first() -> None:
    script = """
with ThreadPoolExecutor() as pool:
    futures = {pool.submit(double, i): i for i in range(4)}
    print([(futures[future], future.result()) for future in as_completed(futures)])
"""
    assert printed(script, order="lifo") == "[(3, 6), (2, 4), (1, 2), (0, 0)]\n"
    assert printed(script) == "[(0, 0), (1, 2), (2, 4), (3, 6)]\n"


def test_failures_reach_whoever_asks_for_the_result() -> None:
    script = """
with ThreadPoolExecutor() as pool:
    tool, function, argument = pool.submit(fail, "a"), pool.submit(lambda: fail("b")), pool.submit(double)
for future in (tool, function, argument):
    try:
        future.result()
    except ValueError as error:
        print(type(error).__name__, str(error)[:20])
print(tool.exception(), tool.done(), tool.running(), tool.cancelled())
try:
    print(list(pool.map(fail, ["x", "y"])))
except RuntimeError as error:
    print(error)
"""
    assert printed(script).splitlines() == [
        "ValueError a",
        "ValueError b",
        "ToolArgumentError double(): 'i' is mis",
        "a True False False",
        "cannot schedule new futures after shutdown",
    ]


def test_results_have_a_timeout() -> None:
    script = """
import time
with ThreadPoolExecutor() as pool:
    slow = pool.submit(time.sleep, 50)
    try:
        slow.result(timeout=1)
    except TimeoutError as error:
        print("late", slow.done())
    try:
        slow.result(timeout=0)
    except TimeoutError as error:
        print("late", slow.done())
print(slow.result(timeout=1))
"""
    assert printed(script) == "late False\nlate False\nNone\n"


def test_wait_returns_what_is_done_and_what_is_not() -> None:
    script = """
import time
pool = ThreadPoolExecutor()
futures = [pool.submit(time.sleep, n) for n in (3, 1, 2)]
done, not_done = wait(futures, return_when=FIRST_COMPLETED)
print(len(done), len(not_done), futures[1] in done)
outcome = wait(futures, timeout=0.5)
print(len(outcome.done), len(outcome.not_done))
print(len(wait(futures).done))
"""
    assert printed(script) == "1 2 True\n1 2\n3\n"


def test_wait_for_the_first_exception() -> None:
    script = """
from concurrent.futures import FIRST_EXCEPTION
import time
pool = ThreadPoolExecutor()
futures = [pool.submit(time.sleep, 5), pool.submit(fail, "x")]
print([len(group) for group in wait(futures, return_when=FIRST_EXCEPTION)])
"""
    assert printed(script) == "[1, 1]\n"


def test_waiting_functions_can_be_cancelled() -> None:
    script = """
from concurrent.futures import CancelledError
pool = ThreadPoolExecutor(max_workers=1)
first, second, third = [pool.submit(lambda i=i: double(i)) for i in range(3)]
print(second.cancel(), second.cancelled(), first.cancel(), second.cancel())
try:
    second.result()
except CancelledError:
    print("cancelled")
try:
    second.exception()
except CancelledError:
    print("cancelled")
pool.shutdown(cancel_futures=True)
print(first.result(), third.cancelled(), first.cancel())
"""
    assert printed(script).splitlines() == [
        "True True False True",
        "cancelled",
        "cancelled",
        "0 True False",
    ]


def test_callbacks_are_called_once_it_is_done() -> None:
    script = """
with ThreadPoolExecutor() as pool:
    future = pool.submit(double, 4)
    future.add_done_callback(lambda future: print("done", future.result()))
    future.add_done_callback(lambda future: 1 / 0)
    print("waiting")
future.add_done_callback(lambda future: print("again"))
print(repr(future), repr(pool))
"""
    outcome = run(IMPORT + script, TOOLS)
    assert outcome.output.splitlines() == [
        "waiting",
        "done 8",
        "again",
        "<Future state=finished returned int> <ThreadPoolExecutor>",
    ]
    assert [note.code for note in outcome.notes] == ["callback_failed"]


def test_functions_that_were_submitted_run_even_if_nobody_waits() -> None:
    assert printed("ThreadPoolExecutor().submit(lambda: print(double(3)))\n") == "6\n"


def test_a_pool_inside_a_pool() -> None:
    script = """
def outer(n):
    with ThreadPoolExecutor() as pool:
        return sum(pool.map(lambda i: double(i), range(n)))
with ThreadPoolExecutor() as pool:
    print(list(pool.map(outer, range(4))))
"""
    assert printed(script) == "[0, 0, 2, 6]\n"


def test_an_initializer_runs_and_a_bad_size_is_refused() -> None:
    script = """
ThreadPoolExecutor(initializer=print, initargs=("ready",))
try:
    ThreadPoolExecutor(max_workers=0)
except ValueError as error:
    print(error)
"""
    assert printed(script) == "ready\nmax_workers must be greater than 0\n"


def test_a_function_that_waits_for_itself_is_a_deadlock() -> None:
    script = "pool = ThreadPoolExecutor()\nfuture = pool.submit(lambda: future.result())\nfuture.result()\n"
    assert run(IMPORT + script).error.kind == "deadlock"


def test_a_limit_in_a_pools_function_ends_the_run() -> None:
    outcome = run(
        f"{IMPORT}def shout():\n    try:\n        while True:\n            print('x' * 999)\n"
        "    finally:\n        print('swallowed')\n"
        "with ThreadPoolExecutor() as pool:\n    pool.submit(shout).result()\n",
        output_bytes=5_000,
    )
    assert outcome.error.kind == "output_limit"
    assert "swallowed" not in outcome.output


def test_asyncio_run_in_a_pools_function_is_refused_kindly() -> None:
    script = """
import asyncio
async def main():
    return 1
def work():
    coroutine = main()
    try:
        return asyncio.run(coroutine)
    finally:
        coroutine.close()
with ThreadPoolExecutor() as pool:
    print(repr(pool.submit(lambda: asyncio.run(main())).exception()))
"""
    assert "cannot be called from a pool's function" in run(IMPORT + script).output


def test_a_tool_called_in_a_worker_of_an_async_script_blocks_there() -> None:
    outcome = run(
        "import asyncio\ndef work(i):\n    return double(i)\n"
        "print(await asyncio.gather(*[asyncio.to_thread(double, i) for i in range(3)]))\n",
        TOOLS,
    )
    assert outcome.output == "[0, 2, 4]\n"


def test_the_real_module_is_not_what_a_script_gets() -> None:
    outcome = run("import concurrent.futures\nprint(concurrent.futures)\nconcurrent.futures.thread\n")
    assert outcome.status in {"failed", "refused"}
    assert run(f"{IMPORT}print(ThreadPoolExecutor()._queue)").status in {"failed", "refused"}
