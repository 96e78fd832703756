"""One process that bears a guest for each run: each is clean, and the parent speaks for no other.

Everything is real, in a process namespace of its own: the parent signals every process it can see.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bascule.wire import Act, Finish, FrameSplitter, Hello, Output, Start, decode_guest_frame, encode_frame
from bascule.wire.codec import MAX_GUEST_FRAME_BYTES
from tests.unit.guest.guest_process import ENVIRONMENT, measuring, program
from tests.unit.guest.harness import NOW, guest_limits

CLEAN = b"\0\0\0\5clean"
DEADLINE_S = 60.0
INIT = """
import os
from bascule.guest.init import leave_init_behind
leave_init_behind()
"""
# Waits for the parent only: what is orphaned and killed stays as a zombie.
CARELESS = """
import os
parent = os.fork()
if parent:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]))
"""
PARENT = """
from bascule.guest.nursery import bear_children
ready, _ = os.pipe()
bear_children(os.dup(0), os.dup(1))
"""
ORPHAN = """
if os.fork():
    os._exit(0)
os.setsid()
while True:
    os.read(ready, 1)
"""


def own_processes() -> list[str] | None:
    """Return what runs a program as process 1 of a namespace, or None where that is not allowed."""
    for namespaces in (["--user", "--pid"], ["--pid"]):
        command = ["unshare", *namespaces, "--fork", "--mount-proc", "--kill-child"]
        try:
            tried = subprocess.run([*command, "true"], capture_output=True, check=False)
        except FileNotFoundError:
            return None
        if tried.returncode == 0:
            return command
    return None


@pytest.fixture(scope="module")
def namespace() -> list[str]:
    """The command that runs a program in a process namespace of its own."""
    command = own_processes()
    if command is None:
        pytest.skip("no process namespaces on this machine: neither for users nor for this one")
    return command


class Parent:
    """A parent started in a namespace, and the host's ends of its streams."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**ENVIRONMENT, **measuring()},
        )

    def said(self) -> bytes:
        """Return the parent's next frame, or nothing when it has ended."""
        assert self._process.stdout is not None
        return os.read(self._process.stdout.fileno(), 64)

    def ask(self) -> None:
        """Ask for a child."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"n")
        self._process.stdin.flush()

    def hang_up(self) -> None:
        """Close the stream on which the parent speaks."""
        assert self._process.stdout is not None
        self._process.stdout.close()

    def end(self) -> tuple[int, str]:
        """Ask for no more; return exit status and stderr."""
        with self._process as ending:
            assert ending.stdin is not None
            assert ending.stderr is not None
            ending.stdin.close()
            stderr = ending.stderr.read().decode()
        return ending.returncode, stderr


@pytest.fixture
def meeting(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket at which children meet the host."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "host"))
        listening.listen()
        listening.settimeout(DEADLINE_S)
        yield listening


def run_child(meeting: socket.socket, script: str) -> tuple[Finish, str]:
    """Take the next child, have it run a script; return its last frame and what it printed."""
    host, _ = meeting.accept()
    host.settimeout(DEADLINE_S)
    splitter = FrameSplitter(max_bytes=MAX_GUEST_FRAME_BYTES)
    payloads: list[bytes] = []
    with host:

        def receive() -> Hello | Act | Finish:
            while not payloads:
                data = host.recv(1 << 16)
                assert data, "the child is gone"
                payloads.extend(splitter.feed(data))
            return decode_guest_frame(payloads.pop(0))

        assert isinstance(receive(), Hello)
        start = Start(script=script, tools=(), seed=1, now=NOW, limits=guest_limits())
        host.sendall(encode_frame(start, max_bytes=1 << 20))
        finish = receive()
        assert isinstance(finish, Finish)
    commands = [command for activation in finish.activations for command in activation.commands]
    return finish, "".join(command.text for command in commands if isinstance(command, Output))


def test_each_run_gets_a_child_that_knows_nothing_of_the_last(
    namespace: list[str], meeting: socket.socket
) -> None:
    where = f"unix:{meeting.getsockname()}"
    parent = Parent([*namespace, sys.executable, "-c", program(), "reuse", where, "image"])
    told: list[str] = []
    for _ in range(2):
        assert parent.said() == CLEAN
        parent.ask()
        finish, output = run_child(meeting, "import random\nkept = {object()}\nprint(random.random())\n")
        assert finish.status == "ok"
        told.append(output)
    assert told[0] == told[1] != ""
    assert parent.said() == CLEAN
    assert parent.end() == (0, "")


def parent_of(child: str, *, first: str = INIT) -> list[str]:
    """Return the command of a parent whose children run some code."""
    return [sys.executable, "-c", first + PARENT + child]


def test_what_a_child_leaves_behind_is_ended(namespace: list[str]) -> None:
    parent = Parent([*namespace, *parent_of(ORPHAN)])
    for _ in range(2):
        assert parent.said() == CLEAN
        parent.ask()
    assert parent.said() == CLEAN
    assert parent.end() == (0, "")


def test_a_parent_ends_when_what_a_child_left_behind_does_not(namespace: list[str]) -> None:
    parent = Parent([*namespace, *parent_of(ORPHAN, first=CARELESS)])
    assert parent.said() == CLEAN
    parent.ask()
    assert parent.said() == b""
    assert parent.end() == (70, "something of a run would not end\n")


@pytest.mark.parametrize(("child", "status"), [("os._exit(3)", 3), ("os.kill(os.getpid(), 9)", 128 + 9)])
def test_a_child_that_ends_badly_ends_the_parent_in_the_same_way(
    namespace: list[str], child: str, status: int
) -> None:
    parent = Parent([*namespace, *parent_of(child)])
    assert parent.said() == CLEAN
    parent.ask()
    assert parent.said() == b""
    assert parent.end() == (status, "")


def test_a_parent_whose_host_is_gone_ends(namespace: list[str]) -> None:
    parent = Parent([*namespace, *parent_of("os._exit(0)")])
    assert parent.said() == CLEAN
    parent.hang_up()
    parent.ask()
    assert parent.end() == (0, "")


def test_memory_that_cannot_be_closed_is_an_error() -> None:
    # A filter of the kernel's answers this very request with EPERM, as a stranger runtime's might.
    code = """
import ctypes, struct
from bascule.guest.nursery import close_memory
libc = ctypes.CDLL(None, use_errno=True)
prctl = {"x86_64": 157, "aarch64": 167}[__import__("os").uname().machine]
rules = [(0x20, 0, 0, 0), (0x15, 0, 3, prctl), (0x20, 0, 0, 16), (0x15, 0, 1, 4)]
rules += [(6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
filters = b"".join(struct.pack("HBBI", *rule) for rule in rules)
buffer = ctypes.create_string_buffer(filters)
program = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
close_memory()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "PermissionError: [Errno 1] memory cannot be closed to other processes of this user" in done.stderr
