"""Sandboxes as containers of a runtime directly: no daemon, the same walls, a fifth of the start.

Decides that a start is never interrupted half-way, and what is left to sweep. Trusts the runtime and this
user's cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bascule.sandbox.apparmor import find_profile
from bascule.sandbox.contained import Wiring
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.hardening import container_settings
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.meeting import MeetingPlace, meet, sweep_meeting_places
from bascule.sandbox.oci_bundle import Bundle
from bascule.sandbox.oci_config import oci_config
from bascule.sandbox.oci_rootless import bound_process, make_rootless
from bascule.sandbox.oci_runtime import RuntimeProgram
from bascule.sandbox.oci_sandbox import FirstProcess, OciSandbox, Runtime
from bascule.sandbox.owner import is_tag_gone, own_name, own_tag
from bascule.sandbox.pipes import PipeProtocol
from bascule.sandbox.reuse import ChildSandbox, first_child
from bascule.sandbox.seccomp import seccomp_profile

_Spawned = tuple[PipeProtocol, FirstProcess]

_PREFIX = "bascule-oci-"
_POLL_S = 0.001


class OciBackend:
    """Starts containers from an unpacked image.

    Args:
        bundle: the unpacked guest image.
        seccomp: the profile as JSON text, with what a channel needs where the runtime passes sockets.
        runtime: the program.
    """

    name = "oci"

    def __init__(self, bundle: Bundle, *, seccomp: str, runtime: RuntimeProgram) -> None:
        self.image_hash = bundle.hash
        self._rootfs = bundle.rootfs
        self._seccomp = seccomp
        self._runtime = runtime
        self._apparmor = find_profile()
        self._owner = own_name()

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> OciSandbox:
        """See ``Backend.start``.

        Raises:
            SandboxError: ``start_timeout``, ``guest_not_started`` or ``engine_failed``, with what to do.
            ValueError: ``run_id`` has characters that names may not have.
        """
        place = MeetingPlace() if self._runtime.passes_sockets else None
        try:
            sandbox, _ = await self._launch(limits, place, run_id=run_id, command=command)
        finally:
            if place is not None:
                place.close()
        return sandbox

    async def start_reusable(self, limits: SandboxLimits, *, run_id: str) -> ChildSandbox:
        """See ``Reusing.start_reusable``."""
        if self._runtime.users is not None:
            raise SandboxError(
                "isolation_unsupported",
                "reuse needs a parent that forks a child for each run, and an unprivileged user's guest may "
                "start no process; use reuse=never with it, or root",
            )
        if not self._runtime.passes_sockets:
            raise SandboxError(
                "isolation_unsupported",
                f"reuse needs a runtime whose guests can meet this host at a socket; {self._runtime.name} "
                "passes none; use reuse=never with it",
            )
        place = MeetingPlace()
        place.hush()
        try:
            sandbox, name = await self._launch(limits, place, run_id=run_id, reuse=True)
        except BaseException:
            place.close()
            raise
        return await first_child(sandbox, place, name=name, limits=limits)

    async def _launch(
        self,
        limits: SandboxLimits,
        place: MeetingPlace | None,
        *,
        run_id: str,
        command: Sequence[str] | None = None,
        reuse: bool = False,
    ) -> tuple[OciSandbox, str]:
        """Start a container and return it with its name; failed, it leaves nothing."""
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{own_tag()}-"))
        runtime = Runtime(self._runtime, folder, folder.name)
        spawning: asyncio.Task[_Spawned] | None = None
        try:
            self._write_bundle(limits, runtime, place, run_id, command, reuse=reuse)
            # Never interrupted: a runtime that is killed half-way leaves what only it knows of.
            spawning = asyncio.ensure_future(_spawn(limits, runtime))
            async with asyncio.timeout(limits.start_timeout_s):
                pipes, first = await asyncio.shield(spawning)
                wiring = Wiring(attached=pipes)
                if command is None and place is not None and not reuse:
                    who = runtime.name if self._runtime.users is None else first.pid
                    wiring = await meet(place, who, attached=pipes, limits=limits)
            return OciSandbox(runtime, limits, wiring, pipes, first), runtime.name
        except BaseException as error:
            await asyncio.shield(_abandon(spawning, runtime))
            if isinstance(error, TimeoutError):
                raise SandboxError(
                    "start_timeout",
                    f"{self._runtime.path} did not start a sandbox within {limits.start_timeout_s:g} s; "
                    "look at the load, or raise start_s",
                ) from error
            raise

    async def sweep(self) -> int:
        """See ``Backend.sweep``."""
        await asyncio.to_thread(sweep_meeting_places)
        gone = 0
        for folder in await asyncio.to_thread(_orphans):
            with contextlib.suppress(SandboxError):
                await Runtime(self._runtime, folder, folder.name).remove()
                gone += 1
        return gone

    async def close(self) -> None:
        """See ``Backend.close``."""

    def _write_bundle(
        self,
        limits: SandboxLimits,
        runtime: Runtime,
        place: MeetingPlace | None,
        run_id: str,
        command: Sequence[str] | None,
        *,
        reuse: bool,
    ) -> None:
        settings = container_settings(
            limits,
            image=self.image_hash,
            run_id=run_id,
            owner=self._owner,
            seccomp=seccomp_profile(channel=True, reuse=True) if reuse else self._seccomp,
            runtime=None,
            command=command,
            channel=None if place is None else str(place.folder),
            reuse=reuse,
            alone=self._runtime.users is not None,
        )
        alone = self._runtime.users is not None
        config = oci_config(
            settings, rootfs=self._rootfs, cgroup=f"/{runtime.name}", init=command is not None and not alone
        )
        if self._apparmor is not None:
            config["process"]["apparmorProfile"] = self._apparmor
        if self._runtime.users is not None:
            make_rootless(config, self._runtime.users)
            bound_process(config, self._runtime.users, limits)
        if not self._runtime.keeps_errors:
            # glibc makes threads by clone when clone3 says ENOSYS, only then; that kernel says it itself.
            for rule in config["linux"]["seccomp"]["syscalls"]:
                if rule["names"] == ["clone3"]:
                    rule.update(action="SCMP_ACT_ALLOW")
                    rule.pop("errnoRet")
        if self._runtime.least_pids > 1:
            pids = config["linux"]["resources"]["pids"]
            pids["limit"] = max(pids["limit"], self._runtime.least_pids)
        (runtime.folder / "config.json").write_text(json.dumps(config), "utf-8")


async def _spawn(limits: SandboxLimits, runtime: Runtime) -> _Spawned:
    loop = asyncio.get_running_loop()
    _, pipes = await loop.subprocess_exec(
        lambda: PipeProtocol(frame_bytes=limits.frame_bytes), *runtime.run_command, close_fds=True
    )
    try:
        pid = await _first_pid(runtime, pipes)
        return pipes, FirstProcess(pid, grouped=runtime.program.users is None)
    except BaseException:
        pipes.abort()
        raise


async def _abandon(spawning: asyncio.Task[_Spawned] | None, runtime: Runtime) -> None:
    """Let a start that nobody waits for any more come to its end, then end and remove what it made."""
    if spawning is not None:
        with contextlib.suppress(SandboxError):
            pipes, first = await spawning
            first.kill()
            await pipes.exited.wait()
            first.close()
            pipes.abort()
    await runtime.remove()


async def _first_pid(runtime: Runtime, pipes: PipeProtocol) -> int:
    """Wait until the runtime has said which process it made.

    Raises:
        SandboxError: ``engine_failed`` with its last words.
    """
    file = runtime.folder / "pid"
    while True:
        ended = pipes.exited.is_set()
        with contextlib.suppress(OSError, ValueError):
            return int(file.read_text("ascii"))
        if ended:
            await asyncio.wait_for(pipes.stream.wait_ended(), 1)
            raise SandboxError(
                "engine_failed", f"{runtime.program.path} refused: {pipes.stream.stderr_tail.strip()[-600:]}"
            )
        await asyncio.sleep(_POLL_S)


def _orphans() -> list[Path]:
    found: list[Path] = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            if is_tag_gone(folder.name.removeprefix(_PREFIX).partition("-")[0]):
                found.append(folder)
    return found
