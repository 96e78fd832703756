"""The interpreter with the container switched off: hostile scripts in forked guests without a wall.

The bridge is the real one; the guest is the real program; the canary is in its environment and in a file it
could open. A row that escapes here would still meet the container, which `test_container_alone` tests alone.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.escape.attack import Outcomes, attack_all, prepare_notes
from tests.escape.rows import CANARY, Row, fault, load
from tests.forks.backend import ForkBackend

ROWS = [*load("interpreter"), *load("bridge"), *load("legit")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    root = tmp_path_factory.mktemp("host")
    secret = prepare_notes(root)

    async def run() -> Outcomes:
        backend = ForkBackend({"CANARY": CANARY})
        try:
            return await attack_all(backend, ROWS, root / "notes", at_once=3, canary=str(secret))
        finally:
            await backend.close()

    return asyncio.run(run())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_script_stays_within_the_lists(row: Row, outcomes: Outcomes) -> None:
    seen, ran = outcomes[row.id]
    assert fault(row, seen) is None
    assert ran == [], "a denied call ran"
