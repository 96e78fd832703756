"""What becomes of a log record: handlers and formatters, all of which write to the script's output.

A script can hand in objects of its own (streams, formatters, filters): they are read through the guards,
never natively, because a text as formatter would otherwise read attributes of a record in C.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any, cast

import msgspec

from bascule.guest.formatting import SafeFormatter, percent
from bascule.guest.output import Output
from bascule.guest.value_text import stable_str

LEVELS = {"NOTSET": 0, "DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
_ALIASES = {**LEVELS, "WARN": 30, "FATAL": 50}
_NAMES = {number: name for name, number in LEVELS.items()}
_STYLES = {
    "%": "%(levelname)s:%(name)s:%(message)s",
    "{": "{levelname}:{name}:{message}",
    "$": "${levelname}:${name}:${message}",
}


def level_number(level: object) -> int:
    """Return the number of a level given as a number or a name.

    Raises:
        ValueError: there is no level of this name.
        TypeError: it is neither.
    """
    if isinstance(level, str):
        if level not in _ALIASES:
            raise ValueError(f"Unknown level: {level!r}; levels are {', '.join(LEVELS)}")
        return _ALIASES[level]
    if isinstance(level, int):
        return int(level)
    raise TypeError(f"Level not an integer or a valid string: {stable_str(level)}")


def level_name(level: object) -> object:
    """Return the name of a level, or the number of a name."""
    if isinstance(level, str):
        return _ALIASES.get(level, f"Level {level}")
    return _NAMES.get(cast(int, level), f"Level {stable_str(level)}")


class LogTarget(msgspec.Struct, frozen=True):
    """Where the records of one run go, and how objects of the script are read."""

    output: Output
    read: Callable[[object, str], Any]


class LogRecord:
    """One record. Its fields are plain data; ``values`` are what formats can name."""

    __slots__ = ("_target", "_values")

    args: tuple[object, ...]
    created: float
    exc_info: None
    exc_text: str | None
    filename: str
    funcName: str
    levelname: str
    levelno: int
    lineno: int
    message: str
    module: str
    msecs: int
    msg: object
    name: str
    pathname: str
    process: int
    processName: str
    thread: int
    threadName: str

    def __init__(self, target: LogTarget, values: dict[str, object]) -> None:
        self._target = target
        self._values = values

    def __getattr__(self, name: str) -> object:
        values = object.__getattribute__(self, "_values")
        if name not in values:
            raise AttributeError(f"'LogRecord' object has no attribute {name!r}")
        return values[name]

    def getMessage(self) -> object:
        """Return the text with its arguments filled in."""
        return self._values["message"]

    def __repr__(self) -> str:
        values = self._values
        return "<LogRecord: {name}, {levelno}, script, {lineno}, {message!r}>".format_map(values)

    @staticmethod
    def target_of(record: object) -> LogTarget:
        """Return where a record goes; not reachable from scripts, for whom no row lists it."""
        if type(record) is not LogRecord:
            raise TypeError(f"expected a LogRecord, not {type(record).__name__!r}")
        return record._target

    @staticmethod
    def values_of(record: object) -> dict[str, object]:
        """Return what formats can name, as a copy."""
        LogRecord.target_of(record)
        return dict(cast(LogRecord, record)._values)


class Formatter:
    """Makes the text of a record from a format in one of the three styles."""

    datefmt: str | None

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        style: str = "%",
        validate: bool = True,
        *,
        defaults: object = None,
    ) -> None:
        if style not in _STYLES:
            raise ValueError(f"Style must be one of: {','.join(_STYLES)}")
        self._style = style
        self._format = fmt or {"%": "%(message)s", "{": "{message}", "$": "${message}"}[style]
        self.datefmt = datefmt
        self._defaults: dict[str, object] = dict(cast("dict[str, object]", defaults)) if defaults else {}

    def format(self, record: object) -> str:
        """Return the text of a record, with its exception if it has one."""
        target, values = LogRecord.target_of(record), LogRecord.values_of(record)
        values["asctime"] = self.formatTime(record, self.datefmt)
        text = self._expand(target, {**self._defaults, **values})
        if values["exc_text"]:
            text = f"{text}\n{values['exc_text']}"
        return text

    def formatTime(self, record: object, datefmt: str | None = None) -> str:
        """Return the time of a record, by the run's clock."""
        moment: Any = LogRecord.values_of(record)["moment"]
        if datefmt:
            return str(moment.strftime(datefmt))
        return f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"

    def _expand(self, target: LogTarget, values: dict[str, object]) -> str:
        if self._style == "{":
            return SafeFormatter(target.read).text_format_map(self._format, values)
        if self._style == "$":
            return string.Template(self._format).substitute(values)
        return str(percent(self._format, values))


_PLAIN = Formatter()


class Handler:
    """Gets records and writes them. Scripts inherit from it and write ``emit``."""

    level: int
    formatter: object
    filters: list[object]

    def __init__(self, level: object = 0) -> None:
        self.level = level_number(level)
        self.formatter = None
        self.filters = []

    def setFormatter(self, fmt: object) -> None:
        """Use this formatter."""
        self.formatter = fmt

    def setLevel(self, level: object) -> None:
        """Leave out records below ``level``."""
        self.level = level_number(level)

    def addFilter(self, filter: object) -> None:
        """Ask this function or object about each record."""
        self.filters.append(filter)

    def format(self, record: object) -> object:
        """Return the text of a record."""
        formatter = self.formatter
        if formatter is None:
            return _PLAIN.format(record)
        return LogRecord.target_of(record).read(formatter, "format")(record)

    def handle(self, record: object) -> bool:
        """Write a record unless a filter is against it."""
        target = LogRecord.target_of(record)
        if not passes(target, self.filters, record):
            return False
        target.read(self, "emit")(record)
        return True

    def emit(self, record: object) -> None:
        """Write a record; for subclasses to define."""
        raise NotImplementedError("emit must be implemented by Handler subclasses")

    def flush(self) -> None:
        """Do nothing: what is written is kept in order anyway."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class StreamHandler(Handler):
    """Writes to a stream, the script's output where none is named."""

    stream: object
    terminator = "\n"

    def __init__(self, stream: object = None) -> None:
        super().__init__()
        self.stream = stream

    def emit(self, record: object) -> None:
        """Write a record."""
        target = LogRecord.target_of(record)
        text = f"{target.read(self, 'format')(record)}{self.terminator}"
        if self.stream is None:
            target.output.write_error(text)
        else:
            target.read(self.stream, "write")(text)


class NullHandler(Handler):
    """Writes nothing."""

    def emit(self, record: object) -> None:
        """Do nothing."""


def passes(target: LogTarget, filters: object, record: object) -> bool:
    """Whether every filter, a function or an object with ``filter``, lets a record through."""
    for item in list(cast("list[object]", filters)):
        test = item if callable(item) else target.read(item, "filter")
        if not cast("Callable[[object], object]", test)(record):
            return False
    return True


def default_format(style: str) -> str:
    """Return what ``basicConfig`` writes when no format is given.

    Raises:
        ValueError: there is no such style.
    """
    if style not in _STYLES:
        raise ValueError(f"Style must be one of: {','.join(_STYLES)}")
    return _STYLES[style]
