"""A few second attempts are allowed and shown; many fail the run, and so does a test that keeps failing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.second_attempts import MOST_SECOND_ATTEMPTS

ROOT = Path(__file__).parents[3]
FLAKY = """
seen = set()


def attempt(name):
    if name not in seen:
        seen.add(name)
        raise AssertionError("the first attempt fails")
"""


@pytest.mark.parametrize("flaky", [MOST_SECOND_ATTEMPTS, MOST_SECOND_ATTEMPTS + 1])
def test_only_a_few_tests_may_need_a_second_attempt(tmp_path: Path, flaky: int) -> None:
    tests = [f"def test_{n}():\n    attempt({n})\n" for n in range(flaky)]
    status, output = run_pytest(tmp_path, "\n\n".join([FLAKY, *tests, "def test_good():\n    pass\n"]))
    assert status == (1 if flaky > MOST_SECOND_ATTEMPTS else 0), output
    assert output.count("RERUN test") == flaky
    assert f"{flaky} second attempts" in output
    assert output.count("AssertionError: the first attempt fails") >= flaky


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    status, output = run_pytest(tmp_path, "def test_bad():\n    assert 1 == 2\n")
    assert (status, "1 failed, 1 rerun" in output) == (1, True), output


def run_pytest(folder: Path, text: str) -> tuple[int, str]:
    """Run a file of tests as `make test` does and return the exit status and all output."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_some.py").write_text(text)
    plugins = ["-p", "xdist", "-p", "pytest_rerunfailures", "-p", "tests.second_attempts"]
    command = [sys.executable, "-m", "pytest", *plugins, "-q", "-rR", "--reruns", "1", "-n", "2"]
    done = subprocess.run(
        [*command, str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr
