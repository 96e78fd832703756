"""The name of a host process: only a process that is certainly gone loses its sandboxes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bascule.sandbox.owner import is_gone, own_name


def test_this_process_is_not_gone() -> None:
    assert not is_gone(own_name())


def test_a_process_that_ended_is_gone() -> None:
    code = "from bascule.sandbox.owner import own_name; print(own_name())"
    name = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert name.split(":")[0] == own_name().split(":")[0]
    assert is_gone(name)


def test_a_pid_that_was_taken_by_a_later_process_counts_as_gone() -> None:
    host, pid, ticks = own_name().split(":")
    assert pid == str(os.getpid())
    assert is_gone(f"{host}:{pid}:{int(ticks) + 1}")


def test_a_forged_name_is_no_number_to_stumble_over() -> None:
    host = own_name().split(":")[0]
    for number in ("9" * 5000, "\u0661", "1_0", "+1"):
        assert not is_gone(f"{host}:{number}:1")
        assert not is_gone(f"{host}:1:{number}")


@pytest.mark.parametrize("name", ["", "x", "other-boot/1:1:1", "::", "a:b:c", "x/y:-1:5"])
def test_a_name_that_this_host_cannot_judge_is_left_alone(name: str) -> None:
    assert not is_gone(name)
