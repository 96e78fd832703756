"""`make bench`: measures floors and Bascule in turn (A B A B), prints medians with spread, keeps JSON.

Only ratios within one run mean anything: machines differ, and so do their moods.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from bascule.sandbox import open_backend
from tests.bench import floors, ours
from tests.bench.programs import PROGRAMS, TYPICAL
from tests.forks.backend import ForkBackend

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
ROOT = Path(__file__).parents[2]


async def measure() -> dict[str, list[float]]:
    """Run every measurement once a round, in the same order, and return the samples in seconds."""
    samples: dict[str, list[float]] = defaultdict(list)
    container, fork = open_backend("container", build=True), ForkBackend()
    async with ours.make_executor(container) as boxed, ours.make_executor(fork) as forked:
        for _ in range(ROUNDS):
            samples["F_echo"].append(floors.echo_s())
            samples["F_exec"].append(floors.exec_s())
            samples["F_fork"].append(floors.fork_s())
            samples["F_ctr"].append(await floors.container_s(container))
            samples["hello, fresh container"].append(hello_s := await ours.run_s(boxed, ours.HELLO))
            sequential_s = await ours.run_s(boxed, ours.SEQUENTIAL) - hello_s
            parallel_s = await ours.run_s(boxed, ours.PARALLEL) - hello_s
            samples["1,000 calls, one after the other"].append(sequential_s)
            samples["one call"].append(sequential_s / ours.CALLS)
            samples["1,000 calls at once"].append(parallel_s)
            samples["100 calls of 50 ms at once"].append(await ours.run_s(boxed, ours.WAITING) - hello_s)
            idle_cpu_s = await ours.guest_cpu_s(forked, ours.HELLO)
            for name, program in PROGRAMS.items():
                samples[f"plain {name}"].append(ours.plain_cpu_s(program))
                samples[f"restricted {name}"].append(await ours.restricted_cpu_s(forked, program, idle_cpu_s))
    await container.close()
    await fork.close()
    return samples


def ratios(medians: dict[str, float]) -> dict[str, float]:
    """Return what the targets speak of: ours against the floor or against plain Python."""
    slower = {name: medians[f"restricted {name}"] / medians[f"plain {name}"] for name in PROGRAMS}
    cpu_bound = [factor for name, factor in slower.items() if name != TYPICAL]
    return {
        "cold hello / F_ctr": medians["hello, fresh container"] / medians["F_ctr"],
        "one call / F_echo": medians["one call"] / medians["F_echo"],
        "1,000 at once / 1,000 in turn": medians["1,000 calls at once"]
        / medians["1,000 calls, one after the other"],
        "100 at once of 50 ms / 50 ms": medians["100 calls of 50 ms at once"] / ours.WAIT_S,
        "restricted / plain, typical data work": slower[TYPICAL],
        "restricted / plain, geometric mean of CPU programs": math.exp(
            statistics.fmean(math.log(factor) for factor in cpu_bound)
        ),
        "restricted / plain, worst program": max(slower.values()),
        **{f"restricted / plain, {name}": factor for name, factor in slower.items()},
    }


def commit() -> str:
    """Return the short id of the commit measured."""
    return subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> None:
    """Measure, print the tables, keep the samples under artifacts/."""
    samples = asyncio.run(measure())
    medians = {name: statistics.median(values) for name, values in samples.items()}
    print(f"commit {commit()}, Python {platform.python_version()}, {os.cpu_count()} cores, {ROUNDS} rounds\n")
    print(f"{'':42} {'median':>10} {'lowest':>10} {'highest':>10}   (ms)")
    for name, values in samples.items():
        cells = (medians[name], min(values), max(values))
        print(f"{name:42} " + " ".join(f"{cell * 1000:10.3f}" for cell in cells))
    print(f"\n{'':52} {'ratio':>6}")
    for name, value in ratios(medians).items():
        print(f"{name:52} {value:6.2f}")
    kept = ROOT / "artifacts" / f"bench-{commit()}-{time.strftime('%Y%m%dT%H%M%S')}.json"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps({"samples_s": samples, "ratios": ratios(medians)}, indent=1), encoding="utf-8")
    print(f"\nkept: {kept.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
