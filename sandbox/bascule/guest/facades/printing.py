"""sys, logging, pprint and traceback: all of it goes to the script's output, without addresses or paths."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import NoReturn, Protocol, cast

from bascule.guest.facade import FacadeContext, Members, renamed
from bascule.guest.formatting import percent
from bascule.guest.position import SCRIPT_FILE
from bascule.guest.values import stable_repr, stable_str

_MAX_TRACEBACK_LINES = 40


class Writer(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> int: ...


class Stream:
    """sys.stdout and sys.stderr: both are the script's one output."""

    __slots__ = ("_write",)

    encoding = "utf-8"

    def __init__(self, write: Callable[[str], int]) -> None:
        self._write = write

    def write(self, text: str) -> int:
        """Write text; return the number of its characters."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        return self._write(str.__str__(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each text."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: the output is kept in order anyway."""

    def isatty(self) -> bool:
        """Nobody watches."""
        return False


def sys_module(context: FacadeContext) -> Members:
    """Give the harmless part of sys."""

    def leave(status: object = None, /) -> NoReturn:
        raise SystemExit(status)

    def setrecursionlimit(limit: int, /) -> None:
        # The limit of the run stands: a script may ask, as plain scripts do, and gets no deeper.
        if type(limit) is not int:
            raise TypeError(f"{type(limit).__name__!r} object cannot be interpreted as an integer")
        if limit < 1:
            raise ValueError("recursion limit must be greater or equal than 1")

    leave.__name__ = leave.__qualname__ = "exit"
    output = context.environment.output
    return {
        "argv": ["script"],
        "exit": leave,
        "platform": "linux",
        "setrecursionlimit": setrecursionlimit,
        "stderr": Stream(output.write_error),
        "stdout": Stream(output.write),
        "version": sys.version.split()[0],
    }


def gc_module(context: FacadeContext) -> Members:
    """Give gc, which has nothing to do: memory is freed when the run ends."""

    def collect(generation: int = 2) -> int:
        return 0

    def switch() -> None:
        return None

    def isenabled() -> bool:
        return True

    return {
        "collect": collect,
        "disable": renamed(switch, "disable"),
        "enable": renamed(switch, "enable"),
        "isenabled": isenabled,
    }


LEVELS = {"NOTSET": 0, "DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
_ALIASES = {**LEVELS, "WARN": 30, "FATAL": 50}
_NAMES = {number: name for name, number in LEVELS.items()}


class LogSettings:
    """What basicConfig sets; one for each run."""

    __slots__ = ("context", "disabled", "format", "loggers", "root_level")

    def __init__(self, context: FacadeContext) -> None:
        self.context = context
        self.format = "%(levelname)s:%(name)s:%(message)s"
        self.root_level = LEVELS["WARNING"]
        self.disabled = 0
        self.loggers: dict[str, Logger] = {}

    def logger(self, name: str) -> Logger:
        """Return the one logger of this name."""
        found = self.loggers.get(name)
        if found is None:
            found = self.loggers[name] = Logger(name, self)
        return found

    def emit(self, name: str, level: int, message: str) -> None:
        """Write one record."""
        clock = self.context.environment.clock.utc()
        record: dict[str, object] = {
            "asctime": f"{clock:%Y-%m-%d %H:%M:%S},{clock.microsecond // 1000:03d}",
            "created": self.context.environment.clock.now,
            "filename": "script",
            "funcName": "<module>",
            "levelname": _level_name(level),
            "levelno": level,
            "lineno": 0,
            "message": message,
            "module": "script",
            "msecs": clock.microsecond // 1000,
            "name": name,
            "process": 1,
            "processName": "MainProcess",
            "threadName": "MainThread",
        }
        self.context.environment.output.write_error(self.format % record + "\n")


class Logger:
    """A logger that writes to the script's output. Its format is %-style: other styles read attributes."""

    __slots__ = ("_level", "_settings", "name")

    def __init__(self, name: str, settings: LogSettings) -> None:
        self.name = name
        self._level = 0
        self._settings = settings

    @property
    def level(self) -> int:
        """The level set on this logger."""
        return self._level

    def setLevel(self, level: int | str) -> None:
        """Leave out records below ``level``."""
        self._level = _level_number(level)

    def getEffectiveLevel(self) -> int:
        """Return the level in force."""
        return self._level or self._settings.root_level

    def isEnabledFor(self, level: int | str) -> bool:
        """Whether a record of this level would be written."""
        number = _level_number(level)
        return number >= self.getEffectiveLevel() and number > self._settings.disabled

    def hasHandlers(self) -> bool:
        """Every logger writes to the output."""
        return True

    def addHandler(self, handler: object) -> None:
        """Do nothing: every logger writes to the output."""

    def log(self, level: int | str, msg: object, *args: object, **options: object) -> None:
        """Write a record if its level is enabled."""
        if self.isEnabledFor(level):
            text = stable_str(msg)
            if args:
                # As in logging, one dict fills %(name)s fields.
                values: object = args
                if len(args) == 1 and type(args[0]) is dict:
                    values = cast(object, args[0])
                text = str(percent(text, values))
            if options.get("exc_info"):
                text += "\n" + "".join(_format(sys.exception())).rstrip("\n")
            self._settings.emit(self.name, _level_number(level), text)

    def debug(self, msg: object, *args: object, **options: object) -> None:
        """Write a record of level DEBUG."""
        self.log(10, msg, *args, **options)

    def info(self, msg: object, *args: object, **options: object) -> None:
        """Write a record of level INFO."""
        self.log(20, msg, *args, **options)

    def warning(self, msg: object, *args: object, **options: object) -> None:
        """Write a record of level WARNING."""
        self.log(30, msg, *args, **options)

    warn = warning

    def error(self, msg: object, *args: object, **options: object) -> None:
        """Write a record of level ERROR."""
        self.log(40, msg, *args, **options)

    def exception(self, msg: object, *args: object, **options: object) -> None:
        """Write a record of level ERROR with the exception being handled."""
        self.log(40, msg, *args, **{"exc_info": True, **options})

    def critical(self, msg: object, *args: object, **options: object) -> None:
        """Write a record of level CRITICAL."""
        self.log(50, msg, *args, **options)

    def __repr__(self) -> str:
        return f"<Logger {self.name} ({_level_name(self.getEffectiveLevel())})>"


def _level_number(level: int | str) -> int:
    if isinstance(level, str):
        if level not in _ALIASES:
            raise ValueError(f"Unknown level: {level!r}; levels are {', '.join(LEVELS)}")
        return _ALIASES[level]
    return int(level)


def _level_name(level: int) -> str:
    return _NAMES.get(level, f"Level {level}")


def logging_module(context: FacadeContext) -> Members:
    """Give logging."""
    settings = LogSettings(context)
    root = settings.logger("root")

    def basicConfig(**options: object) -> None:
        known = {"level", "format", "datefmt", "force", "stream", "handlers", "encoding", "style"}
        for name in options:
            if name not in known:
                raise TypeError(f"basicConfig: {name} is not available: records go to the script's output")
        if options.get("style", "%") != "%":
            raise ValueError("basicConfig: only %-style formats are available")
        level, text = options.get("level"), options.get("format")
        if isinstance(level, int | str):
            settings.root_level = _level_number(level)
        if isinstance(text, str):
            settings.format = text

    def getLogger(name: str | None = None) -> Logger:
        return root if name is None or name == "root" else settings.logger(name)

    def disable(level: int | str = 50) -> None:
        settings.disabled = _level_number(level)

    return {
        **LEVELS,
        "WARN": LEVELS["WARNING"],
        "Logger": Logger,
        "basicConfig": basicConfig,
        "critical": root.critical,
        "debug": root.debug,
        "disable": disable,
        "error": root.error,
        "exception": root.exception,
        "getLevelName": renamed(_level_name, "getLevelName"),
        "getLogger": getLogger,
        "info": root.info,
        "log": root.log,
        "warning": root.warning,
    }


def _format_only(error: BaseException) -> list[str]:
    text = stable_str(error)
    name = type(error).__name__
    lines = [f"{name}: {text}\n" if text else f"{name}\n"]
    return lines + [f"{note}\n" for note in getattr(error, "__notes__", ()) if type(note) is str]


def _script_lines(traceback: TracebackType | None) -> list[str]:
    lines: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == SCRIPT_FILE:
            name = "<module>" if code.co_name == SCRIPT_FILE else code.co_name
            lines.append(f'  File "{SCRIPT_FILE}", line {traceback.tb_lineno}, in {name}\n')
        traceback = traceback.tb_next
    if len(lines) > _MAX_TRACEBACK_LINES:
        half = _MAX_TRACEBACK_LINES // 2
        lines = [*lines[:half], f"  [{len(lines) - 2 * half} lines left out]\n", *lines[-half:]]
    return lines


def _format(error: BaseException | None) -> list[str]:
    if error is None:
        return ["NoneType: None\n"]
    return ["Traceback (most recent call last):\n", *_script_lines(error.__traceback__), *_format_only(error)]


def traceback_module(context: FacadeContext) -> Members:
    """Give traceback: the script's own lines, no files of the guest, no live objects."""
    output, read = context.environment.output, context.guards.read

    def write(text: str, file: object) -> None:
        if file is None:
            output.write_error(text)
        else:
            read(file, "write")(text)

    def chosen(values: tuple[object, ...]) -> BaseException | None:
        return next((value for value in values if isinstance(value, BaseException)), None)

    def format_exc(limit: object = None, chain: object = True) -> str:
        return "".join(_format(sys.exception()))

    def format_exception(*error: object, **_: object) -> list[str]:
        return _format(chosen(error))

    def format_exception_only(*error: object, **_: object) -> list[str]:
        found = chosen(error)
        return ["NoneType: None\n"] if found is None else _format_only(found)

    def print_exc(limit: object = None, file: object = None, chain: object = True) -> None:
        write(format_exc(), file)

    def print_exception(*error: object, file: object = None, **_: object) -> None:
        write("".join(_format(chosen(error))), file)

    return {
        "format_exc": format_exc,
        "format_exception": format_exception,
        "format_exception_only": format_exception_only,
        "print_exc": print_exc,
        "print_exception": print_exception,
    }


class PrettyPrinter:
    """pprint without addresses, printing to the script's output."""

    __slots__ = ("_options", "_output")

    def __init__(self, output: Writer, options: dict[str, object]) -> None:
        self._output = output
        self._options = options

    def pformat(self, value: object) -> str:
        """Return the pretty text of ``value``."""
        import pprint

        class Stable(pprint.PrettyPrinter):
            def format(
                self, object: object, context: dict[int, int], maxlevels: int, level: int
            ) -> tuple[str, bool, bool]:
                text, readable, recursive = super().format(object, context, maxlevels, level)
                return (stable_repr(object) if " at 0x" in text else text), readable, recursive

        return Stable(**self._options).pformat(value)  # type: ignore[arg-type]

    def pprint(self, value: object) -> None:
        """Print the pretty text of ``value``."""
        self._output.write(self.pformat(value) + "\n")


def pprint_module(context: FacadeContext) -> Members:
    """Give pprint."""
    output = context.environment.output
    known = frozenset(["indent", "width", "depth", "compact", "sort_dicts", "underscore_numbers"])

    def make(**options: object) -> PrettyPrinter:
        for name in options:
            if name not in known:
                raise TypeError(f"pprint: {name} is not available: text goes to the script's output")
        return PrettyPrinter(output, options)

    def pformat(object: object, **options: object) -> str:
        return make(**options).pformat(object)

    def pprint(object: object, **options: object) -> None:
        make(**options).pprint(object)

    def pp(object: object, **options: object) -> None:
        make(**{"sort_dicts": False, **options}).pprint(object)

    make.__name__ = make.__qualname__ = "PrettyPrinter"
    return {"PrettyPrinter": make, "pformat": pformat, "pp": pp, "pprint": pprint}
