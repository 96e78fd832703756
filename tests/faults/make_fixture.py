"""Writes the journals of tests/fixtures/journals: what this version leaves, for later versions to read.

`python -m tests.faults.make_fixture` is run once for each version of the journal; what is there is never
written again.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from bascule.bridge import Decision, Executor, Limits, Policy, ask_elsewhere
from bascule.bridge.journal import JOURNAL_VERSION
from bascule.bridge.recording import make_recording, write_recording
from bascule.bridge.sqlite_store import SqliteStore
from bascule.tools import tool

FOLDER = Path(__file__).parents[1] / "fixtures" / "journals"
SCRIPT = """
import asyncio, random, datetime
print("begin", datetime.datetime.now().year > 2000)
first = await asyncio.gather(look(1), put(2), look(3))
try:
    await fail(4)
except ValueError as error:
    print(error)
try:
    await asyncio.wait_for(never(5), 0.01)
except TimeoutError:
    print("late")
await asyncio.sleep(0.01)
[first, random.randrange(1000), "x" * 20000 == await big(20000)]
"""


@tool(effects="read")
def look(n: int) -> int:
    """Look."""
    return n * 2


@tool(effects="once")
def put(n: int) -> int:
    """Put."""
    return n * 10


@tool(effects="read")
def fail(n: int) -> None:
    """Fail."""
    raise ValueError(f"no {n}")


@tool(effects="read")
async def never(n: int) -> None:
    """Never end."""
    await asyncio.get_running_loop().create_future()


@tool(effects="read")
def big(n: int) -> str:
    """Return much text."""
    return "x" * n


async def write() -> None:
    """Run the script, suspended once in the middle, and write its journal."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder, "runs.db"))
        async with Executor(
            [look, put, fail, never, big],
            policy=Policy.default(),
            approver=ask_elsewhere,
            isolation="process",
            limits=Limits(hold_warm_s=0.0),
            store=store,
            user="ann",
        ) as executor:
            waits = await executor.run(SCRIPT, seed=7, wait=False)
            assert waits.status == "suspended", waits
            (record,) = store.approvals.find(run_id=waits.run_id)
            executor.decide(record.id, Decision(verdict="approve", by="ops"), digest=record.digest)
            result = await executor.resume(waits.run_id)
        assert result.status == "ok", result
        journal = store.journal(result.run_id)
        assert journal is not None
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_recording(make_recording(result.run_id, journal.entries), FOLDER / f"v{JOURNAL_VERSION}.jsonl")
        store.close()


if __name__ == "__main__":
    asyncio.run(write())
