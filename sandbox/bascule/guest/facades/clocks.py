"""time and calendar on the run's clock. Nothing here looks at the machine's."""

from __future__ import annotations

import datetime
import time
from typing import SupportsIndex

from bascule.guest.facade import FacadeContext, Members, renamed

_NS_PER_S = 1_000_000_000

Moment = time.struct_time | tuple[int, int, int, int, int, int, int, int, int]


def time_module(context: FacadeContext) -> Members:
    """Give time: every clock is the host's stamp of the last delivery, and sleep is a timer on the host."""
    clock = context.environment.clock
    loop = context.environment.loop

    def now() -> float:
        return clock.now

    def now_ns() -> int:
        return int(clock.now * _NS_PER_S)

    def elapsed() -> float:
        return clock.elapsed_s

    def elapsed_ns() -> int:
        return int(clock.elapsed_s * _NS_PER_S)

    def sleep(seconds: float) -> None:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        loop.sleep(float(seconds))

    def gmtime(seconds: float | None = None) -> time.struct_time:
        return time.gmtime(clock.now if seconds is None else seconds)

    def strftime(format: str, t: Moment | None = None) -> str:
        return time.strftime(format, gmtime() if t is None else t)

    def strptime(data_string: str, format: str = "%a %b %d %H:%M:%S %Y") -> time.struct_time:
        # Called from here, the C code finds its Python part through our builtins, not the script's.
        return time.strptime(data_string, format)

    def asctime(t: Moment | None = None) -> str:
        return time.asctime(gmtime() if t is None else t)

    def ctime(seconds: float | None = None) -> str:
        return time.asctime(gmtime(seconds))

    def mktime(t: Moment) -> float:
        import calendar

        return float(calendar.timegm(tuple(t)))

    return {
        "altzone": 0,
        "asctime": asctime,
        "ctime": ctime,
        "daylight": 0,
        "gmtime": gmtime,
        "localtime": renamed(gmtime, "localtime"),
        "mktime": mktime,
        "monotonic": renamed(elapsed, "monotonic"),
        "monotonic_ns": renamed(elapsed_ns, "monotonic_ns"),
        "perf_counter": renamed(elapsed, "perf_counter"),
        "perf_counter_ns": renamed(elapsed_ns, "perf_counter_ns"),
        "process_time": renamed(elapsed, "process_time"),
        "process_time_ns": renamed(elapsed_ns, "process_time_ns"),
        "sleep": sleep,
        "strftime": strftime,
        "strptime": strptime,
        "thread_time": renamed(elapsed, "thread_time"),
        "time": renamed(now, "time"),
        "time_ns": renamed(now_ns, "time_ns"),
        "timezone": 0,
        "tzname": ("UTC", "UTC"),
    }


def calendar_module(context: FacadeContext) -> Members:
    """Give calendar with names as plain tuples, a text calendar of the run's own, printing to its output."""
    import calendar

    text = calendar.TextCalendar()
    output = context.environment.output

    def firstweekday() -> int:
        return text.firstweekday

    def prmonth(theyear: int, themonth: int, w: int = 0, l: int = 0) -> None:  # noqa: E741 (its public name)
        output.write(text.formatmonth(theyear, themonth, w, l))

    def prcal(theyear: int, w: int = 0, l: int = 0, c: int = 6, m: int = 3) -> None:  # noqa: E741
        output.write(text.formatyear(theyear, w, l, c, m))

    def month(theyear: int, themonth: int, w: int = 0, l: int = 0) -> str:  # noqa: E741 (its public name)
        return text.formatmonth(theyear, themonth, w, l)

    def year(theyear: int, w: int = 2, l: int = 1, c: int = 6, m: int = 3) -> str:  # noqa: E741
        return text.formatyear(theyear, w, l, c, m)

    def monthcalendar(year: int, month: int) -> list[list[int]]:
        return text.monthdayscalendar(year, month)

    def weekheader(width: int) -> str:
        return text.formatweekheader(width)

    def weekday(year: int, month: int, day: int) -> int:
        return datetime.date(year, month, day).weekday()

    def monthrange(year: SupportsIndex, month: SupportsIndex) -> tuple[int, int]:
        first, days = calendar.monthrange(int(year), int(month))
        return int(first), days

    names = ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"]
    return {
        **{name: number for number, name in enumerate(names)},
        "calendar": renamed(year, "calendar"),
        "day_abbr": tuple(calendar.day_abbr),
        "day_name": tuple(calendar.day_name),
        "firstweekday": firstweekday,
        "month": month,
        "month_abbr": tuple(calendar.month_abbr),
        "month_name": tuple(calendar.month_name),
        "monthcalendar": monthcalendar,
        "monthrange": monthrange,
        "prcal": prcal,
        "prmonth": prmonth,
        "weekday": weekday,
        "weekheader": weekheader,
    }
