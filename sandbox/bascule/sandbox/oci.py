"""Sandboxes as containers of runc or crun directly: no daemon, the same walls, a fifth of the start.

Decides what is refused: who is not root on this machine cannot have limits of memory, processes and CPU
enforced by the kernel, and a container without them is not offered. Trusts the runtime and this user's cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bascule.sandbox.contained import Wiring
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.hardening import container_settings
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.meeting import MeetingPlace, meet, sweep_meeting_places
from bascule.sandbox.oci_bundle import Bundle
from bascule.sandbox.oci_config import oci_config
from bascule.sandbox.oci_sandbox import FirstProcess, OciSandbox, Runtime
from bascule.sandbox.owner import is_gone, own_name
from bascule.sandbox.pipes import PipeProtocol

RUNTIMES: Final = ("runc", "crun")

_Spawned = tuple[PipeProtocol, FirstProcess]

_PREFIX = "bascule-oci-"
_POLL_S = 0.001


def find_runtime(asked: str | None) -> str:
    """Return the path of the runtime asked for, of the first of ``RUNTIMES`` when none is.

    Raises:
        SandboxError: ``isolation_unsupported`` with what to do: no runtime, or a user without limits.
    """
    for name in RUNTIMES if asked is None else (asked,):
        found = shutil.which(name)
        if found is None:
            continue
        if os.path.basename(name) not in RUNTIMES:
            raise _unsupported(f"isolation oci runs {' or '.join(RUNTIMES)}, not {name!r}")
        if os.geteuid() != 0:
            raise _unsupported(
                "isolation oci needs root here: an unprivileged user cannot have memory, processes and CPU "
                'limited by the kernel. Run as root, or use isolation="container" with a rootless engine'
            )
        return found
    wanted = asked or " or ".join(RUNTIMES)
    raise _unsupported(f"no {wanted} on this machine; install it (Debian or Ubuntu: `apt-get install runc`)")


class OciBackend:
    """Starts containers from an unpacked image.

    Args:
        bundle: the unpacked guest image.
        seccomp: the profile as JSON text, with what a channel needs: guests always have one.
        runtime: path of runc or crun.
    """

    name = "oci"

    def __init__(self, bundle: Bundle, *, seccomp: str, runtime: str) -> None:
        self.image_hash = bundle.hash
        self._rootfs = bundle.rootfs
        self._seccomp = seccomp
        self._runtime = runtime
        self._owner = own_name()

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> OciSandbox:
        """See ``Backend.start``.

        Raises:
            SandboxError: ``start_timeout``, ``guest_not_started`` or ``engine_failed``, with what to do.
            ValueError: ``run_id`` has characters that names may not have.
        """
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        runtime = Runtime(self._runtime, folder, folder.name)
        place = MeetingPlace()
        spawning: asyncio.Task[_Spawned] | None = None
        try:
            self._write_bundle(limits, runtime, place, run_id, command)
            # Never interrupted: a runtime that is killed half-way leaves what only it knows of.
            spawning = asyncio.ensure_future(_spawn(limits, runtime))
            async with asyncio.timeout(limits.start_timeout_s):
                pipes, first = await asyncio.shield(spawning)
                wiring = Wiring(attached=pipes)
                if command is None:
                    wiring = await meet(place, runtime.name, attached=pipes, limits=limits)
            return OciSandbox(runtime, limits, wiring, pipes, first)
        except BaseException as error:
            await asyncio.shield(_abandon(spawning, runtime))
            if isinstance(error, TimeoutError):
                raise SandboxError(
                    "start_timeout",
                    f"{self._runtime} did not start a sandbox within {limits.start_timeout_s:g} s; "
                    "look at the load, or raise start_s",
                ) from error
            raise
        finally:
            place.close()

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
        place: MeetingPlace,
        run_id: str,
        command: Sequence[str] | None,
    ) -> None:
        settings = container_settings(
            limits,
            image=self.image_hash,
            run_id=run_id,
            owner=self._owner,
            seccomp=self._seccomp,
            runtime=None,
            command=command,
            channel=str(place.folder),
        )
        config = oci_config(settings, rootfs=self._rootfs, cgroup=f"/{runtime.name}", guest=command is None)
        (runtime.folder / "owner").write_text(self._owner, "ascii")
        (runtime.folder / "config.json").write_text(json.dumps(config), "utf-8")


async def _spawn(limits: SandboxLimits, runtime: Runtime) -> _Spawned:
    loop = asyncio.get_running_loop()
    _, pipes = await loop.subprocess_exec(
        lambda: PipeProtocol(frame_bytes=limits.frame_bytes), *runtime.run_command, close_fds=True
    )
    try:
        return pipes, FirstProcess(await _first_pid(runtime, pipes))
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
                "engine_failed", f"{runtime.program} refused: {pipes.stream.stderr_tail.strip()[-600:]}"
            )
        await asyncio.sleep(_POLL_S)


def _orphans() -> list[Path]:
    found: list[Path] = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            if is_gone((folder / "owner").read_text("ascii")):
                found.append(folder)
    return found


def _unsupported(why: str) -> SandboxError:
    return SandboxError("isolation_unsupported", why)
