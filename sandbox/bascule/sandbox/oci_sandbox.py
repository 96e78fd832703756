"""One container of a runtime, while it runs and when it ends; and the one place where the runtime is called.

The runtime stays as the container's parent, so its exit code is the container's. It is told to keep what it
made until we have read the counters.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from pathlib import Path

from bascule.sandbox.cgroup import Counters, Folders, folders_of_process, read_counters, read_limits
from bascule.sandbox.contained import ContainedSandbox, FinalState, Wiring
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.oci_runtime import RuntimeProgram
from bascule.sandbox.pipes import PipeProtocol

_DEADLINE_S = 20.0


class Runtime:
    """A program that runs OCI containers, with its state in one folder per container.

    Args:
        program: which runtime.
        folder: bundle, state and pid file of one container.
        name: of the container.
    """

    def __init__(self, program: RuntimeProgram, folder: Path, name: str) -> None:
        self.program = program
        self.folder = folder
        self.name = name

    @property
    def run_command(self) -> list[str]:
        """What starts the container and stays its parent."""
        options = [
            *(["--keep"] if self.program.keeps else []),
            "--bundle",
            str(self.folder),
            "--pid-file",
            str(self.folder / "pid"),
        ]
        return [*self._base, "run", *options, self.name]

    async def remove(self) -> None:
        """Remove the container with force, and the folder.

        Raises:
            SandboxError: ``engine_failed``: the runtime did not do it in time; the next sweep tries again.
        """
        process = await asyncio.create_subprocess_exec(
            *(*self._base, "delete", "--force", self.name),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await asyncio.wait_for(process.wait(), _DEADLINE_S)
        except TimeoutError as error:
            process.kill()
            await process.wait()
            raise SandboxError("engine_failed", f"{self.program.path} did not remove {self.name}") from error
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    @property
    def _base(self) -> list[str]:
        return [self.program.path, "--root", str(self.folder / "state"), *self.program.options]


class FirstProcess:
    """The container's process 1 as this host sees it; all others end with it."""

    def __init__(self, pid: int, *, grouped: bool = True) -> None:
        self.pid = pid
        self._fd: int | None = None
        with contextlib.suppress(OSError):
            self._fd = os.pidfd_open(pid)
        self.folders: Folders = folders_of_process(pid) if grouped else {}

    def kill(self) -> bool:
        """Kill it; return False when it is gone."""
        if self._fd is None:
            return False
        try:
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def close(self) -> None:
        """Let go of it."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


class OciSandbox(ContainedSandbox):
    """One container. Made by ``OciBackend.start`` only."""

    def __init__(
        self,
        runtime: Runtime,
        limits: SandboxLimits,
        wiring: Wiring,
        pipes: PipeProtocol,
        first: FirstProcess,
    ) -> None:
        super().__init__(limits, wiring)
        self._runtime = runtime
        self._pipes = pipes
        self._first = first

    def limits_in_force(self) -> dict[str, int]:
        """Return the limits as the kernel has them, for a guest that cannot see its control group."""
        return read_limits(self._first.folders)

    async def _kill_all(self) -> bool:
        if self._pipes.exited.is_set():
            return False
        return self._first.kill()

    async def _final_state(self) -> FinalState:
        exited = self._pipes.exited
        if not exited.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(exited.wait(), self._limits.exit_grace_s)
        if not exited.is_set():
            self._killed = self._first.kill() or self._killed
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(exited.wait(), _DEADLINE_S)
        code = self._pipes.returncode
        return FinalState(exit_code=code if code is None or code >= 0 else None)

    async def _remove(self) -> None:
        # The runtime ends by itself once process 1 has; killed before, it would leave its own work undone.
        self._first.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._pipes.exited.wait(), _DEADLINE_S)
        self._first.close()
        self._pipes.abort()
        await self._runtime.remove()

    def _read_counters(self) -> Counters:
        return read_counters(self._first.folders)
