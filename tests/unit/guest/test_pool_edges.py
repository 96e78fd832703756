"""Pools at their edges: cancelled work, ends of the run while functions wait, timeouts, shutdown."""

from __future__ import annotations

import pytest

from tests.unit.guest.harness import run
from tests.unit.guest.test_pool import IMPORT, TOOLS, printed

WAITS = "import time\ndef work(i):\n    time.sleep(i)\n    return i\n"


def test_work_that_was_cancelled_in_the_queue_never_runs() -> None:
    assert (
        printed(
            f"{WAITS}with ThreadPoolExecutor(max_workers=1) as pool:\n"
            "    futures = [pool.submit(work, i) for i in (1, 2, 3)]\n"
            "    print(repr(futures[:2]), futures[1].cancel(), futures[1])\n"
            "print([f.cancelled() for f in futures], futures[2].result())\n"
        )
        == "[<Future state=running>, <Future state=pending>] True <Future state=cancelled>\n"
        "[False, True, False] 3\n"
    )


def test_a_failure_cancels_the_rest_of_a_map() -> None:
    assert (
        printed(
            "import time\nran = []\ndef work(i):\n    ran.append(i)\n    time.sleep(i)\n"
            "    return 1 // (i - 1)\n"
            "pool = ThreadPoolExecutor(max_workers=1)\n"
            "try:\n    for result in pool.map(work, [1, 2, 3]):\n        print(result)\n"
            "except ZeroDivisionError:\n    print('failed')\npool.shutdown()\nprint(ran)\n"
        )
        == "failed\n[1, 2]\n"
    )


def test_shutdown_need_not_wait() -> None:
    assert (
        printed(
            f"{WAITS}pool = ThreadPoolExecutor()\nfuture = pool.submit(work, 1)\npool.shutdown(wait=False)\n"
            "print(future.done(), future.result())\n"
        )
        == "False 1\n"
    )


def test_a_result_in_time_takes_its_timer_back() -> None:
    outcome = run(
        f"{IMPORT}{WAITS}with ThreadPoolExecutor() as pool:\n"
        "    print(pool.submit(work, 1).result(timeout=5))\n"
    )
    assert outcome.output == "1\n"
    assert len(outcome.cancelled) == 1


def test_as_completed_runs_out_of_time() -> None:
    assert (
        printed(
            f"{WAITS}with ThreadPoolExecutor() as pool:\n"
            "    futures = [pool.submit(work, i) for i in (1, 9)]\n"
            "    try:\n        for future in as_completed(futures, timeout=2):\n"
            "            print(future.result())\n    except TimeoutError as error:\n        print(error)\n"
        )
        == "1\n1 (of 2) futures unfinished\n"
    )


def test_a_function_may_wait_for_one_that_is_done() -> None:
    assert (
        printed(
            "with ThreadPoolExecutor() as pool:\n    first = pool.submit(double, 2)\n    first.result()\n"
            "    print(pool.submit(lambda: (first.result(), double(first.result()))).result())\n"
        )
        == "(4, 8)\n"
    )


@pytest.mark.parametrize(
    "script",
    [
        f"{WAITS}pool = ThreadPoolExecutor()\n"
        "futures = [pool.submit(work, 99), pool.submit(lambda: print('x' * 9999))]\n"
        "futures[1].result()\n",
        f"{WAITS}pool = ThreadPoolExecutor()\npool.submit(work, 99)\n"
        "pool.submit(work, 1).result()\nprint('x' * 9999)\n",
        "import asyncio, time\nasync def main():\n    loop = asyncio.get_running_loop()\n"
        "    first = loop.run_in_executor(None, time.sleep, 99)\n"
        "    await asyncio.to_thread(lambda: (time.sleep(1), print('x' * 9999)))\nasyncio.run(main())\n",
    ],
)
def test_a_limit_ends_the_run_while_functions_wait(script: str) -> None:
    outcome = run(IMPORT + script, TOOLS, output_bytes=1_000)
    assert outcome.error.kind == "output_limit"
    assert len(outcome.output) == 1_000


def test_what_a_cancelled_executor_call_gives_is_dropped() -> None:
    outcome = run(
        "import asyncio, time\nasync def main():\n    loop = asyncio.get_running_loop()\n"
        "    def good():\n        time.sleep(1)\n        print('ran')\n"
        "    def bad():\n        time.sleep(1)\n        raise ValueError\n"
        "    late = loop.run_in_executor(None, print, 'never')\n    late.cancel()\n"
        "    futures = [loop.run_in_executor(None, work) for work in (good, bad)]\n"
        "    await asyncio.sleep(0.5)\n    for future in futures:\n        future.cancel()\n"
        "    await asyncio.sleep(2)\n    print([future.cancelled() for future in futures])\n"
        "asyncio.run(main())\n"
    )
    assert outcome.errors == ()
    assert outcome.output == "ran\n[True, True]\n"


def test_more_functions_than_threads_wait_for_their_turn() -> None:
    outcome = run(
        "import asyncio, time\nasync def main():\n    def work(i):\n        time.sleep(1)\n        return i\n"
        "    print(sum(await asyncio.gather(*[asyncio.to_thread(work, i) for i in range(40)])))\n"
        "asyncio.run(main())\n"
    )
    assert outcome.output == "780\n"


def test_pools_in_the_functions_of_a_full_pool_still_get_threads() -> None:
    assert (
        printed(
            f"{WAITS}def outer(i):\n"
            "    with ThreadPoolExecutor(4) as inner:\n"
            "        return sum(inner.map(work, range(i, i + 4)))\n"
            "with ThreadPoolExecutor(40) as pool:\n"
            "    print(list(pool.map(outer, range(50))) == [4 * i + 6 for i in range(50)])\n"
        )
        == "True\n"
    )


def test_a_chain_of_pools_that_has_no_thread_left_says_so() -> None:
    outcome = run(
        f"{IMPORT}def deep(n):\n"
        "    if n == 0:\n        return 1\n"
        "    with ThreadPoolExecutor(1) as pool:\n"
        "        return pool.submit(deep, n - 1).result() + 1\n"
        "print(deep(46))\n"
        "deep(60)\n"
    )
    assert outcome.output == "47\n"
    assert outcome.error.kind == "deadlock"
    assert "48 functions in thread pools wait for others that have no thread left" in outcome.error.message
    assert outcome.error.suggestion == (
        "Use one pool, and submit to it from the outside, not from the functions it runs."
    )
