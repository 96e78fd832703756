"""The first process of a container: it waits for the guest alone and ends as the guest ended."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bascule.wire import Hello
from tests.unit.guest.guest_process import Guest

# The kernel gives number 1 in a namespace of its own only; all that follows from it is real.
_FIRST = "import os; me = os.getpid(); os.getpid = lambda: 1 if me else 0\n"
# PR_SET_CHILD_SUBREAPER: orphans become its children, as those of process 1 do.
_REAPER = "import ctypes; assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0\n"


def run_init(*program: str, first: bool) -> subprocess.CompletedProcess[str]:
    """Run a program under the init, which takes itself for process 1 or not."""
    code = f"{_FIRST + _REAPER if first else ''}import sys\nfrom bascule.guest.init import main\n"
    code += f"sys.argv = ['init', *{program!r}]\nmain()\n"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("program", "code", "output"), [("echo hi; exit 7", 7, "hi\n"), ("exit 0", 0, "")])
def test_the_status_of_the_program_is_the_status_of_the_init(
    program: str, code: int, output: str, first: bool
) -> None:
    done = run_init("/bin/sh", "-c", program, first=first)
    assert (done.returncode, done.stdout) == (code, output)


def test_a_program_ended_by_a_signal_ends_the_init_with_its_number() -> None:
    # A grandchild that outlives its parent is reaped before the program ends.
    program = "(exit 3) & kill -9 $$"
    assert run_init("/bin/sh", "-c", program, first=True).returncode == 128 + 9


def test_an_orphan_is_reaped_and_the_program_waited_for() -> None:
    # The middle shell ends first, so that init gets its child, a zombie until it is waited for.
    zombies = 'cat /proc/[0-9]*/stat 2>/dev/null | grep -q " Z $PPID "'
    program = f"(sh -c 'exit 3' &); sleep 0.2; {zombies} || exit 5"
    assert run_init("/bin/sh", "-c", program, first=True).returncode == 5


def test_a_program_that_is_not_there_is_named() -> None:
    done = run_init("/nowhere/program", first=False)
    assert (done.returncode, done.stderr) == (127, "/nowhere/program: No such file or directory\n")


def test_a_guest_that_may_start_no_process_leaves_no_init_behind_and_serves() -> None:
    guest = Guest("alone")
    hello = guest.receive()
    assert isinstance(hello, Hello)
    assert hello.image == "process"
    assert guest.close()[0] == 0
