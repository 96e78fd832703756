"""One container of an engine, while it runs and when it ends.

Kill, never stop; inspect; remove with force, in every path. An engine that is stuck on the guest's own stream
is helped by letting go of it.
"""

from __future__ import annotations

import contextlib
from typing import Any

from bascule.sandbox.cgroup import Counters, folders_of_container, read_counters
from bascule.sandbox.contained import ContainedSandbox, FinalState, Wiring
from bascule.sandbox.engine import Engine
from bascule.sandbox.errors import NotThere, SandboxError
from bascule.sandbox.limits import SandboxLimits


class ContainerSandbox(ContainedSandbox):
    """One container. Made by ``ContainerBackend.start`` only."""

    def __init__(self, engine: Engine, limits: SandboxLimits, container: str, wiring: Wiring) -> None:
        super().__init__(limits, wiring)
        self._engine = engine
        self._container = container

    @property
    def container_id(self) -> str:
        """The engine's id, for diagnosis."""
        return self._container

    async def _kill_all(self) -> bool:
        kill = self._engine.api.kill
        try:
            await self._engine.call(kill, self._container, signal="SIGKILL")
        except NotThere:
            return False
        except SandboxError as error:
            if error.code == "engine_failed":  # "is not running": it was faster
                return False
            # The engine is stuck, most likely on this very stream: let go of it and try once more.
            self._wiring.attached.abort()
            with contextlib.suppress(NotThere):
                await self._engine.call(kill, self._container, signal="SIGKILL")
        return True

    async def _final_state(self) -> FinalState:
        api = self._engine.api
        if self._wiring.line.stream.ended and not self._killed:
            # The streams closed, so the guest has exited or is about to; one that closed them and
            # stayed runs into the deadline and is killed below.
            with contextlib.suppress(SandboxError):
                await self._engine.call(api.wait, self._container, timeout=self._limits.exit_grace_s)
        for _ in range(2):
            try:
                found: dict[str, Any] = await self._engine.call(api.inspect_container, self._container)
            except NotThere:
                return FinalState()
            state: dict[str, Any] = found["State"]
            if not state.get("Running"):
                return FinalState(exit_code=state.get("ExitCode"), oom_killed=bool(state.get("OOMKilled")))
            self._killed = await self._kill_all() or self._killed
            with contextlib.suppress(SandboxError):
                await self._engine.call(api.wait, self._container, timeout=self._engine.timeout_s)
        return FinalState()

    async def _remove(self) -> None:
        self._wiring.attached.abort()
        await remove(self._engine, self._container)

    def _read_counters(self) -> Counters:
        if self._wiring.evidence is not None:
            return super()._read_counters()
        return read_counters(folders_of_container(self._container)) if self._engine.local else Counters()


async def remove(engine: Engine, container: str) -> None:
    """Remove a container with force, killing what runs in it; one that is gone is fine.

    Raises:
        SandboxError: the engine did not do it; the sweep of the next start tries again.
    """
    for attempt in (1, 2):
        try:
            await engine.call(engine.api.remove_container, container, force=True, v=True)
            return
        except NotThere:
            return
        except SandboxError as error:
            # Two removals at once make the engine answer 409; the other one does the work.
            if error.code == "engine_failed" and "already in progress" in error.message:
                return
            if attempt == 2:
                raise
