"""What the engine tests share: a backend on the real image, and a look at what the engine still has."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from bascule.sandbox import Backend, GuestImage, SandboxError, ensure_image, open_backend
from bascule.sandbox.engine import Engine
from tests.integration.console_server import Server, make_server


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give one console to all modules of a test process that can share it: each looks at runs of its own."""
    made = make_server(tmp_path_factory.mktemp("console"), "--requests-per-minute", "1000000")
    yield made
    made.stop()


@pytest.fixture(scope="session")
def guest_image() -> GuestImage:
    """Give the guest image of this installation, built if missing."""
    return ensure_image()


@pytest.fixture(params=["container", "oci"])
async def backend(
    request: pytest.FixtureRequest, guest_image: GuestImage, anyio_backend: str
) -> AsyncGenerator[Backend]:
    """Give a backend of containers, by engine and by runtime alone, and close it."""
    isolation: Literal["container", "oci"] = request.param
    if isolation == "oci" and os.geteuid() != 0:
        pytest.skip("control groups are root's; test_oci_rootless.py is about everybody else")
    try:
        opened = open_backend(isolation, build=True)
    except SandboxError as error:
        if isolation == "oci" and error.code == "isolation_unsupported":
            pytest.skip(error.message)
        raise
    yield opened
    await opened.close()


@pytest.fixture
def containers_of(guest_image: GuestImage) -> Callable[[str], list[dict[str, Any]]]:
    """Give a function that lists the containers of a run, dead ones and those without an engine included."""

    def find(run_id: str) -> list[dict[str, Any]]:
        return [*of_engine(run_id), *of_runtime(run_id)]

    def of_runtime(run_id: str) -> list[dict[str, Any]]:
        configs = Path(tempfile.gettempdir()).glob("bascule-oci-*/config.json")
        found: list[dict[str, Any]] = [json.loads(each.read_text("utf-8")) for each in configs]
        return [each for each in found if each["annotations"]["bascule.run"] == run_id]

    def of_engine(run_id: str) -> list[dict[str, Any]]:
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
