"""The table of settings: every limit is finite, bounded, and reachable by flag and environment."""

from __future__ import annotations

from dataclasses import fields

import pytest

from bascule.bridge import Limits, LimitsError
from bascule.bridge.clock import RunClock
from bascule.bridge.limits import GUEST_GRACE_S, read_limits
from bascule.bridge.settings import SETTINGS, Setting


def test_the_table_and_the_limits_have_the_same_names_and_defaults() -> None:
    assert {setting.name: setting.default for setting in SETTINGS} == {
        field.name: getattr(Limits(), field.name) for field in fields(Limits)
    }


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_limit_outside_its_bounds_is_refused(setting: Setting) -> None:
    for value in (setting.minimum - 1, setting.maximum + 1, float("inf"), float("nan")):
        with pytest.raises(LimitsError, match=setting.name):
            Limits(**{setting.name: value})  # type: ignore[arg-type]  # bounds are checked at run time
    Limits(**{setting.name: setting.minimum})  # type: ignore[arg-type]
    Limits(**{setting.name: setting.maximum})  # type: ignore[arg-type]


def test_a_flag_beats_the_environment_beats_the_default() -> None:
    environment = {"BASCULE_CALLS": "7", "BASCULE_WALL_S": "1.5"}
    limits = read_limits({"calls": 9, "wall_s": None}, environment)
    assert (limits.calls, limits.wall_s, limits.cpu_s) == (9, 1.5, 30.0)


def test_what_earlier_workers_used_of_a_run_stays_used() -> None:
    hands = Hands()
    clock = RunClock(Limits(run_s=60.0), used_s=50.0, read=hands, worked=idle)
    with clock.people():
        hands.now = 1000.0
        assert clock.used_s == 50.0
    assert clock.remaining_s() == 10.0
    hands.now += 4.0
    assert clock.used_s == 54.0
    hands.now += 6.0
    assert clock.expired() == "run_limit"


@pytest.mark.parametrize("text", ["many", "1.5", "", "inf"])
def test_an_environment_that_is_no_number_is_refused_by_name(text: str) -> None:
    with pytest.raises(LimitsError, match="BASCULE_CALLS"):
        read_limits({}, {"BASCULE_CALLS": text})


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def idle() -> float:
    """A host that never works."""
    return 0.0


def test_what_the_host_works_while_an_answer_waits_is_not_the_guests_time() -> None:
    hands, work = Hands(), Hands()
    clock = RunClock(Limits(wall_s=1.0, run_s=60.0), read=hands, worked=work)
    for _ in range(100):  # the guest takes 5 ms each time, the host reads its answer 95 ms later
        clock.guest_runs()
        hands.now += 0.1
        work.now += 0.095
        assert clock.expired() is None
        clock.guest_waits()
    assert clock.active_s == pytest.approx(0.5)
    assert clock.used_s == pytest.approx(10.0)
    clock.guest_runs()
    work.now += 5.0  # more than passed: clocks of different kinds
    assert clock.active_s == pytest.approx(0.5)
    hands.now += 5.0 + 0.51 + GUEST_GRACE_S
    assert clock.expired() == "wall_limit"


def test_what_a_sandbox_took_to_start_is_not_the_runs_time() -> None:
    hands = Hands()
    clock = RunClock(Limits(run_s=60.0), read=hands, worked=idle)
    hands.now = 30.0
    clock.begin()
    assert clock.used_s == 0.0
    assert clock.remaining_s() == 60.0


def test_only_the_guest_counts_against_wall_and_nobody_while_people_are_asked() -> None:
    hands = Hands()
    changes: list[float] = []
    clock = RunClock(
        Limits(wall_s=10.0, run_s=60.0), changed=lambda: changes.append(hands.now), read=hands, worked=idle
    )
    clock.guest_runs()
    hands.now = 4.0
    clock.guest_waits()
    assert clock.active_s == 4.0
    assert clock.remaining_s() == 56.0
    with clock.people(), clock.people():
        hands.now = 1004.0
        assert clock.remaining_s() is None
        assert clock.expired() is None
    assert changes == [4.0, 4.0, 1004.0, 1004.0]
    assert clock.remaining_s() == 56.0
    clock.guest_runs()
    hands.now += 6.0
    assert clock.remaining_s() == GUEST_GRACE_S
    hands.now += GUEST_GRACE_S
    assert clock.expired() == "wall_limit"
    clock.guest_waits()
    assert clock.expired() is None
    hands.now += 60.0
    assert clock.expired() == "run_limit"
    assert clock.remaining_s() == 0.0
