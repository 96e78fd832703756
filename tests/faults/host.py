"""A host that is killed at a named point: `python -m tests.faults.host`, with SIGKILL, by itself.

Nothing of it is in the product: its store, its tools and its sandbox are wrapped here. Tools note what they
did in a file, as the outside world would.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from bascule.bridge import Approver, Executor, Limits, Policy, approve_all, ask_elsewhere
from bascule.bridge.noted import Batch
from bascule.bridge.sqlite_journal import SqliteJournal
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.sqlite_writer import SqliteWriter
from bascule.bridge.store import RunRecord
from bascule.sandbox import Backend, Ending, Sandbox, SandboxLimits, open_backend
from bascule.tools import AnyTool, DidNotHappen, Happened, ToolContext, tool

T = TypeVar("T")

SCRIPT = """
import asyncio
print("begin")
a = await look(1)
b = await put(2)
c = await asyncio.gather(pay(3), store(4), look(5))
print("middle", a, b, c)
d = await push(6)
print("end")
return [a, b, c, d]
"""


class Death:
    """Kills this process the n-th time a point is reached.

    Args:
        point: ``NAME`` or ``NAME:N``; empty never kills.
        by: what is sent to this process: SIGKILL, or SIGSTOP for a host that is thought to be dead.
    """

    def __init__(self, point: str, *, by: signal.Signals = signal.SIGKILL) -> None:
        self._name, _, count = point.partition(":")
        self._left = int(count or 1)
        self._by = by

    def at(self, name: str) -> None:
        """Reach a point."""
        if name == self._name:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), self._by)

    def is_near(self, name: str) -> bool:
        """Return whether reaching this point now would kill."""
        return name == self._name and self._left == 1


class KilledJournal(SqliteJournal):
    """Tells its store which events a transaction holds."""

    def write_batch(self, connection: sqlite3.Connection, batch: Batch) -> Exception | None:
        store = self._store
        assert isinstance(store, KilledStore)
        events = [*batch.events, *([batch.event] if batch.event is not None else [])]
        store.kinds = [str(event.kind) for event in events]
        for kind in store.kinds:
            store.death.at(f"before-{kind}")
        return super().write_batch(connection, batch)


class KilledWriter(SqliteWriter):
    """Dies when a transaction with a certain event was written and nobody knows yet."""

    def __init__(self, path: Path, store: KilledStore) -> None:
        super().__init__(path)
        self._store = store

    def _transact(self, work: Callable[[sqlite3.Connection], T], *, durable: bool) -> T:
        self._store.kinds = []
        outcome = super()._transact(work, durable=durable)
        for kind in self._store.kinds:
            self._store.death.at(f"after-{kind}")
        return outcome


class KilledStore(SqliteStore):
    """A store that dies around its transactions."""

    def __init__(self, path: Path, death: Death) -> None:
        super().__init__(path)
        self.kinds: list[str] = []
        self.death = death
        self.writer.close()
        self.writer = KilledWriter(path, self)

    def open_journal(self, record: RunRecord) -> SqliteJournal:
        return KilledJournal(self, record.run_id, epoch=1, new=record)

    def take_lease(self, run_id: str) -> SqliteJournal:
        return KilledJournal(self, run_id, epoch=super().take_lease(run_id).epoch)


class KilledSandbox:
    """A sandbox whose host dies around the frames it sends."""

    def __init__(self, inner: Sandbox, death: Death) -> None:
        self._inner = inner
        self._death = death

    async def send(self, frame: bytes) -> None:
        self._death.at("before-frame")
        if self._death.is_near("mid-frame"):
            await self._inner.send(frame[: len(frame) // 2])
        self._death.at("mid-frame")
        await self._inner.send(frame)
        self._death.at("after-frame")

    async def receive(self) -> bytes:
        payload = await self._inner.receive()
        self._death.at("after-receive")
        return payload

    async def kill(self) -> None:
        self._death.at("before-kill")
        await self._inner.kill()

    async def close(self) -> Ending:
        ending = await self._inner.close()
        self._death.at("after-close")
        return ending


class KilledBackend:
    """A backend with such sandboxes."""

    name = "killed"

    def __init__(self, inner: Backend, death: Death) -> None:
        self._inner = inner
        self._death = death
        self.image_hash = inner.image_hash

    async def start(self, limits: SandboxLimits, *, run_id: str, command: Any = None) -> KilledSandbox:
        return KilledSandbox(await self._inner.start(limits, run_id=run_id), self._death)

    async def sweep(self) -> int:
        return await self._inner.sweep()

    async def close(self) -> None:
        await self._inner.close()


class OutsideWorld:
    """Tools whose effects are lines of a file: ``tool n key``; it is what remains of a dead host."""

    def __init__(self, path: Path, death: Death) -> None:
        self._path = path
        self._death = death

    def lines(self) -> list[tuple[str, int, str]]:
        """Return every execution, in order."""
        if not self._path.exists():
            return []
        parts = [line.split() for line in self._path.read_text().splitlines()]
        return [(name, int(n), key) for name, n, key in parts]

    def _note(self, name: str, n: int, context: ToolContext) -> int:
        self._death.at(f"in-{name}")
        with self._path.open("a") as file:
            file.write(f"{name} {n} {context.idempotency_key}\n")
        self._death.at(f"done-{name}")
        return n * 10

    def tools(self, *, changed: bool = False) -> list[AnyTool]:
        """Return the tools; ``changed`` gives ``put`` another definition."""
        note = self._note

        @tool(effects="read")
        async def look(n: int, context: ToolContext) -> int:
            """Read."""
            return note("look", n, context) // 5

        @tool(effects="once")
        def put(n: int, context: ToolContext) -> int:
            """Do something nobody can ask about, on a thread."""
            return note("put", n, context)

        def reconcile(key: str) -> Happened | DidNotHappen:
            found = [n for _, n, known in self.lines() if known == key]
            return Happened(found[0] * 10) if found else DidNotHappen()

        @tool(effects="once", reconcile=reconcile)
        async def pay(n: int, context: ToolContext) -> int:
            """Do something that can be asked about."""
            return note("pay", n, context)

        @tool(effects="idempotent")
        async def store(n: int, context: ToolContext) -> int:
            """Do something that a second time changes nothing."""
            return note("store", n, context)

        @tool(effects="once")
        async def push(n: int, context: ToolContext) -> int:
            """Do something nobody can ask about."""
            return note("push", n, context)

        if not changed:
            return [look, put, pay, store, push]

        @tool(effects="once", name="put")
        def put_anew(n: int, context: ToolContext, urgent: bool = False) -> int:
            """Do something nobody can ask about, in another way."""
            return note("put", n, context)

        return [look, put_anew, pay, store, push]


async def live(
    folder: Path,
    *,
    script: str,
    run_id: str | None,
    death: Death,
    backend: Backend,
    approver: Approver,
    hold_warm_s: float = 0.0,
    policy: Policy | None = None,
    changed: bool = False,
) -> str:
    """Begin a run, or take it up, and return its result as JSON."""
    if death.is_near("clock-back"):
        real = time.time
        time.time = lambda: real() - 86_400.0
    store = KilledStore(folder / "runs.db", death)
    executor = Executor(
        OutsideWorld(folder / "world.log", death).tools(changed=changed),
        policy=policy,
        backend=KilledBackend(backend, death),
        approver=approver,
        limits=Limits(hold_warm_s=hold_warm_s),
        store=store,
    )
    async with executor:
        if run_id is None:
            result = await executor.run(script, seed=1, wait=False)
        else:
            result = await executor.resume(run_id, wait=False)
    store.close()
    return result.to_json().decode()


def main() -> None:
    """Live once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--die", default="")
    parser.add_argument("--resume", default=None)
    parser.add_argument("--script", type=Path, default=None)
    parser.add_argument("--isolation", choices=("process", "container"), default="process")
    parser.add_argument("--elsewhere", action="store_true")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--stop", default="", help="a point at which the host is stopped, not killed")
    parser.add_argument("--changed", action="store_true", help="put has another definition")
    parser.add_argument("--policy", type=Path, default=None)
    parser.add_argument(
        "--full", type=int, default=None, help="bytes to which files may grow: the disk is full"
    )
    given = parser.parse_args()
    if given.full is not None:
        tempfile.gettempdir()  # which is found by writing to it
        resource.setrlimit(resource.RLIMIT_FSIZE, (given.full, resource.RLIM_INFINITY))
    script = SCRIPT if given.script is None else given.script.read_text()
    backend = open_backend(given.isolation)
    approver: Approver = ask_elsewhere if given.elsewhere else approve_all
    result = asyncio.run(
        live(
            given.folder,
            script=script,
            run_id=given.resume,
            death=Death(given.stop, by=signal.SIGSTOP) if given.stop else Death(given.die),
            backend=backend,
            approver=approver,
            hold_warm_s=3600.0 if given.warm else 0.0,
            policy=None if given.policy is None else Policy.load(given.policy),
            changed=given.changed,
        )
    )
    sys.stdout.write(result + "\n")


if __name__ == "__main__":
    main()
