"""Both stores, for what must hold in each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.store import Store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """One store after the other."""
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "runs.db")
    yield made
    made.close()
