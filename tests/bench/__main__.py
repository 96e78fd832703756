"""`make bench`: measures floors, peers and Bascule in turn (A B A B), prints medians, verdicts, keeps JSON.

Only ratios within one run mean anything: machines differ, and so do their moods. ``BENCH_ROUNDS`` sets the
rounds, ``BENCH_KEEP=1`` keeps the figures with the commit (docs/bench), not only among the artifacts.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from bascule.sandbox import Backend, GuestImage, SandboxError, WarmPool, ensure_image, open_backend
from bascule.sandbox.container import ContainerBackend
from bascule.sandbox.engine import Engine
from bascule.sandbox.reuse import Reusing
from bascule.sandbox.seccomp import seccomp_profile
from tests.bench import floors, ours, pipeline, warm
from tests.bench.corpus import slowdowns
from tests.bench.peers import Measures, Peers
from tests.bench.programs import PROGRAMS
from tests.bench.targets import Verdict, judge, judge_tasks
from tests.forks.backend import ForkBackend

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
ROOT = Path(__file__).parents[2]

Samples = dict[str, list[float]]


async def measure_round(
    samples: Samples, container: Backend, streams: Backend, oci: Backend | None, fork: Backend
) -> None:
    """Take every sample once, always in the same order."""
    samples["F_echo"].append(floors.echo_s())
    samples["F_exec"].append(floors.exec_s())
    samples["F_fork"].append(floors.fork_s())
    samples["F_ctr"].append(await floors.container_s(container))
    async with ours.make_executor(container) as cold:
        samples["cold hello"].append(await ours.run_s(cold, ours.HELLO))
    if oci is not None:
        samples["F_oci"].append(await floors.container_s(oci))
        async with ours.make_executor(oci) as cold:
            samples["cold hello oci"].append(await ours.run_s(cold, ours.HELLO))
    await measure_warm(samples, container)
    async with ours.make_executor(streams) as slow:
        hello_s = await ours.run_s(slow, ours.HELLO)
        samples["one call over streams"].append(
            (await ours.run_s(slow, ours.SEQUENTIAL) - hello_s) / ours.CALLS
        )
    async with ours.make_executor(fork) as forked:
        idle_cpu_s = await ours.guest_cpu_s(forked, ours.HELLO)
        for name, program in PROGRAMS.items():
            samples[f"plain {name}"].append(ours.plain_cpu_s(program))
            samples[f"restricted {name}"].append(await ours.restricted_cpu_s(forked, program, idle_cpu_s))
    for name, seconds in (await pipeline.measure()).items():
        samples[name].append(seconds)
    samples["import bascule.bridge"].append(floors.import_s("import bascule.bridge"))
    samples["bascule --help"].append(
        floors.import_s(
            "import sys; from bascule.cli.main import main; sys.argv = ['bascule', '--help']; main()"
        )
    )


async def measure_warm(samples: Samples, container: Backend) -> None:
    """Take the samples of warm sandboxes."""
    pool = warm.make_pool(Unclosed(container))
    watch = warm.Stopwatch()
    async with ours.executor_of(watch.tools(), pool) as executor:
        samples["warm first"].append(await warm.first_instruction_s(executor, pool, watch, "mark(n=1)\n"))
        samples["30 lines"].append(await warm.first_instruction_s(executor, pool, watch, warm.THIRTY_LINES))
        samples["warm hello"].append(hello_s := await warm.warm_s(executor, pool, ours.HELLO))
        sequential_s = await warm.warm_s(executor, pool, ours.SEQUENTIAL) - hello_s
        samples["1,000 calls in turn"].append(sequential_s)
        samples["one call"].append(sequential_s / ours.CALLS)
        samples["one call on a thread"].append(
            (await warm.warm_s(executor, pool, ours.THREADED) - hello_s) / ours.CALLS
        )
        samples["1,000 calls at once"].append(await warm.warm_s(executor, pool, ours.PARALLEL) - hello_s)
        samples["100 calls in turn"].append(
            await warm.warm_s(executor, pool, ours.in_turn(ours.WAITS)) - hello_s
        )
        samples["100 calls at once"].append(
            await warm.warm_s(executor, pool, ours.at_once(ours.WAITS)) - hello_s
        )
        samples["100 calls of 50 ms at once"].append(
            await warm.warm_s(executor, pool, ours.WAITING) - hello_s
        )
        for size in warm.BIG_MIB:
            samples[f"F_dec {size} MiB"].append(warm.decode_s(watch, size))
            samples[f"{size} MiB result"].append(await warm.big_result_s(executor, pool, size))
        await warm.until_ready(pool)
        samples["idle PSS bytes"].append(warm.idle_bytes("Pss"))
    await pool.close()


async def measure_rates(samples: Samples, backends: dict[str, Backend]) -> None:
    """Measure runs a second, each in a fresh container, beside what the builder itself can do."""
    for suffix, backend in backends.items():
        samples[f"containers a second{suffix}"].append(await warm.bare_rate(backend))
        pool: WarmPool = warm.make_pool(Unclosed(backend), floor=4)
        async with ours.make_executor(pool) as executor:
            samples[f"runs a second{suffix}"].append(await warm.rate(executor))
        await pool.close()
        samples["forks a second"].append(floors.fork_rate())
        reusing = warm.make_pool(Unclosed(backend), floor=0, reuse="principal")
        samples[f"reused runs a second{suffix}"].append(await warm.reused_rate(reusing))
        await reusing.close()
        samples["forks a second"].append(floors.fork_rate())
        assert isinstance(backend, Reusing)
        samples["idle child bytes"].append(await warm.idle_child_bytes(backend))


class Unclosed:
    """A backend that outlives the pools over it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.name = backend.name
        self.image_hash = backend.image_hash
        self.start = backend.start
        assert isinstance(backend, Reusing)
        self.start_reusable = backend.start_reusable
        self.sweep = backend.sweep

    async def close(self) -> None:
        """Leave it open."""


async def measure() -> Samples:
    """Run all measurements and return the samples in seconds (or what their names say)."""
    samples: Samples = defaultdict(list)
    container, fork = open_backend("container", build=True), ForkBackend()
    streams = over_streams(ensure_image())
    try:
        oci: Backend | None = open_backend("oci", build=True)
    except SandboxError as error:
        print(f"isolation oci is not measured: {error.message}", file=sys.stderr)
        oci = None
    for number in range(ROUNDS):
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
        await measure_round(samples, container, streams, oci, fork)
    for _ in range(2):
        await measure_rates(samples, {"": container} if oci is None else {"": container, " oci": oci})
    for backend in (container, streams, fork):
        await backend.close()
    return samples


def over_streams(image: GuestImage) -> Backend:
    """Return a backend whose guests speak over attached streams, as with a remote engine."""
    return ContainerBackend(Engine(), image=image.tag, image_hash=image.hash, seccomp=seccomp_profile())


def commit() -> str:
    """Return the short id of the commit measured."""
    return subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()


def show(samples: Samples, peers: Measures, verdicts: list[Verdict]) -> None:
    """Print the tables."""
    print(f"commit {commit()}, Python {platform.python_version()}, {os.cpu_count()} cores, {ROUNDS} rounds\n")
    print(f"{'':34} {'median':>10} {'lowest':>10} {'highest':>10}   (ms; rates and bytes as they are)")
    for name, values in samples.items():
        factor = 1.0 if "a second" in name or "bytes" in name else 1000.0
        cells = [each * factor for each in (statistics.median(values), min(values), max(values))]
        print(f"{name:34} " + " ".join(f"{cell:10.3f}" for cell in cells))
    print("\npeers, without a container (ms)")
    for peer, found in peers.items():
        text = found if isinstance(found, str) else ", ".join(f"{n} {v * 1000:.3f}" for n, v in found.items())
        print(f"{peer:20} {text}")
    print(f"\n{'':58} {'value':>8}  target")
    for verdict in verdicts:
        print(verdict)


def main() -> None:
    """Measure, print the tables, keep the samples."""
    load = os.getloadavg()[0]
    peers = Peers()
    found = peers.measure()
    samples = asyncio.run(measure())
    peers.close()
    medians = {name: statistics.median(values) for name, values in samples.items()}
    ran = {name: each for name, each in found.items() if not isinstance(each, str)}
    tasks = slowdowns(min(ROUNDS, 3))
    verdicts = [*judge(medians, ran), *judge_tasks(tasks)]
    show(samples, found, verdicts)
    folder = ROOT / ("docs/bench" if os.environ.get("BENCH_KEEP") else "artifacts")
    kept = folder / f"bench-{time.strftime('%Y%m%dT%H%M%S')}-{commit()}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    told = {
        each.name: {
            "value": float(f"{each.value:.4g}"),
            "target": each.target,
            "at_least": each.at_least,
            "met": each.met,
        }
        for each in verdicts
    }
    factors = {task.id: round(task.factor, 3) for task in tasks}
    document = {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": [round(each, 1) for each in (load, os.getloadavg()[0])],
        "samples": {name: [float(f"{each:.6g}") for each in values] for name, values in samples.items()},
        "peers": found,
        "tasks": factors,
        "verdicts": told,
    }
    kept.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"\nkept: {kept.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
