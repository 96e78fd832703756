"""The program in the container: takes its streams, says hello, runs one script, leaves.

Only frames reach the host's stream: the descriptors are moved away before anything else is done, and whatever
prints goes to stderr. What only makes a run faster is done after hello, as long as no order has come.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import platform
import signal
import sys
import warnings
from typing import NoReturn

from bascule.guest.channel import Channel, HostGone
from bascule.guest.init import leave_init_behind
from bascule.guest.limits import Deadlines, NoDeadlines, apply_process_limits, exit_now
from bascule.guest.run import Run
from bascule.guest.script import run_script
from bascule.guest.warmup import warm_up
from bascule.wire import PROTOCOL, Finish, Hello
from bascule.wire.codec import MAX_GUEST_FRAME_BYTES

_FIRST_PRIVATE_FD = 32
_LAST_FD = 4096
_GC_THRESHOLD = 20_000
_SOCKET = "unix:"
_REUSE = "reuse"
_ALONE = "alone"


def main() -> NoReturn:
    """Run one script for the host at the other end of stdin and stdout.

    A program argument ``unix:PATH`` names the socket at which the host waits; without it the host is at the
    other end of stdin and stdout. ``reuse`` makes this process the parent of one child per run (``nursery``);
    with ``alone``, where it may start no process, it leaves no init behind. Any other argument is the image
    hash to report; otherwise it is read from the file IMAGE beside the program.
    """
    reused = _REUSE in sys.argv[1:]
    if reused:
        from bascule.guest.nursery import close_memory

        close_memory()  # process 1, which is left behind next, included
    if _ALONE not in sys.argv[1:]:
        leave_init_behind()
    read_fd, write_fd = _take_streams()
    faulthandler.enable(file=sys.__stderr__ or 2, all_threads=False)
    warnings.simplefilter("ignore")
    # What a finalizer raises would be the script's own words on stderr, uncounted.
    sys.unraisablehook = _say_nothing
    # A debugger's or operator's signal must not become an exception in the script.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if reused:
        from bascule.guest.nursery import bear_children

        warm_up()
        gc.freeze()
        bear_children(read_fd, write_fd)
        read_fd = write_fd = -1
        warm_up(1)  # touches what the fork left shared
    socket_fd = _connect(read_fd, write_fd)
    if socket_fd is not None:
        read_fd = write_fd = socket_fd
    channel = Channel(
        read_fd=read_fd, write_fd=write_fd, frame_bytes=MAX_GUEST_FRAME_BYTES, meter=NoDeadlines()
    )
    try:
        channel.hello(Hello(protocol=PROTOCOL, image=_image(), python=platform.python_version()))
        if not reused:
            warm_up(unless=channel.has_news)
        gc.freeze()
        gc.enable()
        gc.set_threshold(_GC_THRESHOLD)
        _serve(channel)
    except (HostGone, BrokenPipeError):
        # Nobody is left to tell.
        pass
    exit_now()


def _serve(channel: Channel) -> None:
    start = channel.start()

    def end(finish: Finish) -> NoReturn:
        channel.finish(finish)
        exit_now()

    channel.frame_bytes = min(start.limits.frame_bytes, MAX_GUEST_FRAME_BYTES)
    run = Run(start, channel, end)
    apply_process_limits(start.limits, session=start.session)
    while True:
        deadlines = Deadlines(start.limits, run.time_is_up)
        channel.meter = deadlines
        deadlines.start()
        finish = run_script(run)
        deadlines.cancel()
        channel.meter = NoDeadlines()
        channel.finish(finish)
        if not start.session or finish.status == "limit":
            return
        start = channel.start()
        run.begin(start)


def _take_streams() -> tuple[int, int]:
    """Move stdin and stdout out of reach and close everything else that was inherited."""
    import fcntl

    read_fd = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE_FD)
    write_fd = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE_FD)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.closerange(3, read_fd)
    os.closerange(write_fd + 1, _LAST_FD)
    return read_fd, write_fd


def _connect(read_fd: int, write_fd: int) -> int | None:
    """Connect to the host's socket, if one is named, and give up the streams for it."""
    path = next((each.removeprefix(_SOCKET) for each in sys.argv[1:] if each.startswith(_SOCKET)), None)
    if path is None:
        return None
    # The C module itself: `socket` would bring selectors and enums along, and a script never sees either.
    import _socket

    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    channel.connect(path)
    if read_fd < 0:
        return channel.detach()
    os.dup2(channel.fileno(), read_fd, inheritable=False)
    channel.close()
    os.close(write_fd)
    return read_fd


def _say_nothing(_: object) -> None:
    return None


def _image() -> str:
    given = [each for each in sys.argv[1:] if not each.startswith(_SOCKET) and each not in (_REUSE, _ALONE)]
    if given:
        return given[0]
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(folder, "IMAGE"), encoding="ascii") as file:
        return file.read().strip()
