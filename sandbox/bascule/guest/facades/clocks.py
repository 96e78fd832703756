"""time and calendar on the run's clock. Nothing here looks at the machine's."""

from __future__ import annotations

import datetime
import time
from typing import Any, SupportsIndex

from bascule.guest.facade import FacadeContext, Members, renamed

_NS_PER_S = 1_000_000_000
_MAX_TIMESTAMP_S = (2**63 - 1) / _NS_PER_S


def _is_now(seconds: tuple[object, ...], keywords: dict[str, object]) -> bool:
    return not keywords and (not seconds or (len(seconds) == 1 and seconds[0] is None))


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
        if seconds > _MAX_TIMESTAMP_S:
            raise OverflowError("timestamp too large to convert to C PyTime_t")
        loop.sleep(float(seconds))

    # Wrong arguments go to the functions of C, which say so in their own words.

    def gmtime(*seconds: Any, **keywords: Any) -> time.struct_time:
        return time.gmtime(clock.now) if _is_now(seconds, keywords) else time.gmtime(*seconds, **keywords)

    def localtime(*seconds: Any, **keywords: Any) -> time.struct_time:
        if len(seconds) == 1 and not keywords:
            return gmtime(*seconds)
        return gmtime() if _is_now(seconds, keywords) else time.localtime(*seconds, **keywords)

    def strftime(*arguments: Any, **keywords: Any) -> str:
        if len(arguments) == 1 and not keywords:
            return time.strftime(*arguments, gmtime())
        return time.strftime(*arguments, **keywords)

    def strptime(*arguments: Any, **keywords: Any) -> time.struct_time:
        # Called from here, the C code finds its Python part through our builtins, not the script's.
        return time.strptime(*arguments, **keywords)

    def asctime(*t: Any, **keywords: Any) -> str:
        return time.asctime(*t, **keywords) if t or keywords else time.asctime(gmtime())

    def ctime(*seconds: Any, **keywords: Any) -> str:
        if len(seconds) > 1 or keywords:
            return time.ctime(*seconds, **keywords)
        return time.asctime(gmtime(*seconds))

    def mktime(*t: Any, **keywords: Any) -> float:
        # The guest's zone is UTC; a zone of the process must not matter where it is not.
        import calendar

        time.mktime(*t, **keywords)
        return float(calendar.timegm(tuple(t[0])))

    return {
        "altzone": 0,
        "asctime": asctime,
        "ctime": ctime,
        "daylight": 0,
        "gmtime": gmtime,
        "localtime": localtime,
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
