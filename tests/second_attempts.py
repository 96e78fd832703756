"""Counts the tests that pass only when run again: `make test` allows a few, for a busy machine is no defect.

More than a few fail the run (docs/decisions/077). Without `--reruns` pytest makes no second attempt.
"""

from __future__ import annotations

from typing import Final

import pytest

MOST_SECOND_ATTEMPTS: Final = 3
SHOWN_CHARACTERS: Final = 2000
"""Of what a first attempt failed with, the end."""


class SecondAttempts:
    """Counts the tests that passed only when run again, and fails a run that had too many of them."""

    def __init__(self) -> None:
        self.tests: list[str] = []
        self.reasons: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note each attempt that is made again; with xdist only its controller is told."""
        if str(report.outcome) == "rerun":  # the word of pytest-rerunfailures
            self.tests.append(report.nodeid)
            self.reasons.append(f"{report.nodeid}: {str(report.longrepr)[-SHOWN_CHARACTERS:]}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that passed only by many second attempts."""
        if len(self.tests) > MOST_SECOND_ATTEMPTS and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was run again, and whether that fails the run."""
        if self.tests:
            verdict = "fails the run" if len(self.tests) > MOST_SECOND_ATTEMPTS else "allowed"
            terminalreporter.write_line(
                f"{len(self.tests)} second attempts, {MOST_SECOND_ATTEMPTS} are allowed: {verdict}"
            )
            # A first attempt that failed may be a rare defect: what it said must not be lost.
            for reason in self.reasons:
                terminalreporter.write_line(f"first attempt of {reason}")


def pytest_configure(config: pytest.Config) -> None:
    """Count second attempts in every run."""
    config.pluginmanager.register(SecondAttempts(), "second-attempts")
