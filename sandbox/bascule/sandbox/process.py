"""Sandboxes as child processes: for machines without an engine and for fast tests. Weaker, by name only.

The same guest program in a child of this host, with resource limits, an empty environment and nothing
inherited. What it is not is said in ``WEAKER``; callers print it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bascule.sandbox import confine
from bascule.sandbox.cache import cache_dir, locked
from bascule.sandbox.context import context_files, write_files
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.hardening import ENVIRONMENT
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.owner import is_gone, own_name
from bascule.sandbox.pipes import PipeProtocol
from bascule.sandbox.sandbox import Ending

WEAKER = (
    'isolation "process" is weaker than a container: a script that breaks out of the interpreter runs as '
    "this user, reads and writes this user's files, sees other processes, starts programs, and reaches the "
    "network where the kernel refuses a namespace without one; there is no system-call filter; memory is "
    "limited per process and not in all, CPU by total seconds and not by share, the number of processes not "
    "at all. Use it for tests and trusted scripts."
)

_PREFIX = "bascule-process-"
_COMPILE_TIMEOUT_S = 120.0


class ProcessSandbox:
    """One child process and its group. Made by ``ProcessBackend.start`` only."""

    def __init__(
        self,
        limits: SandboxLimits,
        transport: asyncio.SubprocessTransport,
        protocol: PipeProtocol,
        folder: Path,
    ) -> None:
        self._limits = limits
        self._transport = transport
        self._protocol = protocol
        self._folder = folder
        self._killed = False
        self._closing: asyncio.Task[Ending] | None = None

    async def send(self, frame: bytes) -> None:
        """See ``Sandbox.send``."""
        await self._protocol.send(frame)

    async def receive(self) -> bytes:
        """See ``Sandbox.receive``."""
        return await self._protocol.stream.receive()

    async def kill(self) -> None:
        """See ``Sandbox.kill``."""
        self._protocol.stream.discard()
        if not self._protocol.exited.is_set():
            self._killed = True
        self._kill_group()

    async def close(self) -> Ending:
        """See ``Sandbox.close``."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        return await asyncio.shield(self._closing)

    async def _close(self) -> Ending:
        self._protocol.stream.discard()
        try:
            if not self._killed:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._protocol.exited.wait(), self._limits.exit_grace_s)
                if not self._protocol.exited.is_set():
                    self._killed = True
            self._kill_group()
            await self._protocol.exited.wait()
            self._kill_group()  # what the first process started and left in its group
        finally:
            self._transport.close()
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        code = self._transport.get_returncode()
        by_signal = code is not None and code < 0
        return Ending(
            exit_code=128 - code if code is not None and by_signal else code,
            signal=-code if code is not None and by_signal else None,
            oom_killed=False,
            killed=self._killed and code == -signal.SIGKILL,
            stderr_tail=self._protocol.stream.stderr_tail,
        )

    def _kill_group(self) -> None:
        # The group outlives its first process, whose pid therefore cannot be taken by another group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), signal.SIGKILL)


class ProcessBackend:
    """Starts the guest program as child processes of this host.

    Raises:
        SandboxError: ``isolation_unsupported`` where there are no process groups and resource limits.
    """

    name = "process"

    def __init__(self) -> None:
        if os.name != "posix":
            raise SandboxError(
                "isolation_unsupported", "isolation process needs a POSIX system; use a container"
            )
        self._context, self.image_hash = _assemble()

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> ProcessSandbox:
        """See ``Backend.start``.

        Raises:
            SandboxError: ``start_timeout`` or ``isolation_unsupported``.
        """
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        (folder / "owner").write_text(own_name(), "ascii")
        work = folder / "work"
        work.mkdir(mode=0o700)
        argv = [sys.executable, "-S", "-s", "-P", *(command or (str(self._context),))]
        if command is not None:
            argv = [sys.executable if command[0] == "python3" else command[0], *command[1:]]
        settings = {"limits": _resource_limits(limits), "argv": argv}
        starting = asyncio.ensure_future(self._spawn(limits, json.dumps(settings), work, folder))
        try:
            return await asyncio.wait_for(asyncio.shield(starting), limits.start_timeout_s)
        except BaseException as error:
            await asyncio.shield(_abandon(starting, folder))
            if isinstance(error, TimeoutError):
                raise SandboxError(
                    "start_timeout",
                    f"no process started within {limits.start_timeout_s:g} s; look at the load",
                ) from error
            raise

    async def sweep(self) -> int:
        """See ``Backend.sweep``. The children themselves die with their host (parent-death signal)."""
        return await asyncio.to_thread(_sweep)

    async def close(self) -> None:
        """See ``Backend.close``."""

    async def _spawn(self, limits: SandboxLimits, settings: str, work: Path, folder: Path) -> ProcessSandbox:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: PipeProtocol(frame_bytes=limits.frame_bytes),
            *(sys.executable, "-S", "-s", "-P", str(Path(confine.__file__)), settings),
            cwd=work,
            env={**ENVIRONMENT, "PATH": os.defpath, "HOME": str(work)},
            start_new_session=True,
            close_fds=True,
        )
        return ProcessSandbox(limits, transport, protocol, folder)


def _resource_limits(limits: SandboxLimits) -> dict[str, int]:
    return {
        "RLIMIT_AS": limits.memory_bytes + (256 << 20),  # address space is wider than what is resident
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": limits.tmpfs_bytes,
        "RLIMIT_NOFILE": limits.nofile,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_CPU": 600,
    }


async def _abandon(starting: asyncio.Task[ProcessSandbox], folder: Path) -> None:
    try:
        sandbox = await starting
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return
    await sandbox.kill()
    await sandbox.close()


def _sweep() -> int:
    gone = 0
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):  # another process sweeps too, or the file is cut
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            if is_gone((folder / "owner").read_text("ascii")):
                shutil.rmtree(folder, ignore_errors=True)
                gone += 1
    return gone


def _assemble() -> tuple[Path, str]:
    """Return the guest's folder for this interpreter, made once per content."""
    files, image_hash = context_files()
    folder = cache_dir("context") / image_hash[:16]
    if not folder.exists():
        with locked("context"):
            if not folder.exists():
                _assemble_into(files, folder)
    return folder, image_hash


def _assemble_into(files: dict[str, bytes], folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        place = Path(temporary, "context")
        write_files(files, place)
        subprocess.run(
            [
                *(sys.executable, "-S", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"),
                *("-s", str(place), "-p", str(folder), str(place)),
            ],
            check=True,
            timeout=_COMPILE_TIMEOUT_S,
            stdout=subprocess.DEVNULL,
        )
        place.rename(folder)
