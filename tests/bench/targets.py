"""The targets of the design, each a ratio of medians of one run, with its verdict."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench import ours, pipeline
from tests.bench.corpus import Slowdown
from tests.bench.programs import PROGRAMS, TYPICAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One row: what was measured against what, and whether it is within the target."""

    name: str
    value: float
    target: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.value >= self.target if self.at_least else self.value <= self.target

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"{self.name:58} {self.value:8.2f}  {sign} {self.target:<7g} {'met' if self.met else 'MISSED'}"


def judge_tasks(tasks: Sequence[Slowdown]) -> list[Verdict]:
    """Return the verdicts on the public tasks.

    Asynchronous ones run on our loop on one side and on asyncio's on the other, which is the slower one.
    """
    blocking = [task.factor for task in tasks if not task.is_async]
    return [
        Verdict(
            name=f"restricted / plain, geometric mean of {len(tasks)} model tasks",
            value=_geometric_mean([task.factor for task in tasks]),
            target=1.5,
        ),
        Verdict(
            name=f"restricted / plain, the {len(blocking)} blocking ones of them",
            value=_geometric_mean(blocking),
            target=1.5,
        ),
        Verdict(
            name="restricted / plain, worst model task", value=max(task.factor for task in tasks), target=4
        ),
    ]


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(each) for each in values))


def judge(medians: dict[str, float], peers: dict[str, dict[str, float]]) -> list[Verdict]:
    """Return every verdict that the samples allow; a peer that did not run has none."""
    m = medians
    slower = {name: m[f"restricted {name}"] / m[f"plain {name}"] for name in PROGRAMS}
    others = [factor for name, factor in slower.items() if name != TYPICAL]
    rows = [
        Verdict(name="warm first instruction / F_fork", value=m["warm first"] / m["F_fork"], target=1.0),
        Verdict(name="warm hello to result / F_exec", value=m["warm hello"] / m["F_exec"], target=0.5),
        Verdict(name="30 lines, first instruction / F_fork", value=m["30 lines"] / m["F_fork"], target=3),
        Verdict(name="cold hello / F_ctr, engine", value=m["cold hello"] / m["F_ctr"], target=1.6),
        Verdict(name="one call / F_echo", value=m["one call"] / m["F_echo"], target=12),
        Verdict(
            name="one call of a tool on a thread / F_echo",
            value=m["one call on a thread"] / m["F_echo"],
            target=12,
        ),
        Verdict(
            name="1,000 calls at once / in turn",
            value=m["1,000 calls at once"] / m["1,000 calls in turn"],
            target=0.6,
        ),
        Verdict(
            name="100 calls at once / in turn",
            value=m["100 calls at once"] / m["100 calls in turn"],
            target=0.6,
        ),
        Verdict(
            name="100 calls of 50 ms at once / 50 ms",
            value=m["100 calls of 50 ms at once"] / ours.WAIT_S,
            target=1.5,
        ),
        Verdict(name="restricted / plain, typical data work", value=slower[TYPICAL], target=1.3),
        Verdict(
            name="restricted / plain, geometric mean of CPU programs",
            value=_geometric_mean(others),
            target=1.5,
        ),
        Verdict(name="restricted / plain, worst program", value=max(slower.values()), target=4),
        Verdict(
            name="fresh containers a second / engine's own rate",
            value=m["runs a second"] / m["containers a second"],
            target=0.85,
            at_least=True,
        ),
        Verdict(
            name="reuse, runs a second / forks a second, engine",
            value=m["reused runs a second"] / m["forks a second"],
            target=0.5,
            at_least=True,
        ),
        Verdict(name="idle warm sandbox, MiB PSS", value=m["idle PSS bytes"] / 2**20, target=16),
        Verdict(name="idle forked child, MiB of its own", value=m["idle child bytes"] / 2**20, target=4),
        Verdict(name="import bascule.bridge, s", value=m["import bascule.bridge"], target=0.35),
        Verdict(name="bascule --help, s", value=m["bascule --help"], target=0.3),
        *(
            Verdict(
                name=f"F_dec / {size} MiB result",
                value=m[f"F_dec {size} MiB"] / m[f"{size} MiB result"],
                target=0.6,
                at_least=True,
            )
            for size in (1, 10, 50)
        ),
        Verdict(
            name="50 MiB result / 10 MiB result", value=m["50 MiB result"] / m["10 MiB result"], target=6
        ),
    ]
    rows += [Verdict(name=name, value=value, target=target) for name, value, target in pipeline.targets(m)]
    if "F_oci" in m:
        rows += [
            Verdict(
                name="cold hello / F_oci, daemonless", value=m["cold hello oci"] / m["F_oci"], target=2.5
            ),
            Verdict(
                name="reuse, runs a second / forks a second, daemonless",
                value=m["reused runs a second oci"] / m["forks a second"],
                target=0.5,
                at_least=True,
            ),
            Verdict(
                name="daemonless runs a second / engine's own rate",
                value=m["runs a second oci"] / m["containers a second"],
                target=4,
                at_least=True,
            ),
        ]
    monty = peers.get("Monty")
    if monty is not None:
        rows += [
            Verdict(name="one call / Monty's", value=m["one call"] / (monty["100 calls"] / 100), target=0.7),
            Verdict(
                name="1 MiB result / Monty's", value=m["1 MiB result"] / monty["1 MiB result"], target=0.3
            ),
        ]
    return rows
