"""What the engine tests share: a backend on the real image, and a look at what the engine still has."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from bascule.sandbox import Backend, GuestImage, ensure_image, open_backend
from bascule.sandbox.engine import Engine


@pytest.fixture(scope="session")
def guest_image() -> GuestImage:
    """Give the guest image of this installation, built if missing."""
    return ensure_image()


@pytest.fixture
async def backend(guest_image: GuestImage, anyio_backend: str) -> AsyncGenerator[Backend]:
    """Give a container backend and close it."""
    opened = open_backend("container", build=True)
    yield opened
    await opened.close()


@pytest.fixture
def containers_of(guest_image: GuestImage) -> Callable[[str], list[dict[str, Any]]]:
    """Give a function that lists the containers of a run, dead ones included."""

    def find(run_id: str) -> list[dict[str, Any]]:
        engine = Engine()
        try:
            filters = {"label": f"bascule.run={run_id}"}
            return engine.call_now(engine.api.containers, all=True, filters=filters)
        finally:
            engine.close()

    return find


@pytest.fixture
def run_id(request: pytest.FixtureRequest) -> str:
    """Give a run id of this test's own."""
    return f"test-{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**8}"
