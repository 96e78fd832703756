"""Two thousand random deaths in every run of the tests; `make bench-faults` has twenty thousand."""

from __future__ import annotations

from tests.faults.random_runs import run_all

DEATHS = 2000
FIRST_SEED = 1_000


def test_two_thousand_random_deaths_lose_nothing_double_nothing_and_change_nothing() -> None:
    tally = run_all(DEATHS, first=FIRST_SEED, workers=2)
    assert tally.problems == []
    assert tally.deaths >= DEATHS
    assert tally.unknown > 0
