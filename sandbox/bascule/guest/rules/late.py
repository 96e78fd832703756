"""Attribute rows of types whose modules are slow to import, made when a script imports the module.

Same rules as ``rules/attributes.py``: explicit names by exact type, no row means nothing.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable

from bascule.guest.facade import Rows
from bascule.guest.rules.attributes import ATTRIBUTES, ERRORS, NOTHING, Row, class_row, names

_ERROR = ERRORS[Exception]
_VALUE_NAMED_TUPLE = names("_asdict _fields _make _replace count index")


def _with_methods(instances: dict[type, Row], own: dict[type, Row]) -> dict[type, Row]:
    return {kind: class_row(kind, row, own.get(kind, NOTHING)) for kind, row in instances.items()}


def _calendar() -> Rows:
    import calendar

    iterate = names(
        """firstweekday getfirstweekday itermonthdates itermonthdays itermonthdays2 itermonthdays3
        itermonthdays4 iterweekdays monthdatescalendar monthdays2calendar monthdayscalendar setfirstweekday
        yeardatescalendar yeardays2calendar yeardayscalendar"""
    )
    # Not prmonth and pryear of TextCalendar: they print past the script's output.
    text = iterate | names(
        "formatday formatmonth formatmonthname formatweek formatweekday formatweekheader formatyear"
    )
    instances: dict[type, Row] = {
        calendar.Calendar: iterate,
        calendar.TextCalendar: text,
        calendar.HTMLCalendar: text | names("formatyearpage"),
        calendar.IllegalMonthError: _ERROR,
        calendar.IllegalWeekdayError: _ERROR,
    }
    return Rows(instances=instances, classes=_with_methods(instances, {}))


def _csv() -> Rows:
    import csv
    import io

    instances: dict[type, Row] = {
        csv.Error: _ERROR,
        csv.excel: NOTHING,
        csv.excel_tab: NOTHING,
        csv.unix_dialect: NOTHING,
        type(csv.reader(())): names("line_num"),
        type(csv.writer(io.StringIO())): names("writerow writerows"),
        csv.DictReader: names("fieldnames line_num"),
        csv.DictWriter: names("fieldnames writeheader writerow writerows"),
    }
    return Rows(
        instances=instances,
        classes=_with_methods(instances, {}),
        writable={csv.DictReader: names("fieldnames"), csv.DictWriter: names("fieldnames")},
    )


def _dataclasses() -> Rows:
    import dataclasses

    instances: dict[type, Row] = {
        dataclasses.Field: names("compare default default_factory hash init kw_only metadata name repr type"),
        type(dataclasses.MISSING): NOTHING,
        type(dataclasses.KW_ONLY): NOTHING,
        dataclasses.InitVar: NOTHING,
        dataclasses.FrozenInstanceError: _ERROR,
    }
    return Rows(instances=instances, classes=dict.fromkeys(instances, NOTHING))


def _difflib() -> Rows:
    import difflib

    instances: dict[type, Row] = {
        difflib.SequenceMatcher: names(
            """find_longest_match get_grouped_opcodes get_matching_blocks get_opcodes quick_ratio ratio
            real_quick_ratio set_seq1 set_seq2 set_seqs"""
        ),
        difflib.Match: _VALUE_NAMED_TUPLE | names("a b size"),
        difflib.Differ: names("compare"),
    }
    return Rows(instances=instances, classes=_with_methods(instances, {}))


def _fractions() -> Rows:
    import fractions

    instances: dict[type, Row] = {
        fractions.Fraction: names(
            "as_integer_ratio conjugate denominator imag is_integer@3.12 limit_denominator numerator real"
        )
    }
    own: dict[type, Row] = {fractions.Fraction: names("from_decimal from_float from_number@3.14")}
    return Rows(instances=instances, classes=_with_methods(instances, own))


def _hashlib() -> Rows:
    import hashlib

    row = names("block_size copy digest digest_size hexdigest name update")
    samples = [hashlib.new(name) for name in sorted(hashlib.algorithms_available)]
    samples += [getattr(hashlib, name)() for name in sorted(hashlib.algorithms_guaranteed)]
    return Rows(
        instances={type(sample): row for sample in samples},
        classes=dict.fromkeys((hashlib.blake2b, hashlib.blake2s), NOTHING),
    )


def _hmac() -> Rows:
    import hmac

    instances: dict[type, Row] = {
        hmac.HMAC: names("block_size copy digest digest_size hexdigest name update")
    }
    return Rows(instances=instances, classes=dict.fromkeys(instances, NOTHING))


def _json() -> Rows:
    import json

    from bascule.guest.facades.texts import JSONEncoder

    instances: dict[type, Row] = {
        json.JSONDecodeError: _ERROR | names("colno doc lineno msg pos"),
        JSONEncoder: names("default encode"),
    }
    return Rows(
        instances=instances,
        # default() does not touch what it is called on, and scripts call json.JSONEncoder.default(self, o).
        classes=_with_methods(instances, {JSONEncoder: names("default")}),
        extensible=frozenset({JSONEncoder}),
    )


def _statistics() -> Rows:
    import statistics

    instances: dict[type, Row] = {
        statistics.StatisticsError: _ERROR,
        statistics.NormalDist: names(
            "cdf inv_cdf mean median mode overlap pdf quantiles samples stdev variance zscore"
        ),
        type(statistics.linear_regression([0, 1], [0, 1])): _VALUE_NAMED_TUPLE | names("intercept slope"),
    }
    own: dict[type, Row] = {statistics.NormalDist: names("from_samples")}
    return Rows(instances=instances, classes=_with_methods(instances, own))


def _urllib_parse() -> Rows:
    from urllib import parse

    split = _VALUE_NAMED_TUPLE | names(
        "fragment geturl hostname netloc password path port query scheme username"
    )
    instances: dict[type, Row] = {
        parse.SplitResult: split | names("encode"),
        parse.SplitResultBytes: split | names("decode"),
        parse.ParseResult: split | names("encode params"),
        parse.ParseResultBytes: split | names("decode params"),
        parse.DefragResult: _VALUE_NAMED_TUPLE | names("encode fragment geturl url"),
        parse.DefragResultBytes: _VALUE_NAMED_TUPLE | names("decode fragment geturl url"),
    }
    return Rows(instances=instances, classes=_with_methods(instances, {}))


def _zoneinfo() -> Rows:
    import zoneinfo

    # Not from_file, clear_cache, no_cache: files, and state shared between runs.
    instances: dict[type, Row] = {
        zoneinfo.ZoneInfo: names("dst fromutc key tzname utcoffset"),
        zoneinfo.ZoneInfoNotFoundError: _ERROR,
    }
    return Rows(instances=instances, classes=dict.fromkeys(instances, NOTHING))


def _struct() -> Rows:
    import struct

    return Rows(instances={struct.error: _ERROR}, classes={struct.error: NOTHING})


def _binascii() -> Rows:
    import binascii

    return Rows(instances={binascii.Error: _ERROR}, classes={binascii.Error: NOTHING})


def _io() -> Rows:
    import io

    return Rows(
        instances={io.UnsupportedOperation: ATTRIBUTES[OSError]}, classes={io.UnsupportedOperation: NOTHING}
    )


def _copy() -> Rows:
    import copy

    return Rows(instances={copy.Error: _ERROR}, classes={copy.Error: NOTHING})


def _contextlib() -> Rows:
    from bascule.guest.facades.contexts import ContextDecorator

    row: dict[type, Row] = {ContextDecorator: NOTHING}
    return Rows(instances=row, classes=row, extensible=frozenset({ContextDecorator}))


def _functools() -> Rows:
    from bascule.guest.facades.callables import Partial, SingleDispatch
    from bascule.guest.facades.methods import PartialMethod, SingleDispatchMethod

    instances: dict[type, Row] = {
        Partial: names("args func keywords"),
        SingleDispatch: names("dispatch register"),
        SingleDispatchMethod: names("register"),
        PartialMethod: NOTHING,
    }
    return Rows(instances=instances, classes=dict.fromkeys(instances, NOTHING))


def _logging() -> Rows:
    from bascule.guest.facades.log_adapters import Filter, LoggerAdapter
    from bascule.guest.facades.log_handlers import Formatter, Handler, LogRecord, NullHandler, StreamHandler
    from bascule.guest.facades.logs import Logger

    handler = names("addFilter close emit filters flush format formatter handle level setFormatter setLevel")
    set_on_handler = names("filters formatter level")
    instances: dict[type, Row] = {
        Logger: names(
            """addFilter addHandler critical debug disabled error exception fatal filters getChild
            getEffectiveLevel handlers hasHandlers info isEnabledFor level log name parent propagate
            removeFilter removeHandler setLevel warn warning"""
        ),
        Handler: handler,
        StreamHandler: handler | names("stream terminator"),
        NullHandler: handler,
        Formatter: names("datefmt format formatTime"),
        Filter: names("filter name"),
        LoggerAdapter: names(
            """critical debug error exception extra getEffectiveLevel info isEnabledFor log logger process
            setLevel warning"""
        ),
        # Data of the record; where it goes to is not listed.
        LogRecord: names(
            """args created exc_info exc_text filename funcName getMessage levelname levelno lineno message
            module msecs msg name pathname process processName thread threadName"""
        ),
    }
    return Rows(
        instances=instances,
        classes=dict.fromkeys(instances, NOTHING),
        writable={
            Logger: names("disabled handlers propagate"),
            Handler: set_on_handler,
            StreamHandler: set_on_handler | names("terminator"),
            NullHandler: set_on_handler,
            Formatter: names("datefmt"),
            Filter: names("name"),
            LoggerAdapter: names("extra"),
        },
        # Read through the guards wherever the script may have written what is read.
        extensible=frozenset({Filter, Formatter, Handler, LoggerAdapter, StreamHandler}),
    )


def _pathlib() -> Rows:
    import pathlib

    from bascule.guest.facades.paths import FILE_METHODS, TextPath

    pure = names(
        """as_posix as_uri drive full_match@3.13 is_absolute is_relative_to is_reserved joinpath match name
        parent parents parts relative_to root stem suffix suffixes with_name with_stem with_suffix"""
    )
    instances: dict[type, Row] = {
        pathlib.PurePath: pure,
        pathlib.PurePosixPath: pure,
        pathlib.PureWindowsPath: pure,
        TextPath: pure | FILE_METHODS,
        type(pathlib.PurePath("a/b").parents): NOTHING,
    }
    # Methods are written in Python and are read of objects only; file methods say why they do nothing.
    classes: dict[type, Row] = dict.fromkeys(instances, NOTHING)
    return Rows(instances=instances, classes={**classes, TextPath: names("cwd home")})


def _tomllib() -> Rows:
    import tomllib

    row = _ERROR | names("colno@3.14 doc@3.14 lineno@3.14 msg@3.14 pos@3.14")
    return Rows(instances={tomllib.TOMLDecodeError: row}, classes={tomllib.TOMLDecodeError: NOTHING})


def _pprint() -> Rows:
    from bascule.guest.facades.pretty import PrettyPrinter

    instances: dict[type, Row] = {PrettyPrinter: names("pformat pprint")}
    return Rows(instances=instances, classes=dict.fromkeys(instances, NOTHING))


def _sys() -> Rows:
    import sys

    from bascule.guest.facades.streams import Stream

    instances: dict[type, Row] = {
        Stream: names("encoding flush isatty write writelines"),
        type(sys.implementation): NOTHING,
        type(sys.hash_info): NOTHING,
    }
    return Rows(instances=instances, classes={Stream: NOTHING})


LATE: dict[str, Callable[[], Rows]] = {
    "binascii": _binascii,
    "calendar": _calendar,
    "contextlib": _contextlib,
    "copy": _copy,
    "csv": _csv,
    "dataclasses": _dataclasses,
    "difflib": _difflib,
    "fractions": _fractions,
    "functools": _functools,
    "hashlib": _hashlib,
    "hmac": _hmac,
    "io": _io,
    "json": _json,
    "logging": _logging,
    "pathlib": _pathlib,
    "pprint": _pprint,
    "statistics": _statistics,
    "struct": _struct,
    "sys": _sys,
    "tomllib": _tomllib,
    "urllib.parse": _urllib_parse,
    "zoneinfo": _zoneinfo,
}
"""Rows by the name of the module that brings them."""
