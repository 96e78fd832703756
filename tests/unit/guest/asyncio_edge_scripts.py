"""More scripts for the asyncio facade: what happens when two things happen in the same turn of the loop.

Each defines ``main`` and prints the same with CPython's asyncio from 3.11 on.
"""

from __future__ import annotations

EDGES: dict[str, str] = {
    "a gather that is done cannot be cancelled": """
async def main():
    gathered = asyncio.gather(double(1))
    await gathered
    print(gathered.cancel())
""",
    "a gather whose parts are all done is not cancelled": """
async def main():
    future = asyncio.Future()
    gathered = asyncio.gather(future)
    future.set_result(1)
    print(gathered.cancel(), await gathered)
""",
    "a gather that collects failures can be cancelled": """
async def main():
    gathered = asyncio.gather(asyncio.sleep(9), asyncio.sleep(9), return_exceptions=True)
    await asyncio.sleep(0)
    print(gathered.cancel())
    try:
        await gathered
    except asyncio.CancelledError:
        print("cancelled")
""",
    "wait ends by time and by completion at once": """
async def main():
    future = asyncio.Future()
    async def late():
        future.set_result(1)
    task = asyncio.create_task(late())
    done, pending = await asyncio.wait([future], timeout=0)
    print(len(done) + len(pending), await future)
    await task
""",
    "wait and as_completed want a list": """
async def main():
    future = asyncio.Future()
    for use in (asyncio.wait, asyncio.as_completed):
        try:
            made = use(future)
            await made
        except TypeError:
            print("refused")
""",
    "as_completed whose first waiter was cancelled": """
async def main():
    future = asyncio.Future()
    one, = asyncio.as_completed([future])
    async def first():
        return await one
    task = asyncio.create_task(first())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    future.set_result(1)
    await asyncio.sleep(0)
    print(task.cancelled(), await future)
""",
    "as_completed that times out after its waiter was cancelled": """
async def main():
    one, = asyncio.as_completed([asyncio.Future()], timeout=0.02)
    async def first():
        return await one
    task = asyncio.create_task(first())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0.05)
    print(task.cancelled())
""",
    "wait_for with no time and a result that is there": """
async def main():
    future = asyncio.Future()
    future.set_result(3)
    print(await asyncio.wait_for(future, 0))
""",
    "wait_for is cancelled while its task ends": """
async def main():
    gate = asyncio.Future()
    async def stubborn():
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            await gate
    inner = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    async def limited():
        await asyncio.wait_for(inner, 0)
    task = asyncio.create_task(limited())
    for _ in range(4):
        await asyncio.sleep(0)
    gate.set_result(None)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled", inner.done())
    await inner
""",
    "shield gives results, failures and cancellations": """
async def main():
    print(await asyncio.shield(double(1)))
    try:
        await asyncio.shield(fail("a"))
    except ValueError as error:
        print(error)
    future = asyncio.Future()
    outer = asyncio.shield(future)
    future.cancel()
    try:
        await outer
    except asyncio.CancelledError:
        print("cancelled", outer.cancelled())
    done = asyncio.Future()
    done.set_result(4)
    print(asyncio.shield(done) is done)
""",
    "a shield is cancelled while the inside ends": """
async def main():
    one, two = asyncio.Future(), asyncio.Future()
    outside = [asyncio.shield(one), asyncio.shield(two)]
    one.set_exception(ValueError("never seen"))
    two.cancel()
    for each in outside:
        each.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    print([each.cancelled() for each in outside], two.cancelled())
""",
    "a task group cannot be entered twice": """
async def main():
    async with asyncio.TaskGroup() as group:
        try:
            async with group:
                print("never")
        except RuntimeError as error:
            print("already" in str(error))
""",
    "a task group that shuts down takes no more": """
async def main():
    group = asyncio.TaskGroup()
    async def tries():
        try:
            await asyncio.sleep(9)
        finally:
            late = asyncio.sleep(0)
            try:
                group.create_task(late)
            except RuntimeError as error:
                print("shutting down" in str(error))
                await late
    async def bad():
        raise ValueError("first")
    try:
        async with group:
            group.create_task(tries())
            group.create_task(bad())
    except ExceptionGroup as errors:
        print([str(error) for error in errors.exceptions])
""",
    "two failures of a task group in one turn": """
async def main():
    async def bad(text):
        raise ValueError(text)
    try:
        async with asyncio.TaskGroup() as group:
            for text in "abc":
                group.create_task(bad(text))
            await asyncio.sleep(9)
    except ExceptionGroup as errors:
        print([str(error) for error in errors.exceptions])
""",
    "a lock's waiter is cancelled while it is held": """
async def main():
    lock = asyncio.Lock()
    await lock.acquire()
    task = asyncio.create_task(lock.acquire())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    print(task.cancelled(), lock.locked())
    lock.release()
    print(lock.locked())
""",
    "an event that is set already": """
async def main():
    event = asyncio.Event()
    task = asyncio.create_task(event.wait())
    await asyncio.sleep(0)
    task.cancel()
    event.set()
    event.set()
    print(await event.wait())
    await asyncio.sleep(0)
    print(task.cancelled())
""",
    "a condition's waiter is cancelled": """
async def main():
    condition = asyncio.Condition()
    async def waits():
        async with condition:
            await condition.wait()
    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled", condition.locked())
""",
    "a condition's waiter is cancelled while it takes the lock again": """
async def main():
    condition = asyncio.Condition()
    async def waits():
        async with condition:
            await condition.wait()
            print("never")
    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    async with condition:
        condition.notify()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        print(task.done())
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled", condition.locked())
""",
    "a condition notifies only those that still wait": """
async def main():
    condition = asyncio.Condition()
    seen = []
    async def waits(n):
        async with condition:
            await condition.wait()
            seen.append(n)
    tasks = [asyncio.create_task(waits(n)) for n in range(3)]
    await asyncio.sleep(0)
    async with condition:
        condition.notify(1)
        condition.notify(1)
    await asyncio.sleep(0.01)
    print(seen)
    async with condition:
        condition.notify_all()
    await asyncio.gather(*tasks)
    print(seen)
""",
    "a semaphore's place goes on when its taker is cancelled": """
async def main():
    semaphore = asyncio.Semaphore(1)
    await semaphore.acquire()
    first = asyncio.create_task(semaphore.acquire())
    second = asyncio.create_task(semaphore.acquire())
    await asyncio.sleep(0)
    semaphore.release()
    first.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    print(first.cancelled(), await second)
""",
    "a semaphore skips waiters that have gone": """
async def main():
    semaphore = asyncio.Semaphore(1)
    await semaphore.acquire()
    first = asyncio.create_task(semaphore.acquire())
    second = asyncio.create_task(semaphore.acquire())
    await asyncio.sleep(0)
    first.cancel()
    semaphore.release()
    print(await second, first.cancelled())
""",
    "join of a queue that is finished": """
async def main():
    queue = asyncio.Queue()
    await queue.join()
    print("joined", queue.maxsize)
""",
    "a queue skips getters that have gone": """
async def main():
    queue = asyncio.Queue()
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    first.cancel()
    queue.put_nowait("x")
    print(await second)
    await asyncio.sleep(0)
    print(first.cancelled())
""",
    "a timeout of nothing that its block outruns": """
async def main():
    async with asyncio.timeout(0) as scope:
        pass
    print(scope.expired())
    loop = asyncio.get_running_loop()
    async with asyncio.timeout_at(loop.time() + 9) as scope:
        print(scope.when() > loop.time())
    async with asyncio.timeout_at(None) as scope:
        print(scope.when())
""",
    "a timeout that is moved to now": """
async def main():
    try:
        async with asyncio.timeout(9) as scope:
            scope.reschedule(asyncio.get_running_loop().time())
            await asyncio.sleep(0)
            print("never")
    except TimeoutError:
        print("late", scope.expired())
""",
    "misused timeouts": """
async def main():
    scope = asyncio.timeout(1)
    for _ in range(2):
        try:
            scope.reschedule(None)
        except RuntimeError:
            print("refused")
    async with scope:
        try:
            async with scope:
                print("never")
        except RuntimeError:
            print("refused")
    try:
        scope.reschedule(5)
    except RuntimeError:
        print("refused")
""",
    "a task cancels itself and returns": """
async def main():
    async def stops():
        asyncio.current_task().cancel()
        return 1
    task = asyncio.create_task(stops())
    await asyncio.wait([task])
    print(task.cancelled())
""",
    "a task cancels itself and waits": """
async def main():
    async def stops():
        asyncio.current_task().cancel("enough")
        await asyncio.sleep(9)
    task = asyncio.create_task(stops())
    try:
        await task
    except asyncio.CancelledError as error:
        print("cancelled", error.args)
""",
    "a task cancels itself and waits for what is done": """
async def main():
    async def stops():
        done = asyncio.Future()
        asyncio.current_task().cancel()
        done.set_result(1)
        print(await done)
        await asyncio.sleep(0)
        print("never")
    task = asyncio.create_task(stops())
    await asyncio.wait([task])
    print(task.cancelled())
""",
    "a task and what it waits for are cancelled together": """
async def main():
    future = asyncio.Future()
    async def waits():
        await future
    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    future.cancel()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled", task.cancelling())
""",
    "cancellations are counted": """
async def main():
    task = asyncio.current_task()
    print(task.uncancel())
    task.cancel()
    task.cancel()
    print(task.cancelling(), task.uncancel())
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        print(task.uncancel(), task.cancelling())
""",
    "only a coroutine becomes a task": """
async def main():
    for wrong in (1, asyncio.Future()):
        try:
            asyncio.create_task(wrong)
        except TypeError:
            print("refused")
    try:
        asyncio.ensure_future(1)
    except TypeError:
        print("refused")
    try:
        asyncio.current_task().set_exception(ValueError())
    except RuntimeError:
        print("refused")
""",
    "the next item of an asynchronous generator is awaitable": """
async def main():
    async def numbers():
        for n in range(3):
            yield await double(n)
    one, two = numbers(), numbers()
    print(await asyncio.gather(anext(one), anext(two)), await asyncio.ensure_future(anext(one)))
""",
    "a timeout whose time passes while nothing is awaited": """
async def main():
    import time
    async with asyncio.timeout(0.01) as scope:
        time.sleep(0.02)
    await asyncio.sleep(0)
    print(scope.expired())
""",
    "run wants a coroutine, and nothing runs outside": """
async def main():
    pass
for use in (lambda: asyncio.run(5), asyncio.get_running_loop, asyncio.current_task):
    try:
        use()
    except (ValueError, RuntimeError, TypeError):
        print("refused")
coro = main()
try:
    asyncio.create_task(coro)
except RuntimeError:
    print("refused")
asyncio.run(coro)
""",
}
