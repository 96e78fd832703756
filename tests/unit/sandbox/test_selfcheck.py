"""Every check of the probe has its meaning in words, and every meaning its check."""

from __future__ import annotations

from bascule.sandbox import probe
from bascule.sandbox.selfcheck import MEANING


def test_checks_and_meanings_are_the_same_list() -> None:
    assert {check.__name__ for check in probe.CHECKS} == set(MEANING)
