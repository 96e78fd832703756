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
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bascule.sandbox.attach import AttachProtocol
from bascule.sandbox.contained import Wiring
from bascule.sandbox.container_sandbox import ContainerSandbox, remove
from bascule.sandbox.engine import Engine, raw_socket
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.hardening import OWNER_LABEL, container_settings, for_podman
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.meeting import MeetingPlace, meet, sweep_meeting_places
from bascule.sandbox.owner import is_gone, own_name
from bascule.sandbox.reuse import ChildSandbox, first_child
from bascule.sandbox.seccomp import profile_file, seccomp_profile
from bascule.sandbox.ungrouped import must_be_alone, without_groups

_NOT_OUR_FILES = ("bind source path does not exist", 'invalid mount config for type "bind": stat ')
"""What an engine says that shares this kernel but not these files: we run in a container ourselves, or it is
another user's."""

S = TypeVar("S", ContainerSandbox, ChildSandbox)

_log = logging.getLogger("bascule.sandbox")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What one start is asked for."""

    limits: SandboxLimits
    name: str
    run_id: str
    command: Sequence[str] | None = None
    reuse: bool = False


class ContainerBackend:
    """Starts hardened containers from the guest image.

    Args:
        engine: owned from here on; closed with the backend.
        image: tag or id of the guest image.
        image_hash: what its guests say in their Hello.
        seccomp: the profile as JSON text.
        channel_seccomp: the profile of guests that meet this host at a unix socket; None where they cannot,
            and frames then come over the attached streams.
        runtime: a runtime the engine knows, None for its default.
        podman: the engine is podman on this machine: it takes filters from files, and settings of its own.
        cannot_limit: what the engine has no control group for, ``EngineInfo.cannot_limit``.
    """

    name = "container"

    def __init__(
        self,
        engine: Engine,
        *,
        image: str,
        image_hash: str,
        seccomp: str,
        channel_seccomp: str | None = None,
        runtime: str | None = None,
        podman: bool = False,
        cannot_limit: frozenset[str] = frozenset(),
    ) -> None:
        self.image_hash = image_hash
        self._engine = engine
        self._image = image
        self._seccomp = seccomp
        self._channel_seccomp = channel_seccomp
        self._runtime = runtime
        self._podman = podman
        self._cannot_limit = cannot_limit
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
        # Chosen here, so that the container can be removed even if the answer to create never arrives.
        name = f"bascule-{run_id}-{secrets.token_hex(4)}"
        order = _Order(limits=limits, name=name, run_id=run_id, command=command)
        return await self._see_through(order, self._start_either_way(order))

    async def start_reusable(self, limits: SandboxLimits, *, run_id: str) -> ChildSandbox:
        """See ``Reusing.start_reusable``."""
        if self._channel_seccomp is None:
            raise SandboxError(
                "isolation_unsupported",
                "reuse needs an engine on this machine, with runc or crun, whose guests can meet this host "
                "at a socket; use reuse=never here",
            )
        name = f"bascule-{run_id}-{secrets.token_hex(4)}"
        order = _Order(limits=limits, name=name, run_id=run_id, reuse=True)
        return await self._see_through(order, self._start_nursery(order))

    async def _see_through(self, order: _Order, work: Coroutine[Any, Any, S]) -> S:
        """Wait for a start; whatever ends the waiting, nothing of it is left."""
        limits, starting = order.limits, asyncio.ensure_future(work)
        try:
            return await asyncio.wait_for(asyncio.shield(starting), limits.start_timeout_s)
        except BaseException as error:
            await asyncio.shield(self._abandon(starting, order.name))
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
        await asyncio.to_thread(sweep_meeting_places)
        return removed

    async def close(self) -> None:
        """See ``Backend.close``."""
        self._engine.close()

    async def _start_either_way(self, order: _Order) -> ContainerSandbox:
        """Start with a channel where that can be, else with attached streams: a matter of speed only."""
        if self._channel_seccomp is None:
            return await self._start(order, None)
        place = MeetingPlace()
        try:
            return await self._start(order, place)
        except SandboxError as error:
            if not any(each in error.message for each in _NOT_OUR_FILES):
                raise
            self._channel_seccomp = None
        finally:
            place.close()
        return await self._start(order, None)

    async def _start_nursery(self, order: _Order) -> ChildSandbox:
        place = MeetingPlace()
        place.hush()
        try:
            container = await self._start(order, place)
        except BaseException:
            place.close()
            raise
        return await first_child(container, place, name=container.container_id, limits=order.limits)

    async def _start(self, order: _Order, place: MeetingPlace | None) -> ContainerSandbox:
        api = self._engine.api
        created = await self._engine.call(
            api.create_container_from_config, self._settings(order, place), order.name
        )
        container = str(created["Id"])
        attached = AttachProtocol(frame_bytes=order.limits.frame_bytes)
        await _adopt(await self._engine.call(self._attach, container), attached)
        wiring = Wiring(attached=attached)
        try:
            await self._engine.call(api.start, container)
            if place is not None and order.command is None and not order.reuse:
                wiring = await meet(place, container, attached=attached, limits=order.limits)
        except BaseException:
            attached.abort()
            raise
        return ContainerSandbox(self._engine, order.limits, container, wiring)

    def _settings(self, order: _Order, place: MeetingPlace | None) -> dict[str, object]:
        seccomp = self._seccomp if place is None else self._channel_seccomp
        if order.reuse:
            seccomp = seccomp_profile(channel=True, reuse=True)
        assert seccomp is not None
        settings = container_settings(
            order.limits,
            image=self._image,
            run_id=order.run_id,
            owner=self._owner,
            seccomp=profile_file(seccomp) if self._podman else seccomp,
            runtime=self._runtime,
            command=order.command,
            channel=None if place is None else str(place.folder),
            reuse=order.reuse,
            alone=(alone := must_be_alone(self._cannot_limit)),
        )
        if self._podman:
            settings = for_podman(settings, guest=alone or order.command is None)
        return without_groups(settings, self._cannot_limit, order.limits)

    def _attach(self, container: str) -> socket.socket:
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        attached = self._engine.api.attach_socket(container, params=params)
        channel = raw_socket(attached)
        channel.setblocking(False)
        return channel

    async def _abandon(self, starting: asyncio.Task[S], name: str) -> None:
        """Let a start that nobody waits for any more come to its end, then remove what it made."""
        with contextlib.suppress(SandboxError):
            await remove(self._engine, name)  # a guest that is waited for comes no more
        with contextlib.suppress(SandboxError):
            sandbox = await starting
            await sandbox.kill()
            await sandbox.close()
        with contextlib.suppress(SandboxError):
            await remove(self._engine, name)


async def _adopt(channel: socket.socket, protocol: asyncio.Protocol) -> None:
    loop = asyncio.get_running_loop()
    if channel.family == socket.AF_UNIX:
        await loop.create_unix_connection(lambda: protocol, sock=channel)
    else:
        await loop.create_connection(lambda: protocol, sock=channel)
