"""The first process of a container whose runtime brings no init: reaps, waits for the guest, ends with it.

Process 1 cannot be ended by most signals, not even its own, so the guest must not be it. Imports nothing, so
that it may also be run as a program in front of any other.
"""

from __future__ import annotations

import os
import sys

_NOT_FOUND = 127
_SIGNAL_BASE = 128
_LAST_FD = 4096


def leave_init_behind() -> None:
    """As process 1, fork: the child returns, the parent stays as init and never comes back."""
    if os.getpid() != 1:
        return
    child = os.fork()
    if child == 0:
        return
    # The guest's streams must end when the guest does.
    os.closerange(0, _LAST_FD)
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else _SIGNAL_BASE - code)


def main() -> None:
    """Run the program named by the arguments under an init."""
    leave_init_behind()
    try:
        os.execvp(sys.argv[1], sys.argv[1:])
    except OSError as error:
        os.write(2, f"{sys.argv[1]}: {error.strerror}\n".encode())
        os._exit(_NOT_FOUND)


if __name__ == "__main__":  # pragma: no cover - becomes another program
    main()
