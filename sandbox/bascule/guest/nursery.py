"""One container for many runs of one principal: a parent that forks a clean, warm child for each of them.

The parent knows nothing of any run: it never reads what a run is told, and what a child leaves behind ends
with the child. It speaks with the host over the standard streams, which no child has; each child gets a
socket of its own. The memory of parent and children is closed to each other, though they are one user.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from typing import NoReturn

CLEAN = b"\0\0\0\5clean"
"""Frame to the host: the last child exited well, nothing of it is left, the next one may come."""

_PR_SET_DUMPABLE = 4
_GONE_S = 1.0
_POLL_S = 0.0005
_UNCLEAN = 70
"""Exit status when something of a child would not end."""

_SIGNAL_BASE = 128


def close_memory() -> None:
    """Keep processes of the same user from reading, writing and tracing this one and its children."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "memory cannot be closed to other processes of this user")


def bear_children(read_fd: int, write_fd: int) -> None:
    """Return in a new child for each byte that the host sends; the parent never returns.

    The parent ends, and the container with it, when a child did not exit with status 0, whatever the reason,
    and when the host is gone.
    """
    _tell(write_fd, CLEAN)
    while os.read(read_fd, 1):
        child = os.fork()
        if child == 0:
            os.close(read_fd)
            os.close(write_fd)
            return
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            os._exit(code if code > 0 else _SIGNAL_BASE - code)
        _end_all_others()
        _tell(write_fd, CLEAN)
    os._exit(0)


def _end_all_others() -> None:
    """Kill whatever a child left. The kernel lets no fork slip through while it signals everybody."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return
    # The kernel does not say whether it had to leave somebody out.
    until_s = time.monotonic() + _GONE_S
    own = {"1", str(os.getpid())}
    while {name for name in os.listdir("/proc") if name.isdecimal()} - own:
        if time.monotonic() > until_s:
            _give_up()
        time.sleep(_POLL_S)


def _give_up() -> NoReturn:
    os.write(2, b"something of a run would not end\n")
    os._exit(_UNCLEAN)


def _tell(write_fd: int, frame: bytes) -> None:
    try:
        os.write(write_fd, frame)
    except BrokenPipeError:
        os._exit(0)
