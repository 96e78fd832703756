"""Sandboxes as hardened containers of a Docker-compatible engine.

Decides the order of engine calls so that nothing is lost and nothing is left: create, attach, start (attach
before start, so that no byte is missed); kill, never stop; inspect; remove with force, in every path. No
engine call happens while a run is going on, and no thread is held by a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
from collections.abc import Sequence
from typing import Any

from bascule.sandbox.attach import AttachProtocol
from bascule.sandbox.cgroup import read_usage
from bascule.sandbox.engine import Engine, raw_socket
from bascule.sandbox.errors import NotThere, SandboxError
from bascule.sandbox.hardening import OWNER_LABEL, container_settings
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.owner import is_gone, own_name
from bascule.sandbox.sandbox import Ending

_SIGNAL_BASE = 128
_log = logging.getLogger("bascule.sandbox")


class ContainerSandbox:
    """One container. Made by ``ContainerBackend.start`` only."""

    def __init__(
        self, engine: Engine, limits: SandboxLimits, container: str, attached: AttachProtocol
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._container = container
        self._attached = attached
        self._killed = False
        self._usage: tuple[int | None, float | None] = (None, None)
        self._closing: asyncio.Task[Ending] | None = None

    @property
    def container_id(self) -> str:
        """The engine's id, for diagnosis."""
        return self._container

    async def send(self, frame: bytes) -> None:
        """See ``Sandbox.send``."""
        await self._attached.send(frame)

    async def receive(self) -> bytes:
        """See ``Sandbox.receive``."""
        return await self._attached.stream.receive()

    async def kill(self) -> None:
        """See ``Sandbox.kill``.

        Raises:
            SandboxError: the engine could not be asked; the container may still run.
        """
        self._attached.stream.discard()
        if self._closing is not None:
            return
        self._read_usage()
        await self._kill()

    async def close(self) -> Ending:
        """See ``Sandbox.close``.

        Raises:
            SandboxError: the engine failed; removal was tried all the same, the next sweep repeats it.
        """
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        return await asyncio.shield(self._closing)

    async def _close(self) -> Ending:
        stream = self._attached.stream
        try:
            stream.discard()
            if not stream.ended and not self._killed:
                self._read_usage()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stream.wait_ended(), self._limits.exit_grace_s)
            state = await self._final_state()
        finally:
            self._attached.abort()
            await remove(self._engine, self._container)
        return self._ending(state)

    async def _final_state(self) -> dict[str, Any]:
        """Return the engine's State of the exited container, ending it if need be."""
        if self._attached.stream.ended and not self._killed:
            # The streams closed, so the guest has exited or is about to; one that closed them and
            # stayed runs into the deadline and is killed below.
            with contextlib.suppress(SandboxError):
                await self._engine.call(
                    self._engine.api.wait, self._container, timeout=self._limits.exit_grace_s
                )
        for _ in range(2):
            try:
                found: dict[str, Any] = await self._engine.call(
                    self._engine.api.inspect_container, self._container
                )
            except NotThere:
                return {}
            state: dict[str, Any] = found["State"]
            if not state.get("Running"):
                return state
            await self._kill()
            with contextlib.suppress(SandboxError):
                await self._engine.call(
                    self._engine.api.wait, self._container, timeout=self._engine.timeout_s
                )
        return {}

    async def _kill(self) -> None:
        kill = self._engine.api.kill
        try:
            await self._engine.call(kill, self._container, signal="SIGKILL")
        except NotThere:
            return
        except SandboxError as error:
            if error.code == "engine_failed":  # "is not running": it was faster
                return
            # The engine is stuck, most likely on this very stream: let go of it and try once more.
            self._attached.abort()
            with contextlib.suppress(NotThere):
                await self._engine.call(kill, self._container, signal="SIGKILL")
        self._killed = True

    def _read_usage(self) -> None:
        if self._engine.local:
            self._usage = read_usage(self._container)

    def _ending(self, state: dict[str, Any]) -> Ending:
        code = state.get("ExitCode") if state else None
        oom_killed = bool(state.get("OOMKilled"))
        peak, cpu_s = self._usage
        return Ending(
            exit_code=code,
            signal=code - _SIGNAL_BASE if code is not None and code > _SIGNAL_BASE else None,
            oom_killed=oom_killed,
            killed=self._killed,
            stderr_tail=self._attached.stream.stderr_tail,
            peak_memory_bytes=self._limits.memory_bytes if oom_killed else peak,
            cpu_s=cpu_s,
        )


class ContainerBackend:
    """Starts hardened containers from the guest image.

    Args:
        engine: owned from here on; closed with the backend.
        image: tag or id of the guest image.
        image_hash: what its guests say in their Hello.
        seccomp: the profile as JSON text.
        runtime: a runtime the engine knows, None for its default.
    """

    name = "container"

    def __init__(
        self, engine: Engine, *, image: str, image_hash: str, seccomp: str, runtime: str | None = None
    ) -> None:
        self.image_hash = image_hash
        self._engine = engine
        self._image = image
        self._seccomp = seccomp
        self._runtime = runtime
        self._owner = own_name()

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> ContainerSandbox:
        """See ``Backend.start``.

        Raises:
            SandboxError: ``image_missing``, ``start_timeout``, ``engine_timeout``, ``engine_unavailable`` or
                ``engine_failed``.
            ValueError: ``run_id`` has characters the engine's names may not have.
        """
        settings = container_settings(
            limits,
            image=self._image,
            run_id=run_id,
            owner=self._owner,
            seccomp=self._seccomp,
            runtime=self._runtime,
            command=command,
        )
        # Chosen here, so that the container can be removed even if the answer to create never arrives.
        name = f"bascule-{run_id}-{secrets.token_hex(4)}"
        starting = asyncio.ensure_future(self._start(limits, name, settings))
        try:
            return await asyncio.wait_for(asyncio.shield(starting), limits.start_timeout_s)
        except BaseException as error:
            await asyncio.shield(self._abandon(starting, name))
            if isinstance(error, TimeoutError):
                raise SandboxError(
                    "start_timeout",
                    f"the engine did not start a sandbox within {limits.start_timeout_s:g} s; look at its "
                    "load and its log, or raise start_timeout_s",
                ) from error
            raise

    async def sweep(self) -> int:
        """See ``Backend.sweep``."""
        found = await self._engine.call(self._engine.api.containers, all=True, filters={"label": OWNER_LABEL})
        orphans = [str(each["Id"]) for each in found if is_gone(str(each["Labels"].get(OWNER_LABEL, "")))]
        removed = 0
        for orphan in orphans:
            try:
                await remove(self._engine, orphan)
                removed += 1
            except SandboxError as error:  # a stuck one must not keep every new run from starting
                _log.warning("orphan %s could not be removed: %s", orphan[:12], error)
        return removed

    async def close(self) -> None:
        """See ``Backend.close``."""
        self._engine.close()

    async def _start(self, limits: SandboxLimits, name: str, settings: dict[str, object]) -> ContainerSandbox:
        api = self._engine.api
        created = await self._engine.call(api.create_container_from_config, settings, name)
        container = str(created["Id"])
        channel = await self._engine.call(self._attach, container)
        attached = AttachProtocol(frame_bytes=limits.frame_bytes)
        loop = asyncio.get_running_loop()
        if channel.family == socket.AF_UNIX:
            await loop.create_unix_connection(lambda: attached, sock=channel)
        else:
            await loop.create_connection(lambda: attached, sock=channel)
        try:
            await self._engine.call(api.start, container)
        except BaseException:
            attached.abort()
            raise
        return ContainerSandbox(self._engine, limits, container, attached)

    def _attach(self, container: str) -> socket.socket:
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        attached = self._engine.api.attach_socket(container, params=params)
        channel = raw_socket(attached)
        channel.setblocking(False)
        return channel

    async def _abandon(self, starting: asyncio.Task[ContainerSandbox], name: str) -> None:
        """Let a start that nobody waits for any more come to its end, then remove what it made."""
        with contextlib.suppress(SandboxError):
            sandbox = await starting
            await sandbox.kill()
        with contextlib.suppress(SandboxError):
            await remove(self._engine, name)


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
