"""Randomness comes from the seed of the run: the same seed draws the same, another seed something else."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from bascule.guest.rules.attributes import ATTRIBUTES
from tests.unit.guest.facade_stage import Stage
from tests.unit.guest.harness import run


def _draws(seed: int) -> list[Any]:
    stage = Stage(seed=seed)
    random, secrets, ids = stage["random"], stage["secrets"], stage["uuid"]
    return [
        random.random(),
        random.Random().random(),
        random.SystemRandom().randint(1, 1_000_000),
        random.choice(range(1_000_000)),
        secrets.token_hex(8),
        secrets.token_bytes(4),
        secrets.token_urlsafe(),
        secrets.randbelow(1_000_000),
        secrets.randbits(32),
        ids.uuid4(),
        ids.uuid1(),
        stage["statistics"].NormalDist().samples(2),
    ]


def test_the_same_seed_draws_the_same() -> None:
    assert _draws(7) == _draws(7)


def test_another_seed_draws_something_else() -> None:
    assert not [pair for pair in zip(_draws(7), _draws(8), strict=True) if pair[0] == pair[1]]


def test_a_seeded_generator_draws_what_python_draws() -> None:
    import random

    own = Stage()["random"]
    assert own.Random(3).random() == random.Random(3).random()
    own.seed(5)
    assert own.random() == random.Random(5).random()
    state = own.getstate()
    first = own.random()
    own.setstate(state)
    assert own.random() == first


def test_seeding_without_a_value_draws_from_the_run() -> None:
    first, second = Stage()["random"], Stage()["random"]
    first.seed()
    second.seed()
    assert first.random() == second.random()


def test_identifiers_have_their_version() -> None:
    ids = Stage()["uuid"]
    assert ids.uuid4().version == 4
    assert ids.uuid1().version == 1
    assert ids.uuid1(node=1, clock_seq=2).node == 1
    assert ids.uuid5(ids.NAMESPACE_DNS, "a") == uuid.uuid5(uuid.NAMESPACE_DNS, "a")


def test_randbelow_needs_a_positive_bound() -> None:
    with pytest.raises(ValueError, match="positive"):
        Stage()["secrets"].randbelow(0)


def test_the_generator_class_comes_with_its_row() -> None:
    stage = Stage()
    own = stage["random"].Random
    (rows,) = [rows for rows in stage.guards.admitted if own in rows.instances]
    import random

    assert rows.instances[own] >= ATTRIBUTES[random.Random]


def test_scripts_may_extend_and_compare_the_generator() -> None:
    outcome = run(
        "import random\n"
        "class Dice(random.Random):\n"
        "    def roll(self):\n"
        "        return self.randint(1, 6)\n"
        "d = Dice(4)\n"
        "print(1 <= d.roll() <= 6, isinstance(d, random.Random), random.sample(range(9), 2) != [])\n"
    )
    assert outcome.output == "True True True\n"
