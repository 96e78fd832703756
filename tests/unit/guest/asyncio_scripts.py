"""Scripts that must print the same on CPython's asyncio and on the guest's loop.

Tools there: ``double(i)`` gives ``2 * i``, ``fail(text)`` raises ValueError. Sleeps are multiples of 10 ms,
so that real timers fire in the intended order.
"""

from __future__ import annotations

SCRIPTS: dict[str, str] = {
    "gather keeps the order given": """
async def main():
    async def late(n):
        await asyncio.sleep(0.03 - n / 100)
        print("end", n)
        return n
    print(await asyncio.gather(*[late(i) for i in range(3)]))
""",
    "gather of nothing": """
async def main():
    print(await asyncio.gather())
""",
    "gather of tools": """
async def main():
    print(await asyncio.gather(*[double(i) for i in range(5)]))
""",
    "gather raises the first failure": """
async def main():
    async def bad(n):
        await asyncio.sleep(n / 100)
        raise ValueError(n)
    try:
        await asyncio.gather(bad(2), bad(1), bad(3))
    except ValueError as error:
        print("first", error)
""",
    "gather returns failures": """
async def main():
    results = await asyncio.gather(double(1), fail("no"), double(2), return_exceptions=True)
    print([type(r).__name__ if isinstance(r, Exception) else r for r in results])
""",
    "gather with failures lets the others go on": """
async def main():
    async def work(n):
        for step in range(3):
            print(n, step)
            await asyncio.sleep(0)
            if n == 1 and step == 1:
                raise KeyError("stop")
        return n
    try:
        await asyncio.gather(work(0), work(1), work(2))
    except KeyError as error:
        print("caught", error)
    await asyncio.sleep(0.01)
    print("end")
""",
    "gather is cancelled": """
async def main():
    async def work(n):
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            print("cancelled", n)
            raise
    group = asyncio.gather(work(1), work(2))
    await asyncio.sleep(0)
    group.cancel()
    try:
        await group
    except asyncio.CancelledError:
        print("gather cancelled", group.cancelled())
""",
    "gather of the same future twice": """
async def main():
    task = asyncio.create_task(double(4))
    print(await asyncio.gather(task, task, double(1)))
""",
    "gather inside gather": """
async def main():
    print(await asyncio.gather(asyncio.gather(double(1), double(2)), asyncio.gather(double(3))))
""",
    "gather with a cancelled child": """
async def main():
    async def sleeper():
        await asyncio.sleep(1)
    task = asyncio.create_task(sleeper())
    await asyncio.sleep(0)
    task.cancel()
    print([type(r).__name__ for r in await asyncio.gather(task, double(1), return_exceptions=True)])
""",
    "tasks interleave": """
async def main():
    async def count(name):
        for i in range(3):
            print(name, i)
            await asyncio.sleep(0)
    a = asyncio.create_task(count("a"))
    b = asyncio.create_task(count("b"))
    print("made")
    await a
    await b
""",
    "a task starts only when the loop turns": """
async def main():
    async def hello():
        print("hello")
    task = asyncio.create_task(hello())
    print("before")
    await task
    print("after", task.done(), task.cancelled(), task.exception(), task.result())
""",
    "a failing task raises where it is awaited": """
async def main():
    async def bad():
        raise LookupError("gone")
    task = asyncio.create_task(bad())
    await asyncio.sleep(0)
    print(task.done(), repr(task.exception()))
    try:
        await task
    except LookupError as error:
        print("again", error)
""",
    "result before the end": """
async def main():
    task = asyncio.create_task(asyncio.sleep(0.01, "x"))
    try:
        task.result()
    except asyncio.InvalidStateError as error:
        print(error)
    try:
        task.exception()
    except asyncio.InvalidStateError as error:
        print(error)
    print(await task)
""",
    "cancel before the first step": """
async def main():
    async def never():
        print("never printed")
    task = asyncio.create_task(never())
    print(task.cancel())
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled", task.cancelled(), task.cancel())
""",
    "cancel runs finally": """
async def main():
    async def work():
        try:
            await asyncio.sleep(1)
        finally:
            print("finally")
    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("done")
""",
    "a task may refuse to be cancelled": """
async def main():
    async def stubborn():
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            print("no")
        return "still here"
    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    task.cancel()
    print(await task, task.cancelled())
""",
    "cancelled error is not an Exception": """
async def main():
    async def work():
        try:
            await asyncio.sleep(1)
        except Exception:
            print("wrong")
    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel("why")
    try:
        await task
    except asyncio.CancelledError as error:
        print("right", isinstance(error, Exception))
""",
    "cancelling and uncancel": """
async def main():
    async def work():
        me = asyncio.current_task()
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            print(me.cancelling(), me.uncancel(), me.cancelling())
        await asyncio.sleep(0)
        return "ok"
    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    print(await task)
""",
    "done callbacks run in order": """
async def main():
    task = asyncio.create_task(double(2))
    task.add_done_callback(lambda t: print("one", t.result()))
    def two(t):
        print("two")
    task.add_done_callback(two)
    task.add_done_callback(two)
    print(task.remove_done_callback(two))
    await task
    await asyncio.sleep(0)
    task.add_done_callback(lambda t: print("late"))
    print("before")
    await asyncio.sleep(0)
""",
    "task names": """
async def main():
    task = asyncio.create_task(double(1), name="mine")
    print(task.get_name())
    task.set_name("other")
    print(task.get_name())
    await task
""",
    "set_result of a task is refused": """
async def main():
    task = asyncio.create_task(double(1))
    try:
        task.set_result(1)
    except RuntimeError as error:
        print(error)
    await task
""",
    "wait_for in time": """
async def main():
    print(await asyncio.wait_for(double(3), timeout=1))
    print(await asyncio.wait_for(double(4), None))
""",
    "wait_for too slow": """
async def main():
    async def slow():
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            print("cancelled")
            raise
    try:
        await asyncio.wait_for(slow(), timeout=0.01)
    except asyncio.TimeoutError as error:
        print("timeout", repr(str(error)), isinstance(error, TimeoutError))
""",
    "wait_for with nothing left": """
async def main():
    async def slow():
        await asyncio.sleep(1)
    try:
        await asyncio.wait_for(slow(), timeout=0)
    except TimeoutError:
        print("timeout")
""",
    "wait_for of a task": """
async def main():
    task = asyncio.create_task(asyncio.sleep(1))
    try:
        await asyncio.wait_for(task, 0.01)
    except TimeoutError:
        print("timeout", task.cancelled())
""",
    "wait_for lets failures through": """
async def main():
    try:
        await asyncio.wait_for(fail("x"), 1)
    except ValueError as error:
        print("value", error)
""",
    "timeout": """
async def main():
    try:
        async with asyncio.timeout(0.01) as limit:
            await asyncio.sleep(1)
    except TimeoutError:
        print("late", limit.expired())
    async with asyncio.timeout(1) as limit:
        print(await double(1))
    print(limit.expired())
    async with asyncio.timeout(None):
        print(await double(2))
""",
    "timeout of zero": """
async def main():
    try:
        async with asyncio.timeout(0):
            await asyncio.sleep(0.5)
            print("wrong")
    except TimeoutError:
        print("late")
""",
    "nested timeouts": """
async def main():
    try:
        async with asyncio.timeout(0.01):
            try:
                async with asyncio.timeout(0.5):
                    await asyncio.sleep(1)
            except TimeoutError:
                print("inner")
    except TimeoutError:
        print("outer")
    try:
        async with asyncio.timeout(0.5):
            try:
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(1)
            except TimeoutError:
                print("inner")
    except TimeoutError:
        print("outer")
""",
    "wait for all": """
async def main():
    tasks = [asyncio.create_task(double(i)) for i in range(3)]
    done, pending = await asyncio.wait(tasks)
    print(len(done), len(pending), sorted(t.result() for t in done))
""",
    "wait for the first": """
async def main():
    tasks = [asyncio.create_task(asyncio.sleep(d, d)) for d in (0.05, 0.01, 0.03)]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    print([t.result() for t in done], len(pending))
    for task in pending:
        task.cancel()
    print([type(r).__name__ for r in await asyncio.gather(*pending, return_exceptions=True)])
""",
    "wait for the first failure": """
async def main():
    tasks = [asyncio.create_task(asyncio.sleep(0.05)), asyncio.create_task(fail("a")),
             asyncio.create_task(asyncio.sleep(0.05))]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    print(len(done), len(pending), [repr(t.exception()) for t in done])
    await asyncio.wait(pending)
""",
    "wait with a timeout": """
async def main():
    tasks = [asyncio.create_task(asyncio.sleep(d, d)) for d in (0.01, 1)]
    done, pending = await asyncio.wait(tasks, timeout=0.03)
    print([t.result() for t in done], len(pending))
    for task in pending:
        task.cancel()
""",
    "wait for nothing": """
async def main():
    try:
        await asyncio.wait([])
    except ValueError as error:
        print(error)
    try:
        await asyncio.wait([asyncio.create_task(double(1))], return_when="SOMETIME")
    except ValueError as error:
        print(error)
""",
    "as_completed": """
async def main():
    async def late(n):
        await asyncio.sleep(n / 100)
        return n
    for next_one in asyncio.as_completed([late(3), late(1), late(2)]):
        print(await next_one)
""",
    "as_completed with a failure": """
async def main():
    async def later():
        await asyncio.sleep(0.02)
        return await double(1)
    for next_one in asyncio.as_completed([fail("a"), later()]):
        try:
            print(await next_one)
        except ValueError as error:
            print("failed", error)
""",
    "as_completed with a timeout": """
async def main():
    tasks = [asyncio.create_task(asyncio.sleep(d, d)) for d in (0.01, 1)]
    for next_one in asyncio.as_completed(tasks, timeout=0.03):
        try:
            print(await next_one)
        except TimeoutError:
            print("late")
    tasks[1].cancel()
""",
    "shield": """
async def main():
    async def inner():
        await asyncio.sleep(0.02)
        print("inner ends")
        return 1
    task = asyncio.create_task(inner())
    async def outer():
        return await asyncio.shield(task)
    waiting = asyncio.create_task(outer())
    await asyncio.sleep(0)
    waiting.cancel()
    try:
        await waiting
    except asyncio.CancelledError:
        print("outer cancelled", task.done())
    print(await task)
""",
    "sleep gives its result": """
async def main():
    print(await asyncio.sleep(0, "zero"), await asyncio.sleep(0.01, result="some"))
""",
    "semaphore": """
async def main():
    semaphore = asyncio.Semaphore(2)
    async def work(n):
        async with semaphore:
            print("in", n)
            await asyncio.sleep(0.01 + n / 100)
            print("out", n)
    await asyncio.gather(*[work(i) for i in range(4)])
    print(semaphore.locked())
""",
    "semaphore with a cancelled waiter": """
async def main():
    semaphore = asyncio.Semaphore(1)
    async def work(n):
        async with semaphore:
            print("in", n)
            await asyncio.sleep(0.02)
    tasks = [asyncio.create_task(work(i)) for i in range(4)]
    await asyncio.sleep(0.01)
    tasks[1].cancel()
    print([type(r).__name__ for r in await asyncio.gather(*tasks, return_exceptions=True)])
    print(semaphore.locked())
""",
    "bounded semaphore": """
async def main():
    semaphore = asyncio.BoundedSemaphore(1)
    await semaphore.acquire()
    semaphore.release()
    try:
        semaphore.release()
    except ValueError as error:
        print(error)
    try:
        asyncio.Semaphore(-1)
    except ValueError as error:
        print(error)
""",
    "lock": """
async def main():
    lock = asyncio.Lock()
    async def work(n):
        async with lock:
            print("in", n, lock.locked())
            await asyncio.sleep(0)
            print("out", n)
    await asyncio.gather(*[work(i) for i in range(3)])
    try:
        lock.release()
    except RuntimeError as error:
        print(error)
""",
    "lock with a cancelled waiter": """
async def main():
    lock = asyncio.Lock()
    await lock.acquire()
    async def work(n):
        async with lock:
            print("in", n)
    tasks = [asyncio.create_task(work(i)) for i in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    lock.release()
    print([type(r).__name__ for r in await asyncio.gather(*tasks, return_exceptions=True)])
""",
    "event": """
async def main():
    event = asyncio.Event()
    async def waiter(n):
        print(n, await event.wait())
    tasks = [asyncio.create_task(waiter(i)) for i in range(3)]
    await asyncio.sleep(0)
    print(event.is_set())
    event.set()
    await asyncio.gather(*tasks)
    event.clear()
    print(event.is_set())
""",
    "condition": """
async def main():
    condition = asyncio.Condition()
    items = []
    async def consumer(n):
        async with condition:
            await condition.wait_for(lambda: items)
            print(n, items.pop(0))
    tasks = [asyncio.create_task(consumer(i)) for i in range(3)]
    await asyncio.sleep(0)
    for item in "abc":
        async with condition:
            items.append(item)
            condition.notify()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    try:
        condition.notify()
    except RuntimeError as error:
        print(error)
    try:
        await condition.wait()
    except RuntimeError as error:
        print(error)
""",
    "condition notify_all": """
async def main():
    condition = asyncio.Condition()
    async def waiter(n):
        async with condition:
            await condition.wait()
            print("woke", n)
    tasks = [asyncio.create_task(waiter(i)) for i in range(3)]
    await asyncio.sleep(0)
    async with condition:
        condition.notify_all()
    await asyncio.gather(*tasks)
""",
    "queue": """
async def main():
    queue = asyncio.Queue(maxsize=2)
    async def producer():
        for i in range(5):
            await queue.put(i)
            print("put", i)
        await queue.put(None)
    async def consumer():
        while (item := await queue.get()) is not None:
            print("got", item)
            queue.task_done()
    await asyncio.gather(producer(), consumer())
    print(queue.qsize(), queue.empty(), queue.full(), queue.maxsize)
""",
    "queue workers": """
async def main():
    queue = asyncio.Queue()
    async def worker(name):
        while True:
            n = await queue.get()
            print(name, n, await double(n))
            queue.task_done()
    for i in range(6):
        queue.put_nowait(i)
    workers = [asyncio.create_task(worker(f"w{i}")) for i in range(2)]
    await queue.join()
    for task in workers:
        task.cancel()
    print([type(r).__name__ for r in await asyncio.gather(*workers, return_exceptions=True)])
""",
    "queue without waiting": """
async def main():
    queue = asyncio.Queue(1)
    try:
        queue.get_nowait()
    except asyncio.QueueEmpty:
        print("empty")
    queue.put_nowait(1)
    try:
        queue.put_nowait(2)
    except asyncio.QueueFull:
        print("full")
    print(queue.get_nowait())
    queue.task_done()
    try:
        queue.task_done()
    except ValueError as error:
        print(error)
""",
    "other queues": """
async def main():
    lifo, priority = asyncio.LifoQueue(), asyncio.PriorityQueue()
    for item in (2, 3, 1):
        await lifo.put(item)
        await priority.put(item)
    print([await lifo.get() for _ in range(3)], [await priority.get() for _ in range(3)])
""",
    "queue get is cancelled": """
async def main():
    queue = asyncio.Queue()
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.put_nowait("x")
    first.cancel()
    try:
        print(await first)
    except asyncio.CancelledError:
        print("cancelled")
    print(await second)
""",
    "task group": """
async def main():
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(double(i)) for i in range(3)]
        print("body ends")
    print([task.result() for task in tasks])
""",
    "task group with a failure": """
async def main():
    async def slow():
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            print("slow cancelled")
            raise
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(slow())
            group.create_task(fail("a"))
            await asyncio.sleep(1)
            print("wrong")
    except ExceptionGroup as error:
        print(error, [repr(e) for e in error.exceptions])
    print(asyncio.current_task().cancelling())
""",
    "task group with failures of body and tasks": """
async def main():
    async def bad(n):
        await asyncio.sleep(0)
        raise ValueError(n)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(bad(1))
            group.create_task(bad(2))
            raise KeyError("body")
    except ExceptionGroup as error:
        print([repr(e) for e in error.exceptions])
""",
    "task group is cancelled from outside": """
async def main():
    async def work():
        try:
            await asyncio.sleep(1)
        finally:
            print("inner ends")
    async def group():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(work())
    task = asyncio.create_task(group())
    await asyncio.sleep(0.01)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled")
""",
    "task group misuse": """
import contextlib
async def main():
    group = asyncio.TaskGroup()
    coro = double(1)
    try:
        group.create_task(coro)
    except RuntimeError as error:
        print("entered" in str(error))
    with contextlib.suppress(RuntimeError):  # closed, from 3.13 on
        await coro
    async with group:
        pass
    coro = double(1)
    try:
        group.create_task(coro)
    except RuntimeError as error:
        print("finished" in str(error))
    with contextlib.suppress(RuntimeError):  # closed, from 3.13 on
        await coro
""",
    "nested task groups": """
async def main():
    async def inner():
        async with asyncio.TaskGroup() as group:
            group.create_task(fail("deep"))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(inner())
            group.create_task(asyncio.sleep(1))
    except ExceptionGroup as error:
        print(type(error.exceptions[0]).__name__, repr(error.exceptions[0].exceptions[0]))
""",
    "futures by hand": """
async def main():
    future = asyncio.get_running_loop().create_future()
    async def setter():
        await asyncio.sleep(0.01)
        future.set_result("set")
    task = asyncio.create_task(setter())
    print(future.done(), await future, future.done())
    try:
        future.set_result(2)
    except asyncio.InvalidStateError:
        print("invalid")
    other = asyncio.Future()
    other.set_exception(ValueError("x"))
    try:
        await other
    except ValueError as error:
        print(error)
    third = asyncio.Future()
    third.cancel()
    try:
        third.result()
    except asyncio.CancelledError:
        print("cancelled")
    await task
""",
    "async generators and comprehensions": """
async def main():
    async def pages():
        for i in range(3):
            yield await double(i)
    async for page in pages():
        print(page)
    print([page async for page in pages()], {n: await double(n) for n in range(2)})
""",
    "async context managers": """
async def main():
    class Span:
        def __init__(self, name):
            self.name = name
        async def __aenter__(self):
            print("enter", self.name)
            return self
        async def __aexit__(self, kind, error, traceback):
            print("exit", self.name, kind is not None)
            return True
    async with Span("a") as span:
        await double(1)
        raise ValueError("swallowed")
    print(span.name)
""",
    "what is a coroutine": """
async def main():
    async def f():
        pass
    coro = f()
    print(asyncio.iscoroutine(coro), asyncio.iscoroutinefunction(f), asyncio.iscoroutinefunction(print))
    await coro
    print(asyncio.isfuture(asyncio.ensure_future(double(1))))
    await asyncio.sleep(0.01)
""",
    "awaiting twice": """
async def main():
    async def f():
        return 1
    coro = f()
    print(await coro)
    try:
        await coro
    except RuntimeError as error:
        print(error)
""",
    "a task that awaits itself": """
async def main():
    async def f():
        await holder[0]
    holder = []
    holder.append(asyncio.create_task(f()))
    try:
        await holder[0]
    except RuntimeError as error:
        print("Task cannot await on itself" in str(error))
""",
    "all_tasks and current_task": """
async def main():
    async def f():
        print(asyncio.current_task().get_name())
        await asyncio.sleep(0.01)
    task = asyncio.create_task(f(), name="one")
    await asyncio.sleep(0)
    print(sorted(t.get_name() for t in asyncio.all_tasks() if t is not asyncio.current_task()))
    await task
    print(len(asyncio.all_tasks()))
""",
    "tasks left behind get one step and a cancellation": """
async def main():
    async def left(n):
        print("start", n)
        try:
            await asyncio.sleep(1)
        finally:
            print("finally", n)
    asyncio.create_task(left(1))
""",
    "run refuses to nest": """
async def main():
    coro = double(1)
    try:
        asyncio.run(coro)
    except RuntimeError as error:
        print("running event loop" in str(error))
    await coro
""",
    "to_thread": """
async def main():
    def work(n):
        return n * 2
    print(await asyncio.gather(asyncio.to_thread(work, 1), asyncio.to_thread(work, n=2)))
    def bad():
        raise ValueError("thread")
    try:
        await asyncio.to_thread(bad)
    except ValueError as error:
        print(error)
    print(await asyncio.get_running_loop().run_in_executor(None, work, 5))
""",
    "a producer, a timeout and a cancellation": """
async def main():
    queue = asyncio.Queue()
    async def producer():
        n = 0
        try:
            while True:
                await queue.put(n)
                n += 1
                await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            print("producer stops after", n)
            raise
    task = asyncio.create_task(producer())
    try:
        async with asyncio.timeout(0.05):
            while True:
                print(await queue.get())
    except TimeoutError:
        print("enough")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
""",
    "retry with backoff": """
async def main():
    tries = 0
    async def flaky():
        nonlocal tries
        tries += 1
        await asyncio.sleep(0)
        if tries < 3:
            raise ConnectionError(tries)
        return tries
    for attempt in range(5):
        try:
            print(await flaky())
            break
        except ConnectionError as error:
            print("again", error)
            await asyncio.sleep(0.01 * 2**attempt)
""",
}
