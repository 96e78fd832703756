"""What every isolation offers: a backend that starts sandboxes, and a sandbox that carries frames.

A sandbox knows frames as bytes only. It trusts the guest with nothing: what it reads is bounded here and
decoded by the bridge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bascule.sandbox.limits import SandboxLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a guest ended, as the outside saw it. Exit code 0 proves nothing about the script.

    Attributes:
        exit_code: status of the guest's first process; 128 + signal when a signal ended it; None when the
            engine could not say any more.
        signal: number of that signal, None when it exited by itself.
        oom_killed: the kernel killed a process of the sandbox for memory (possibly not the first process).
        killed: the host killed it (``Sandbox.kill``, or ``close`` after the grace time).
        stderr_tail: last 8 KiB of the guest's stderr, untrusted text with undecodable bytes replaced.
        peak_memory_bytes: highest memory use the kernel recorded, None where it cannot be read.
        cpu_s: CPU seconds the kernel recorded, None where they cannot be read.
        refused_forks: times the limit of processes stopped a fork, None where it cannot be read.
    """

    exit_code: int | None
    signal: int | None
    oom_killed: bool
    killed: bool
    stderr_tail: str
    peak_memory_bytes: int | None = None
    cpu_s: float | None = None
    refused_forks: int | None = None


class Sandbox(Protocol):
    """One running guest. Use it from one event loop; close it always."""

    async def send(self, frame: bytes) -> None:
        """Send one encoded frame (header and payload).

        Raises:
            SandboxClosed: the guest is gone.
        """
        ...

    async def receive(self) -> bytes:
        """Return the next payload of the guest, without header, not yet decoded.

        Raises:
            SandboxClosed: the stream ended; ``close`` tells why.
            FrameError: a payload larger than the limit was announced; kill the guest.
        """
        ...

    async def kill(self) -> None:
        """End the guest at once (SIGKILL). Never raises because the guest is already gone."""
        ...

    async def close(self) -> Ending:
        """Wait ``exit_grace_s`` for the guest to exit, else kill it; remove all that is left of it.

        Idempotent: later calls return the same Ending.
        """
        ...


class Backend(Protocol):
    """Starts sandboxes of one isolation, from one image."""

    @property
    def name(self) -> str:
        """``container`` or ``process``."""
        ...

    @property
    def image_hash(self) -> str:
        """Hash that a guest of this backend must give in its Hello."""
        ...

    async def start(
        self, limits: SandboxLimits, *, run_id: str, command: Sequence[str] | None = None
    ) -> Sandbox:
        """Start a fresh sandbox; cancelled or failed, it leaves nothing.

        Args:
            limits: enforced from outside the guest.
            run_id: names the sandbox in labels and listings; letters, digits, ``_``, ``.``, ``-``.
            command: program to run in place of the guest, for self-checks and tests.

        Raises:
            SandboxError: with what to do.
        """
        ...

    async def sweep(self) -> int:
        """Remove what dead host processes left behind; return how many sandboxes that were."""
        ...

    async def close(self) -> None:
        """Release threads and connections. Sandboxes must have been closed before."""
        ...
