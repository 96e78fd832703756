"""What one sandbox and one pool of them may use. All limits are finite; no value means unlimited."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """Limits that the kernel or the host enforces from outside the guest.

    Attributes:
        memory_bytes: resident memory of all processes, page cache and tmpfs; swap adds nothing. Beyond it the
            kernel kills (``Ending.oom_killed``). At least 32 MiB, or the guest cannot start.
        cpus: cores' worth of CPU time per second of wall time; the guest is throttled, not killed.
        pids: processes and threads, zombies included; beyond it ``fork`` fails with EAGAIN.
        tmpfs_bytes: size of /tmp, counted in ``memory_bytes`` too; beyond it ENOSPC.
        tmpfs_files: files and folders in /tmp.
        nofile: open file descriptors per process.
        start_timeout_s: seconds for the engine to create, attach to and start the sandbox.
        exit_grace_s: seconds a guest has, after its host calls ``close``, to exit by itself.
        engine_timeout_s: seconds for any one call to the engine.
        frame_bytes: largest payload taken from the guest.
    """

    memory_bytes: int = 256 * MIB
    cpus: float = 1.0
    pids: int = 64
    tmpfs_bytes: int = 16 * MIB
    tmpfs_files: int = 256
    nofile: int = 64
    start_timeout_s: float = 20.0
    exit_grace_s: float = 5.0
    engine_timeout_s: float = 10.0
    frame_bytes: int = MIB

    def __post_init__(self) -> None:
        """Refuse what cannot work or would switch a limit off (the engine reads 0 as unlimited).

        Raises:
            ValueError: a limit is out of its range.
        """
        if self.memory_bytes < 32 * MIB:
            raise ValueError("memory_bytes must be at least 32 MiB")
        if not 0.01 <= self.cpus <= 1024:
            raise ValueError("cpus must be between 0.01 and 1024")
        for name in ("pids", "tmpfs_bytes", "tmpfs_files", "nofile", "frame_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("start_timeout_s", "exit_grace_s", "engine_timeout_s"):
            if not 0 < getattr(self, name) <= 600:
                raise ValueError(f"{name} must be above 0 and at most 600")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """How many sandboxes a pool keeps, and who waits.

    Attributes:
        floor: sandboxes kept ready for each kind (`SandboxLimits`) in use; 0 starts each one on demand.
        ceiling: sandboxes alive at once: ready, starting, leased or being removed.
        starts: sandboxes started at once; more only makes each slower (engines serialise most of it).
        queue: runs that may wait for a sandbox; a further one is refused with ``pool_exhausted``.
        wait_s: longest wait of one run; then it is refused with ``pool_exhausted``.
        keep_s: a kind that nobody asked for that long is no longer kept ready.
    """

    floor: int = 1
    ceiling: int = 16
    starts: int = 2
    queue: int = 256
    wait_s: float = 60.0
    keep_s: float = 300.0

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ValueError: a limit is out of its range.
        """
        if not 0 <= self.floor <= self.ceiling <= 10_000:
            raise ValueError("floor must be at least 0, ceiling at least floor and at most 10,000")
        if self.ceiling < 1 or self.starts < 1 or self.queue < 0:
            raise ValueError("ceiling and starts must be at least 1, queue at least 0")
        for name in ("wait_s", "keep_s"):
            if not 0 < getattr(self, name) <= 86_400:
                raise ValueError(f"{name} must be above 0 and at most 86,400")
