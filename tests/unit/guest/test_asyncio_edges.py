"""The asyncio facade where its parts meet in one turn, and where it differs from CPython's on purpose."""

from __future__ import annotations

import pytest

from bascule.guest import futures
from bascule.guest.futures import current_loop
from tests.unit.guest.asyncio_edge_scripts import EDGES
from tests.unit.guest.harness import run
from tests.unit.guest.test_asyncio import TOOLS, printed_by_cpython


@pytest.mark.parametrize("name", EDGES)
def test_it_prints_what_cpython_prints(name: str) -> None:
    script = f"import asyncio\n{EDGES[name]}\nasyncio.run(main())\n"
    outcome = run(script, TOOLS)
    assert outcome.errors == ()
    assert outcome.output == printed_by_cpython(script)
    assert outcome.output


OWN = {
    "texts": (
        """
lock, event, condition = asyncio.Lock(), asyncio.Event(), asyncio.Condition()
print(lock, event, condition, condition.locked(), asyncio.Semaphore(2), asyncio.Queue(3))
async with lock, condition, asyncio.TaskGroup() as group, asyncio.timeout(5) as scope:
    event.set()
    print(lock, event, condition, group, scope)
print(scope, asyncio.timeout(1), asyncio.get_running_loop())
""",
        "<Lock unlocked> <Event unset> <Condition unlocked> False <Semaphore unlocked, value:2> "
        "<Queue maxsize=3 items=0>\n"
        "<Lock locked> <Event set> <Condition locked> <TaskGroup tasks=0 errors=0> <Timeout [active]>\n"
        "<Timeout [finished]> <Timeout [created]> <EventLoop>\n",
    ),
    "texts of what is over": (
        """
future = asyncio.Future()
future.set_exception(ValueError("x"))
print(future, future.exception())
async def waits():
    await asyncio.Event().wait()
task = asyncio.create_task(waits())
task.cancel()
print(task)
try:
    async with asyncio.timeout(0.01) as scope:
        await asyncio.sleep(1)
except TimeoutError:
    print(scope)
""",
        "<Future finished exception=ValueError('x')> x\n<Task cancelling name='Task-2' coro=<waits()>>\n"
        "<Timeout [expired]>\n",
    ),
    "the loop's own methods": (
        """
loop = asyncio.get_event_loop()
task = loop.create_task(double(2), name="t")
print(task.get_name(), await task, loop.is_closed(), loop.time() > 0)
print(asyncio.iscoroutinefunction(double), asyncio.iscoroutinefunction(print))
""",
        "t 4 False True\nTrue False\n",
    ),
    "an asynchronous loop over as_completed": (
        """
async for task in asyncio.as_completed([double(1), double(2)]):
    print(task.result())
""",
        "2\n4\n",
    ),
    "as_completed whose time is over in the same turn": (
        """
future = asyncio.Future()
async def completes():
    future.set_result("just too late")
task = asyncio.create_task(completes())
results = asyncio.as_completed([future], timeout=0)
for one in results:
    try:
        print(await one)
    except TimeoutError:
        print("late")
print(await future, await task)
""",
        "late\njust too late None\n",
    ),
    "as_completed in good time": (
        """
futures = [asyncio.Future(), asyncio.Future()]
results = asyncio.as_completed(futures, timeout=5)
futures[1].set_result("b")
futures[0].set_result("a")
await asyncio.sleep(0)
for one in results:
    print(await one)
""",
        "b\na\n",
    ),
    "a barrier": (
        """
barrier = asyncio.Barrier(2)
async def arrives(name):
    async with barrier as number:
        print(name, number)
first = asyncio.create_task(arrives("a"))
await asyncio.sleep(0)
print(barrier.parties, barrier.n_waiting)
await arrives("b")
await first
print(barrier.n_waiting, await asyncio.gather(barrier.wait(), barrier.wait()))
try:
    asyncio.Barrier(0)
except ValueError as error:
    print(error)
""",
        "2 1\nb 1\na 0\n0 [0, 1]\nparties must be >= 1\n",
    ),
    "a queue that is shut down": (
        """
queue = asyncio.Queue(2)
await queue.put("a")
queue.shutdown()
try:
    await queue.put("b")
except asyncio.QueueShutDown:
    print("no more")
print(await queue.get())
for take in (queue.get, queue.join):
    try:
        queue.task_done()
        await take()
    except asyncio.QueueShutDown:
        print("empty")
    except ValueError as error:
        print(error)
""",
        "no more\na\nempty\ntask_done() called too many times\n",
    ),
    "a queue that is shut down at once": (
        """
full, empty = asyncio.Queue(1), asyncio.Queue()
full.put_nowait(1)
tasks = [asyncio.create_task(each) for each in (full.put(2), empty.get(), full.join())]
await asyncio.sleep(0)
full.shutdown(immediate=True)
empty.shutdown(immediate=True)
print([type(each).__name__ for each in await asyncio.gather(*tasks, return_exceptions=True)])
""",
        "['QueueShutDown', 'QueueShutDown', 'NoneType']\n",
    ),
    "a queue whose items were finished before they were taken": (
        """
queue = asyncio.Queue()
queue.put_nowait(1)
queue.task_done()
queue.shutdown(immediate=True)
print(queue.empty())
async with asyncio.timeout(float("inf")) as scope:
    print(scope.when())
""",
        "True\ninf\n",
    ),
    "a queue shut down at once whose items are in work": (
        """
queue = asyncio.Queue()
queue.put_nowait(1)
queue.put_nowait(2)
queue.get_nowait()
queue.shutdown(immediate=True)
queue.task_done()
await queue.join()
print(queue.empty())
""",
        "True\n",
    ),
    "the notification of a cancelled waiter goes to the next": (
        """
condition = asyncio.Condition()
async def waits(name):
    async with condition:
        await condition.wait()
        print(name)
first, second = asyncio.create_task(waits("a")), asyncio.create_task(waits("b"))
await asyncio.sleep(0)
async with condition:
    condition.notify()
    first.cancel()
await second
print(first.cancelled())
""",
        "b\nTrue\n",
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_it_prints_what_is_documented(name: str) -> None:
    script, output = OWN[name]
    outcome = run(f"import asyncio\n{script}", TOOLS)
    assert outcome.errors == ()
    assert outcome.output == output


def test_a_script_that_leaves_from_inside_a_task_ends() -> None:
    outcome = run(
        "import asyncio, sys\nasync def leaves():\n    print('out')\n    sys.exit()\n"
        "await asyncio.gather(leaves(), asyncio.sleep(9))\nprint('never')\n"
    )
    assert (outcome.status, outcome.output) == ("ok", "out\n")


def test_only_the_first_of_many_unseen_failures_are_noted() -> None:
    outcome = run(
        "import asyncio\nasync def bad(n):\n    raise ValueError(n)\n"
        "tasks = [asyncio.create_task(bad(n)) for n in range(300)]\nawait asyncio.sleep(0)\n"
    )
    messages = [note.message for note in outcome.notes if note.code == "task_failed"]
    assert 1 <= len(messages) < 60
    assert "0" in messages[0]


def test_nothing_asynchronous_runs_from_a_pools_function() -> None:
    outcome = run(
        "import asyncio\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "async def main():\n    return 1\n"
        "def work():\n    coro = main()\n    try:\n        asyncio.run(coro)\n"
        "    except RuntimeError as error:\n        print(error)\n    return coro\n"
        "with ThreadPoolExecutor() as pool:\n    coro = pool.submit(work).result()\n"
        "print(asyncio.run(coro))\n"
    )
    assert outcome.output.endswith("call it from the script itself\n1\n")


def test_without_a_run_there_is_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(futures, "_loops", [])
    with pytest.raises(RuntimeError, match="no script is running"):
        current_loop()
