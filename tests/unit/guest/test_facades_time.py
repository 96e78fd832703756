"""time, datetime and calendar follow the host's stamps and nothing else."""

from __future__ import annotations

import pytest

from bascule.guest.clock import Clock
from tests.unit.guest.facade_stage import NOW, Stage
from tests.unit.guest.harness import run


def test_every_clock_stands_still_until_a_delivery() -> None:
    stage = Stage()
    time = stage["time"]
    assert time.time() == NOW
    assert time.time_ns() == int(NOW * 1_000_000_000)
    elapsed = ("monotonic", "perf_counter", "process_time", "thread_time")
    assert {getattr(time, name)() for name in elapsed} == {0.0}
    stage.clock.set(NOW + 1.5)
    assert {getattr(time, name)() for name in elapsed} == {1.5}
    assert time.monotonic_ns() == time.perf_counter_ns() == time.process_time_ns() == 1_500_000_000


def test_the_clock_never_goes_backwards() -> None:
    clock = Clock(10.0)
    clock.set(5.0)
    assert clock.now == 10.0
    assert clock.elapsed_s == 0.0


def test_broken_down_times_are_utc() -> None:
    time = Stage()["time"]
    assert time.gmtime()[:6] == time.localtime()[:6] == (2026, 1, 1, 0, 0, 0)
    assert time.gmtime(0)[:3] == (1970, 1, 1)
    assert time.strftime("%Y-%m-%d") == "2026-01-01"
    assert time.strftime("%H:%M", time.gmtime(3600)) == "01:00"
    assert time.asctime() == time.ctime() == "Thu Jan  1 00:00:00 2026"
    assert time.asctime(time.gmtime(0)) == time.ctime(0) == "Thu Jan  1 00:00:00 1970"
    assert time.mktime(time.strptime("2026-01-01", "%Y-%m-%d")) == int(NOW)


def test_sleep_is_a_timer_of_the_loop() -> None:
    stage = Stage()
    stage["time"].sleep(2)
    assert stage.sleeps.slept_s == [2.0]
    with pytest.raises(ValueError, match="non-negative"):
        stage["time"].sleep(-1)


def test_a_calendar_is_plain_data_and_prints_to_the_output() -> None:
    stage = Stage()
    calendar = stage["calendar"]
    assert calendar.day_name[0] == "Monday"
    assert calendar.month_abbr[12] == "Dec"
    assert calendar.MONDAY == 0
    assert calendar.weekday(2026, 1, 1) == calendar.THURSDAY
    assert calendar.monthrange(2024, 2) == (3, 29)
    assert calendar.monthcalendar(2026, 1)[0] == [0, 0, 0, 1, 2, 3, 4]
    assert calendar.firstweekday() == 0
    assert calendar.weekheader(2) == "Mo Tu We Th Fr Sa Su"
    assert "February 2024" in calendar.month(2024, 2)
    assert "December" in calendar.calendar(2026)
    calendar.prmonth(2024, 2)
    calendar.prcal(2024)
    assert "February 2024" in stage.printed()


def test_scripts_see_one_time_everywhere() -> None:
    outcome = run(
        "import datetime, time\n"
        "from datetime import date\n"
        "now = datetime.datetime.now(datetime.timezone.utc)\n"
        "print(now.timestamp() == time.time(), date.today() == now.date(), datetime.datetime.utcnow().year)\n"
        "print(datetime.datetime.strptime('2026-03-04', '%Y-%m-%d').strftime('%d %b'))\n"
        "return isinstance(now, datetime.datetime)\n"
    )
    assert outcome.output == "True True 2025\n04 Mar\n"
    assert outcome.value is True
