"""The sweep: one orphan that cannot be removed keeps neither the others nor a new run."""

from __future__ import annotations

from typing import Any, cast

import pytest

from bascule.sandbox.container import ContainerBackend
from bascule.sandbox.engine import Engine
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.hardening import OWNER_LABEL
from bascule.sandbox.owner import own_name

pytestmark = pytest.mark.anyio


class StubEngine:
    """An engine with three containers of dead hosts, one of which is stuck, and one of a living host."""

    def __init__(self) -> None:
        self.api = self
        self.removed: list[str] = []

    async def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def containers(self, **_: object) -> list[dict[str, Any]]:
        host = own_name().split(":")[0]
        owners = {"first": f"{host}:1:1", "stuck": f"{host}:1:2", "last": f"{host}:1:3", "ours": own_name()}
        return [{"Id": name, "Labels": {OWNER_LABEL: owner}} for name, owner in owners.items()]

    def remove_container(self, container: str, **_: object) -> None:
        if container == "stuck":
            raise SandboxError("engine_failed", "device or resource busy")
        self.removed.append(container)


async def test_a_stuck_orphan_keeps_nobody_from_starting() -> None:
    engine = StubEngine()
    backend = ContainerBackend(cast("Engine", engine), image="x", image_hash="x", seccomp="{}")
    assert await backend.sweep() == 2
    assert engine.removed == ["first", "last"]
