"""Puts limits on this very process, then becomes the guest. Run as a program by ``ProcessBackend``.

Standard library only: it runs without site-packages. Doing this here, after exec, keeps Python code out of
the dangerous moment between fork and exec in a host with threads.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_SIGKILL = 9
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_CLONE_NEWIPC = 0x08000000


def confine(limits: dict[str, int]) -> None:
    """Apply resource limits (lower ones already set stay) and what the kernel gives without privileges."""
    if sys.platform == "linux":
        parent = os.getppid()
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # the host died before the line above
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        # No network and no shared memory of others. A kernel may forbid user namespaces: WEAKER says so.
        libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWIPC)
    for name, wanted in limits.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))


def main() -> None:
    """Confine, then exec the program named in the one JSON argument."""
    settings = json.loads(sys.argv[1])
    confine(settings["limits"])
    os.execve(settings["argv"][0], settings["argv"], dict(os.environ))


if __name__ == "__main__":
    main()
