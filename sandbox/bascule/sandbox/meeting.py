"""Where a guest on this machine meets its host: a unix socket in a folder of its own, for one connection.

Who connects is checked by control group, not by user id, which namespaces may change. Once the guest has
connected, the listener and its name are gone, so that there is nothing left to connect to; the folder too,
unless a next guest of the same container will come.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import struct
import tempfile
from pathlib import Path

from bascule.sandbox.channel import ChannelProtocol
from bascule.sandbox.contained import Line, Wiring
from bascule.sandbox.errors import SandboxError
from bascule.sandbox.evidence import Evidence
from bascule.sandbox.hardening import CHANNEL_NAME
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.owner import is_tag_gone, own_tag

_PREFIX = "bascule-channel-"


class MeetingPlace:
    """One listening socket, its folder, and the check of who comes; it listens from the beginning on."""

    def __init__(self) -> None:
        # The outer folder keeps other users of this machine out; the mounted inner one must let the guest in.
        self._outer = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{own_tag()}-"))
        self.folder = self._outer / "channel"
        try:
            self.folder.mkdir()
            self.folder.chmod(0o755)
            self._listener = self._listen()
        except BaseException:
            shutil.rmtree(self._outer, ignore_errors=True)
            raise

    def listen(self) -> None:
        """Listen again, with nobody waiting yet."""
        self.hush()
        self._listener = self._listen()

    def hush(self) -> None:
        """Stop listening: who waits is turned away, and the name is gone."""
        self._listener.close()
        with contextlib.suppress(OSError):
            (self.folder / CHANNEL_NAME).unlink()

    async def accept(self, container: str | int) -> tuple[socket.socket, Evidence]:
        """Wait for the guest of this container; connections of anybody else are dropped.

        Args:
            container: full id, as control groups name it; or the guest's process, where it has none.

        Returns:
            the connected socket, not blocking, and what the kernel knows of who connected.
        """
        loop = asyncio.get_running_loop()
        while True:
            connected, _ = await loop.sock_accept(self._listener)
            connected.setblocking(False)
            evidence = Evidence(_peer_pid(connected), grouped=isinstance(container, str))
            if evidence.belongs_to(container):
                return connected, evidence
            evidence.close()
            connected.close()

    def close(self) -> None:
        """Close the listener and remove the folder; doing so twice is fine."""
        self.hush()
        for folder in (self.folder, self._outer):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            path = self.folder / CHANNEL_NAME
            listener.bind(str(path))
            path.chmod(0o666)
            listener.listen(1)
        except BaseException:
            listener.close()
            raise
        return listener


async def meet(place: MeetingPlace, container: str | int, *, attached: Line, limits: SandboxLimits) -> Wiring:
    """Wait until the guest has connected, or its streams have ended because it will never do.

    Args:
        container: as for ``MeetingPlace.accept``.

    Raises:
        SandboxError: ``guest_not_started``: it did not come in ``start_timeout_s``.
    """
    attached.stream.discard()  # only frames count, and they come over the channel
    found = await await_guest(place, container, attached=attached, limits=limits)
    if found is None:
        return Wiring(attached=attached)
    connected, evidence = found
    channel = ChannelProtocol(frame_bytes=limits.frame_bytes)
    await asyncio.get_running_loop().create_unix_connection(lambda: channel, sock=connected)
    return Wiring(attached=attached, channel=channel, evidence=evidence)


async def await_guest(
    place: MeetingPlace, container: str | int, *, attached: Line, limits: SandboxLimits
) -> tuple[socket.socket, Evidence] | None:
    """Return who connected, or None when the container's streams ended before.

    Raises:
        SandboxError: as ``meet``.
    """
    accepting = asyncio.ensure_future(place.accept(container))
    ended = asyncio.ensure_future(attached.stream.wait_ended())
    try:
        await asyncio.wait(
            {accepting, ended}, timeout=limits.start_timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        if accepting.done():
            return accepting.result()
        if ended.done():
            return None
    finally:
        accepting.cancel()
        ended.cancel()
        # The listener is closed next: the loop must have let go of it.
        await asyncio.wait({accepting, ended})
    raise SandboxError(
        "guest_not_started", f"the guest did not connect within {limits.start_timeout_s:g} s; raise start_s"
    )


def sweep_meeting_places() -> int:
    """Remove the folders of dead host processes; return how many."""
    gone = 0
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            if is_tag_gone(folder.name.removeprefix(_PREFIX).partition("-")[0]):
                shutil.rmtree(folder, ignore_errors=True)
                gone += 1
    return gone


def _peer_pid(connected: socket.socket) -> int:
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[0])
