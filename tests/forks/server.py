"""Forks one guest per order. Started by `tests.forks.backend` as a plain script, from the guest's own folder.

It has imported the guest, so that a fork starts in milliseconds; a fork runs the guest's real `main`.
Orders come with three descriptors (stdin, stdout, stderr); answers are `p` and the child's pid, later
`x` with pid and status.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import NoReturn


def main(context: str, descriptor: int) -> None:
    """Serve orders from the socket until it closes."""
    sys.path.insert(0, context)
    import bascule.guest.main as program
    from bascule.guest.warmup import warm_up

    warm_up()
    # Once is enough: a child that warmed itself up again would spend most of its life doing so.
    program.__dict__["warm_up"] = stay_as_warm
    gc.collect()
    gc.freeze()
    orders = socket.socket(fileno=descriptor)
    waker, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    while True:
        ready, _, _ = select.select([orders, waker], [], [])
        if waker in ready:
            waker.recv(4096)
            report(orders)
        if orders in ready:
            message, fds, _, _ = socket.recv_fds(orders, 16, 3)
            if not message:
                return
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                become_guest(fds, program.main)
            for fd in fds:
                os.close(fd)
            orders.send(b"p" + struct.pack(">i", pid))


def stay_as_warm(rounds: int = 0, *, unless: Callable[[], bool] = bool) -> None:
    """Do nothing in place of warming up."""


def become_guest(fds: list[int], guest_main: Callable[[], NoReturn]) -> NoReturn:
    """Take the streams and run the guest; never returns."""
    os.setsid()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    sys.argv = ["guest"]
    guest_main()


def report(orders: socket.socket) -> None:
    """Tell of every child that has ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        orders.send(b"x" + struct.pack(">ii", pid, status))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
