"""`.ci/with-engine`: uses an engine that answers, and says what to do when it may not or cannot start one."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / ".ci" / "with-engine"


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DOCKER_")}
    return subprocess.run(
        [str(PROGRAM), *command],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def engine(tmp_path: Path) -> Generator[str]:
    """Give the address of something that answers /_ping, all that the program asks."""
    path = tmp_path / "engine.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=answer_pings, args=(listener,))
        thread.start()
        yield f"unix://{path}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def answer_pings(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK")


@pytest.mark.parametrize("status", [0, 1, 5, 77])
def test_the_commands_exit_status_is_passed_on(engine: str, status: int) -> None:
    done = run("bash", "-c", f"exit {status}", DOCKER_HOST=engine)
    assert (done.returncode, done.stderr) == (status, "")


def test_arguments_and_output_are_passed_on_untouched(engine: str) -> None:
    done = run("printf", "[%s]", "a b", "*", "", "$HOME", DOCKER_HOST=engine)
    assert done.stdout == "[a b][*][][$HOME]"


def test_two_commands_share_an_engine_at_the_same_time(engine: str) -> None:
    # The outer command holds the engine while the inner one looks for it.
    done = run(str(PROGRAM), "echo", "inner", DOCKER_HOST=engine)
    assert (done.returncode, done.stdout) == (0, "inner\n")


def test_a_named_engine_that_does_not_answer_is_never_replaced_by_another(tmp_path: Path) -> None:
    done = run("echo", "ran", DOCKER_HOST=f"unix://{tmp_path}/absent.sock")
    assert (done.returncode, done.stdout) == (69, "")
    assert f"DOCKER_HOST=unix://{tmp_path}/absent.sock" in done.stderr
    assert "unset DOCKER_HOST" in done.stderr


def test_without_a_command_it_says_how_it_is_used() -> None:
    done = run()
    assert done.returncode == 69
    assert "usage" in done.stderr
