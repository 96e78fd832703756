"""What the kernel knows of one guest: how its process exited and what its control group counted.

Read on this machine without asking any engine, so that a run's ending is known as soon as the guest has
exited. What cannot be read (remote engine, older kernel, other user) is None; then the engine is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import struct

from bascule.sandbox.cgroup import Counters, folders_of_process, read_counters

_PIDFD_INFO_EXIT = 1 << 3
_PIDFD_INFO_BYTES = 64
_EXIT_STATUS_OFFSET = 60
_PIDFD_GET_INFO = (3 << 30) | (_PIDFD_INFO_BYTES << 16) | (0xFF << 8) | 11
"""``_IOWR(0xFF, 11, struct pidfd_info)`` of linux/pidfd.h; tells exit statuses since Linux 6.15."""

_REAPING_S = 0.05


class Evidence:
    """Observes the guest's process and its control group.

    Args:
        pid: of the guest's process, as this host counts.
        grouped: it has control groups of its own; those of others say nothing of it.
    """

    def __init__(self, pid: int, *, grouped: bool = True) -> None:
        self.pid = pid
        self._fd: int | None = None
        with contextlib.suppress(OSError, AttributeError):
            self._fd = os.pidfd_open(pid)
        # Read after the descriptor was opened: a number taken over by another process would show here.
        self._folders = folders_of_process(pid) if grouped else {}

    def belongs_to(self, container: str | int) -> bool:
        """Whether the process is in the control group of this container (its full id), or is this process."""
        if isinstance(container, int):
            return self._fd is not None and self.pid == container
        return any(container in folder for folders in self._folders.values() for folder in folders)

    async def wait_exit(self, timeout_s: float) -> int | None:
        """Return the wait status of the process once it has exited; None when it cannot be told.

        Raises:
            TimeoutError: it still runs.
        """
        if self._fd is None:
            return None
        descriptor = self._fd
        await _wait_readable(descriptor, timeout_s)
        status = self._status()
        if status is None:
            await _wait_reaped(descriptor)
            status = self._status()
        return status

    def read(self) -> Counters:
        """Return what was counted until now."""
        return read_counters(self._folders)

    def close(self) -> None:
        """Let go of the process; doing so twice is fine."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _status(self) -> int | None:
        if self._fd is None:
            return None
        buffer = bytearray(_PIDFD_INFO_BYTES)
        struct.pack_into("Q", buffer, 0, _PIDFD_INFO_EXIT)
        try:
            fcntl.ioctl(self._fd, _PIDFD_GET_INFO, buffer)
        except OSError:
            return None
        if not struct.unpack_from("Q", buffer, 0)[0] & _PIDFD_INFO_EXIT:
            return None
        return int(struct.unpack_from("i", buffer, _EXIT_STATUS_OFFSET)[0])


async def _wait_reaped(descriptor: int) -> None:
    """Wait until an exited process was reaped, which is when its status is told; a while at most.

    The descriptor is readable from the exit on and hung up from the reaping on; a poller that asks for
    nothing hears of the second alone.
    """
    with select.epoll() as hung_up, contextlib.suppress(TimeoutError):
        hung_up.register(descriptor, 0)
        await _wait_readable(hung_up.fileno(), _REAPING_S)


async def _wait_readable(descriptor: int, timeout_s: float) -> None:
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _resolve, readable)
    try:
        await asyncio.wait_for(readable, timeout_s)
    finally:
        loop.remove_reader(descriptor)


def _resolve(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)
