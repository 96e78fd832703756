"""Random scripts, random orders, random deaths: every run must end as if nobody had ever died.

For each script one run is left alone; then hosts die at random steps, also while they replay, and the last
one's result, output and effects are compared with it. `python -m tests.faults.random_runs 20000` is
`make bench-faults`; `--only SEED` tries the one script of that seed again, with the same deaths.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import logging
import multiprocessing
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bascule.bridge import Executor, Limits, Result, approve_all
from bascule.bridge.execution import idempotency_key
from bascule.bridge.history import read_history
from bascule.bridge.journal import digest_of
from bascule.bridge.runs import read_result, resolve_call
from bascule.bridge.store import Store
from bascule.sandbox import Backend
from bascule.tools import Registry
from bascule.wire import BasculeError
from tests.faults.plan import Died, MortalBackend, MortalStore, Plan
from tests.faults.scripts import ScriptMaker
from tests.faults.world import Stage, World
from tests.forks.backend import ForkBackend

DEATHS_PER_SCRIPT = 12
MAX_LIVES = 12
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Where the stores lie: no machine loses its power here, so disks would only cost time."""

LONGEST_LIFE_S = 120.0
"""Long enough for a busy machine: only a host that hangs lives so long."""
REPORT_EVERY = 1000
LIMITS = Limits(hold_warm_s=0.0)


@dataclass(kw_only=True)
class Tally:
    """What came of many runs; everything but ``deaths``, ``scripts`` and ``unknown`` must stay zero."""

    scripts: int = 0
    deaths: int = 0
    unknown: int = 0
    problems: list[str] = field(default_factory=list[str])


@functools.cache
def the_stage() -> Stage:
    """Return the tools of this process."""
    return Stage()


def seen(result: Result) -> tuple[object, ...]:
    """Return what the author of a script sees of a run."""
    errors = [(error.kind, error.message) for error in result.errors]
    return (result.status, result.value, result.output, errors)


def receipts(result: Result) -> Counter[tuple[str, bytes, str]]:
    """Return what the receipts say, whatever the order of the calls."""
    return Counter(
        # Whether a read that is given up at once had been started is a matter of luck.
        (call.tool, call.arguments, "" if call.tool == "never" else call.state)
        for call in result.calls
    )


async def live(world: World, backend: Backend, path: Path, script: str, run_id: str | None) -> Result:
    """Let one host live: begin the run, or take it up; until it ends, or the host dies."""
    store = MortalStore(path, world.plan)
    stage = the_stage()
    stage.world = world
    executor = Executor(
        Registry(stage.tools),
        backend=MortalBackend(backend, world.plan),
        approver=approve_all,
        limits=LIMITS,
        store=store,
    )
    try:
        if run_id is None:
            return await executor.run(script, seed=1, wait=False)
        return await executor.resume(run_id, wait=False)
    finally:
        await executor.close()
        store.close()


def answer_unknown(store: Store, run_id: str, world: World) -> int:
    """Play the operator: say of every call with an unknown outcome what really happened."""
    row = store.run(run_id)
    journal = store.journal(run_id)
    assert row is not None
    assert journal is not None
    history = read_history(run_id, journal.entries)
    assert history is not None
    answered = 0
    for wait in row.waits:
        kind, _, what = wait.partition(":")
        if kind == "answer":
            seq = int(what.partition(".")[0])
            call = history.call(seq)
            tool = next(
                str(entry.facts["tool"]) for entry in journal.entries if entry.facts.get("seq") == seq
            )
            assert call.arguments is not None
            key = idempotency_key(run_id=run_id, seq=seq, tool=tool, args_sha256=digest_of(call.arguments))
            # Answered before, when a host died between that answer and taking the run up.
            answered += resolve_call(store, run_id, seq, world.answer(key))
    return answered


async def die_and_recover(
    script: str, rng: random.Random, backend: Backend, path: Path, at: int, tally: Tally
) -> tuple[Result, World]:
    """Run a script whose first host dies at a step, and later ones perhaps, too."""
    world = World(rng, Plan(at))
    run_id: str | None = None
    for _ in range(MAX_LIVES):
        try:
            result = await asyncio.wait_for(live(world, backend, path, script, run_id), LONGEST_LIFE_S)
        except Died:
            tally.deaths += 1
            result = None
        world.plan = Plan(rng.randrange(1, 60) if rng.random() < 0.3 else None)
        if result is not None and result.status != "suspended":
            return result, world
        store = MortalStore(path, Plan())
        try:
            rows = store.runs()
            if rows and rows[0].status == "finished":
                # It died after its last word was written: what is left is to read it.
                found = await _finished(store, rows[0].run_id)
                return found, world
            run_id = rows[0].run_id if rows else None
            if run_id is not None and rows[0].status == "suspended":
                tally.unknown += answer_unknown(store, run_id, world)
        finally:
            store.close()
    raise AssertionError(f"not finished after {MAX_LIVES} lives")


async def _finished(store: Store, run_id: str) -> Result:
    found = read_result(store, run_id)
    assert found is not None
    return found


async def try_script(seed: int, backend: Backend, folder: Path, tally: Tally, deaths: int) -> None:
    """Compare one script's undisturbed run with runs whose hosts die."""
    rng = random.Random(seed)
    script = ScriptMaker(rng).make()
    world = World(random.Random(seed))
    expected = await live(world, backend, folder / f"{seed}.db", script, None)
    steps = world.plan.steps
    if expected.status != "ok":
        tally.problems.append(f"seed {seed}: {expected.error}\n{script}")
        return
    tally.scripts += 1
    for number in range(deaths):
        path = folder / f"{seed}-{number}.db"
        at = rng.randrange(1, steps + 1)
        where = f"seed {seed}, death {number} at step {at} of {steps}"
        try:
            result, after = await die_and_recover(script, rng, backend, path, at, tally)
        except (AssertionError, BasculeError, TimeoutError) as error:
            tally.problems.append(f"{where}: lost: {error!r}\n{traceback.format_exc(limit=-4)}")
            continue
        keys = Counter(key for _, _, key in after.effects)
        if seen(result) != seen(expected):
            tally.problems.append(f"{where}: {seen(result)} instead of {seen(expected)}\n{script}")
        elif after.state() != world.state() or max(keys.values(), default=1) > 1:
            tally.problems.append(f"{where}: effects {after.state()} instead of {world.state()}\n{script}")
        elif receipts(result) != receipts(expected):
            tally.problems.append(f"{where}: receipts {receipts(result)} instead of {receipts(expected)}")
        remove(folder, f"{seed}-{number}.db*")
    remove(folder, f"{seed}.db*")


def remove(folder: Path, pattern: str) -> None:
    """Delete the files of one store."""
    for leftover in folder.glob(pattern):
        leftover.unlink()


async def many(first: int, step: int, wanted: int, *, told: bool = False) -> Tally:
    """Try scripts until ``wanted`` hosts have died; ``told`` prints on stderr how far it is."""
    logging.getLogger("bascule").setLevel(logging.CRITICAL)
    tally = Tally()
    backend = ForkBackend()
    try:
        with tempfile.TemporaryDirectory(prefix="bascule-faults-", dir=MEMORY) as folder:
            seed = first
            next_report = REPORT_EVERY
            while tally.deaths < wanted and len(tally.problems) < 5:
                await try_script(seed, backend, Path(folder), tally, DEATHS_PER_SCRIPT)
                if told and tally.deaths >= next_report:
                    next_report += REPORT_EVERY
                    problems = len(tally.problems)
                    print(
                        f"seed {seed}: {tally.deaths} deaths, {problems} problems",
                        file=sys.stderr,
                        flush=True,
                    )
                seed += step
    finally:
        await backend.close()
    return tally


def _work(first: int, step: int, wanted: int, told: bool) -> Tally:
    return asyncio.run(many(first, step, wanted, told=told))


def run_all(wanted: int, *, first: int = 1, workers: int = 2, told: bool = False) -> Tally:
    """Try until ``wanted`` hosts have died, in several processes, and add up what came of it."""
    total = Tally()
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        share = -(-wanted // workers)
        shares = [(first + number, workers, share, told) for number in range(workers)]
        for tally in pool.starmap(_work, shares):
            total.scripts += tally.scripts
            total.deaths += tally.deaths
            total.unknown += tally.unknown
            total.problems += tally.problems
    return total


def main() -> None:
    """Print what came of as many deaths as were asked for; the exit status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.random_runs")
    parser.add_argument("deaths", type=int, nargs="?", default=20_000)
    parser.add_argument("--first", type=int, default=int(time.time()), help="seed of the first script")
    parser.add_argument("--workers", type=int, default=2, help="processes; each takes every n-th seed")
    parser.add_argument("--only", type=int, help="seed of the one script to try again")
    asked = parser.parse_args()
    began = time.perf_counter()
    if asked.only is None:
        total = run_all(asked.deaths, first=asked.first, workers=asked.workers, told=True)
    else:
        asked.first = asked.only
        total = asyncio.run(many(asked.only, 1, 1))
    print(
        f"{total.deaths} deaths in runs of {total.scripts} scripts (seeds from {asked.first}),"
        f" {total.unknown} unknown outcomes answered, {len(total.problems)} problems,"
        f" {time.perf_counter() - began:.0f} s"
    )
    for problem in total.problems:
        print(problem)
    sys.exit(bool(total.problems))


if __name__ == "__main__":
    main()
