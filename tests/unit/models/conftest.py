"""One fork server for the tests of a module: it starts slowly, its guests do not."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.forks.backend import ForkBackend


@pytest.fixture(scope="module")
async def forks(anyio_backend: str) -> AsyncIterator[ForkBackend]:
    """Give a backend whose guests are forked from one warm parent."""
    backend = ForkBackend()
    yield backend
    await backend.close()
