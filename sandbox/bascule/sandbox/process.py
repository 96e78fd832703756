"""Sandboxes as child processes: for machines without an engine and for fast tests. Weaker, by name only.

The same guest program in a child of this host, behind the walls that this kernel gives without an engine
(``process_walls``). What stays weaker is said in ``WEAKER``; what this host does not allow is logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bascule.sandbox.cache import cache_dir, locked
from bascule.sandbox.context import FILE_MODE, context_files, write_files
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.hardening import ENVIRONMENT
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.owner import is_gone, own_name
from bascule.sandbox.pipes import PipeProtocol
from bascule.sandbox.process_walls import find_walls, launch_command, python_program
from bascule.sandbox.sandbox import Ending

WEAKER = (
    'isolation "process" is weaker than a container: the guest runs on this machine\'s own Python and '
    "libraries and can read those; memory is limited as address space, and CPU by total seconds and not by "
    "share. Which further walls hold depends on this kernel: `bascule doctor --isolation process` says it."
)

_PREFIX = "bascule-process-"
_COMPILE_TIMEOUT_S = 120.0
_FOLDER_MODE = 0o755
_SIGNAL_BASE = 128
_LAST_WORDS_S = 1.0
"""Only a process that survives SIGKILL, where there is no process namespace, could hold the pipes longer."""

_log = logging.getLogger("bascule.sandbox")


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

    @property
    def pid(self) -> int:
        """The launcher's process, which leads the group of all others."""
        return self._transport.get_pid()

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
            with contextlib.suppress(TimeoutError):  # its last words
                await asyncio.wait_for(self._protocol.closed.wait(), _LAST_WORDS_S)
        finally:
            self._transport.close()
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        code = self._transport.get_returncode()
        killed = self._killed and code == -signal.SIGKILL
        if code is not None and code < 0:
            code = _SIGNAL_BASE - code
        return Ending(
            exit_code=code,
            # Above the base it is the launcher that tells how its child ended, as a container's init does.
            signal=code - _SIGNAL_BASE if code is not None and code > _SIGNAL_BASE else None,
            oom_killed=False,
            killed=killed,
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
        context, self.image_hash = _assemble()
        self._walls = find_walls(context)
        for sentence in self._walls.describe():
            _log.warning("isolation process: %s", sentence)

    @property
    def missing(self) -> dict[str, str]:
        """Walls that this host does not allow, with the kernel's reason."""
        return dict(self._walls.missing)

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
        python = python_program()
        argv = [python, "-S", "-s", "-P", self._walls.guest_folder]
        if command is not None:
            argv = [python if command[0] == "python3" else command[0], *command[1:]]
        settings = self._walls.settings(argv, limits=limits, root=work)
        starting = asyncio.ensure_future(self._spawn(limits, settings, work, folder))
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
            *launch_command(settings),
            cwd=work,
            env=dict(ENVIRONMENT),
            start_new_session=True,
            close_fds=True,
        )
        return ProcessSandbox(limits, transport, protocol, folder)


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
        for each in (place, *place.rglob("*")):  # nobody must be able to read it, whatever the umask
            each.chmod(_FOLDER_MODE if each.is_dir() else FILE_MODE)
        place.rename(folder)
