"""Nothing of the host reaches a script: other hash seeds, other walls, other days give the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.engine

NOW = 1_750_000_000.0


def frames(isolation: str, *, hash_seed: str, now: float = NOW) -> str:
    """Return the frames of one run from a host process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.determinism_driver", isolation, str(now)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"status": "ok"' in done.stdout, done.stdout
    return done.stdout


def test_hash_seeds_of_the_host_and_kinds_of_guest_make_no_difference() -> None:
    kinds = [
        ("process", "0"),
        ("process", "1"),
        ("process", "random"),
        ("container", "2"),
        ("container", "random"),
    ]
    assert len({frames(isolation, hash_seed=seed) for isolation, seed in kinds}) == 1


def test_another_day_changes_what_shows_the_time_and_nothing_else() -> None:
    one = frames("container", hash_seed="3")
    two = frames("container", hash_seed="3", now=NOW + 86_400 * 40)
    assert one != two
    assert _without_times(one, "2025-06-15", NOW) == _without_times(two, "2025-07-25", NOW + 86_400 * 40)


def _without_times(text: str, day: str, now: float) -> str:
    """Replace the day, and every moment of the run, by its distance from the start."""
    text = text.replace(day, "DAY")
    for seconds in range(200):
        text = text.replace(f"{now + seconds:.1f}", f"+{seconds}")
    return text
