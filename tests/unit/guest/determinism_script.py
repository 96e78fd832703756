"""A script whose output would differ at once if anything of the machine, the day or a hash seed reached it.

One thing does: functions, classes and (before Python 3.12) None hash by address, so the order of a *set* of
them is CPython's own affair. Dicts keep the order of insertion whatever their keys.
"""

from __future__ import annotations

SCRIPT = """
import asyncio, datetime, random, secrets, time, uuid
class Thing:
    def __init__(self, n):
        self.n = n
def make(n):
    return lambda: n
print([thing.n for thing in {Thing(n) for n in range(30)}])
things = [Thing(n) for n in range(30)]
print([thing.n for thing in dict.fromkeys(set(reversed(things)))])
print([f() for f in dict.fromkeys(make(n) for n in range(30))])
print(list({"a", "b", "c", 1.5, (1, "x"), frozenset("ab"), things[1], True}).index("c"))
print({None: 1, len: 2, Thing: 3})
print({"alpha", "beta", "gamma", "delta"}, things[0], make, id(things[3]) > id(things[0]), hash("text"))
print(random.random(), random.sample(range(99), 5), secrets.token_hex(8), uuid.uuid4(), secrets.choice("abc"))
print(time.time(), time.monotonic(), datetime.datetime.now(), datetime.date.today())
async def chain(n):
    first = await double(n)
    await asyncio.sleep(n % 3)
    return n, await double(first)
async def main():
    tasks = [asyncio.create_task(chain(n), name=f"t{n}") for n in range(6)]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    print([task.get_name() for task in done], [task.get_name() for task in pending])
    for one in asyncio.as_completed(tasks):
        print(await one)
    async with asyncio.TaskGroup() as group:
        made = [group.create_task(chain(n)) for n in range(4)]
    print([task.result() for task in made], time.time(), random.random())
    try:
        async with asyncio.timeout(1):
            await asyncio.gather(*[chain(n) for n in range(9)])
    except TimeoutError:
        print("late", time.time())
    print(await asyncio.gather(*[asyncio.to_thread(time.sleep, n / 10) for n in range(3)]))
await main()
"""
