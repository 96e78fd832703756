"""The same script, seed and completions give the same frames, whatever completes first."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from bascule.wire import Act, Done
from tests.unit.guest.determinism_script import SCRIPT
from tests.unit.guest.harness import MemoryHost, Tools, run, stub_of


def double(i: int) -> int:
    """Return twice the number."""
    return 2 * i


TOOLS: Tools = {"double": double}


@dataclass(kw_only=True)
class Recorder(MemoryHost):
    """A host that keeps what it answered."""

    answers: list[Done] = field(default_factory=list[Done])

    def exchange(self, act: Act) -> Done:
        """Answer and remember."""
        done = super().exchange(act)
        self.answers.append(done)
        return done


@dataclass(kw_only=True)
class Player(MemoryHost):
    """A host that gives recorded answers and executes nothing."""

    recorded: list[Done]

    def exchange(self, act: Act) -> Done:
        """Give the next recorded answer."""
        super().exchange(act)
        return self.recorded.pop(0)


ORDERS = [("fifo", 0), ("lifo", 0), *(("random", seed) for seed in range(6))]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_recorded_answers_replay_to_the_same_frames(order: Any, seed: int, batch: bool) -> None:
    stubs = [stub_of("double", double)]
    recorder = Recorder(tools=TOOLS, order=order, batch=batch, rng=random.Random(seed))
    first = run(SCRIPT, stubs=stubs, host=recorder, seed=5)
    assert first.errors == ()
    second = run(SCRIPT, stubs=stubs, host=Player(tools=TOOLS, recorded=list(recorder.answers)), seed=5)
    assert (second.output, second.acts) == (first.output, first.acts)
    assert second.calls == first.calls


def test_orders_of_completion_do_differ() -> None:
    outputs = {run(SCRIPT, TOOLS, order=order, seed=seed).output for order, seed in ORDERS}  # type: ignore[arg-type]
    assert len(outputs) > 3


def test_another_seed_changes_what_is_random_and_nothing_else() -> None:
    one, two = run(SCRIPT, TOOLS, seed=1).output.splitlines(), run(SCRIPT, TOOLS, seed=2).output.splitlines()
    differing = [number for number, pair in enumerate(zip(one, two, strict=True)) if pair[0] != pair[1]]
    assert differing[0] == 6
    assert one[:6] == two[:6]
