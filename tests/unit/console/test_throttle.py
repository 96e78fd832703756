"""Requests are counted over a sliding minute, for each principal and each address by itself."""

from __future__ import annotations

import pytest

from bascule.console import throttle
from bascule.console.problems import Problem
from bascule.console.throttle import LOGINS_PER_MINUTE, Throttle


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 600.0

    def __call__(self) -> float:
        return self.now


def admitted(limit: Throttle, name: str, times: int) -> int:
    for count in range(times):
        try:
            limit.admit(name)
        except Problem:
            return count
    return times


def test_a_principal_is_told_to_wait_and_another_is_not() -> None:
    limit = Throttle(requests_per_minute=10, now=Clock())
    assert admitted(limit, "ada", 15) == 10
    with pytest.raises(Problem, match="wait a little") as refused:
        limit.admit("ada")
    assert (refused.value.status, refused.value.code) == (429, "too_many_requests")
    assert admitted(limit, "olga", 1) == 1


def test_requests_of_the_minute_before_fade_out() -> None:
    clock = Clock()
    limit = Throttle(requests_per_minute=10, now=clock)
    assert admitted(limit, "ada", 10) == 10
    clock.now += 60.0  # the ten still count in full
    assert admitted(limit, "ada", 5) == 0
    clock.now += 30.0  # and now by half
    assert admitted(limit, "ada", 10) == 5
    clock.now += 120.0
    assert admitted(limit, "ada", 20) == 10


def test_an_address_is_locked_out_after_failures_only_and_only_for_a_while() -> None:
    clock = Clock()
    limit = Throttle(requests_per_minute=10, now=clock)
    for _ in range(LOGINS_PER_MINUTE):
        limit.check_address("192.0.2.1")
        limit.note_failure("192.0.2.1")
    with pytest.raises(Problem, match="too many wrong tokens"):
        limit.check_address("192.0.2.1")
    limit.check_address("192.0.2.2")
    clock.now += 120.0
    limit.check_address("192.0.2.1")


def test_keys_that_are_counted_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MAX_KEYS", 3)
    limit = Throttle(requests_per_minute=1, now=Clock())
    for name in ("a", "b", "c", "d"):
        limit.admit(name)
    assert admitted(limit, "d", 1) == 0
    assert admitted(limit, "a", 1) == 1  # it was unused for longest
