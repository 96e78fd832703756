"""logging: the loggers of one run, a tree by dotted names. Everything goes to the script's output.

What CPython does by default is done here: ``logging.info`` and its kin set up the root on first use, a logger
without any handler writes bare messages from WARNING on, and a message that cannot be formatted is reported
and fails nobody.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import cast

from bascule.guest.facade import FacadeContext, Members, renamed
from bascule.guest.facades.log_handlers import (
    LEVELS,
    Formatter,
    Handler,
    LogRecord,
    LogTarget,
    NullHandler,
    StreamHandler,
    default_format,
    level_name,
    level_number,
    passes,
)
from bascule.guest.facades.tracebacks import exception_text
from bascule.guest.formatting import percent
from bascule.guest.position import calling_function, calling_line
from bascule.guest.value_text import stable_str

_OPTIONS = frozenset({"datefmt", "encoding", "force", "format", "handlers", "level", "stream", "style"})
_NO_EXCEPTION = "NoneType: None"
"""What logging writes where there is no exception to show."""


class LogTree:
    """The loggers of one run."""

    __slots__ = ("context", "disabled", "last", "loggers", "root", "target")

    def __init__(self, context: FacadeContext) -> None:
        self.context = context
        self.target = LogTarget(context.environment.output, context.guards.read)
        self.disabled = 0
        self.loggers: dict[str, Logger] = {}
        self.root = Logger("root", self)
        self.root.setLevel("WARNING")
        self.last = StreamHandler()
        self.last.setLevel("WARNING")

    def logger(self, name: str) -> Logger:
        """Return the one logger of this name."""
        found = self.loggers.get(name)
        if found is None:
            found = self.loggers[name] = Logger(name, self)
        return found

    def parent(self, name: str) -> Logger:
        """Return the nearest logger above a name."""
        while "." in name:
            name = name.rpartition(".")[0]
            if name in self.loggers:
                return self.loggers[name]
        return self.root

    def record(
        self, name: str, level: int, msg: object, args: tuple[object, ...], options: dict[str, object]
    ) -> LogRecord:
        """Make a record of what the script says here and now."""
        environment = self.context.environment
        moment = environment.clock.utc()
        wanted = error = options.get("exc_info")
        if error and not isinstance(error, BaseException):
            error = cast("tuple[object, ...]", error)[1] if isinstance(error, tuple) else sys.exception()
        trace = exception_text(cast("BaseException | None", error)).rstrip("\n") if error else _NO_EXCEPTION
        values: dict[str, object] = {
            "args": args,
            "created": environment.clock.now,
            "exc_info": None,
            "exc_text": trace if wanted else None,
            "filename": "script",
            "funcName": calling_function(),
            "levelname": level_name(level),
            "levelno": level,
            "lineno": calling_line() or 0,
            "message": self._message(msg, args),
            "module": "script",
            "moment": moment,
            "msecs": moment.microsecond // 1000,
            "msg": msg,
            "name": name,
            "pathname": "script",
            "process": 1,
            "processName": "MainProcess",
            "thread": 1,
            "threadName": "MainThread",
        }
        extra = options.get("extra")
        if isinstance(extra, dict):
            fields = cast("dict[str, object]", extra)
            for key in fields:
                if key in values:
                    raise KeyError(f"Attempt to overwrite {key!r} in LogRecord")
            values |= fields
        return LogRecord(self.target, values)

    @staticmethod
    def _message(msg: object, args: tuple[object, ...]) -> str:
        text = stable_str(msg)
        if not args:
            return text
        # As in logging, one dict fills %(name)s fields.
        values: object = args
        if len(args) == 1 and isinstance(args[0], dict) and args[0]:
            values = cast(object, args[0])
        return str(percent(text, values))


class Logger:
    """A logger of the script."""

    name: str
    level: int
    propagate: bool
    disabled: bool
    handlers: list[object]
    filters: list[object]

    def __init__(self, name: str, tree: LogTree) -> None:
        if type(tree) is not LogTree:
            raise TypeError("write logging.getLogger(name)")
        self.name = name
        self.level = 0
        self.propagate = True
        self.disabled = False
        self.handlers = []
        self.filters = []
        self._tree = tree

    @property
    def parent(self) -> Logger | None:
        """The logger above this one, None for the root."""
        return None if self is self._tree.root else self._tree.parent(self.name)

    def setLevel(self, level: object) -> None:
        """Leave out records below ``level``."""
        self.level = level_number(level)

    def getEffectiveLevel(self) -> int:
        """Return the level in force."""
        logger: Logger | None = self
        while logger is not None:
            if logger.level:
                return logger.level
            logger = logger.parent
        return 0

    def isEnabledFor(self, level: object) -> bool:
        """Whether a record of this level would be written."""
        number = level_number(level)
        return not self.disabled and number >= self.getEffectiveLevel() and number > self._tree.disabled

    def hasHandlers(self) -> bool:
        """Whether a handler of this logger or of one above gets its records."""
        return any(logger.handlers for logger in self._line())

    def getChild(self, suffix: str) -> Logger:
        """Return the logger ``suffix`` below this one."""
        return self._tree.logger(suffix if self is self._tree.root else f"{self.name}.{suffix}")

    def addHandler(self, hdlr: object) -> None:
        """Send records to a handler as well."""
        if not any(known is hdlr for known in self.handlers):
            self.handlers.append(hdlr)

    def removeFilter(self, filter: object) -> None:
        """Ask a filter no more."""
        self.filters[:] = [known for known in self.filters if known is not filter]

    def removeHandler(self, hdlr: object) -> None:
        """Send no more records to a handler."""
        self.handlers[:] = [known for known in self.handlers if known is not hdlr]

    def addFilter(self, filter: object) -> None:
        """Ask this function or object about each record."""
        self.filters.append(filter)

    def log(self, level: object, msg: object, *args: object, **options: object) -> None:
        """Write a record if its level is enabled."""
        if not self.isEnabledFor(level):
            return
        tree = self._tree
        try:
            record = tree.record(self.name, level_number(level), msg, args, options)
        except (TypeError, ValueError) as error:
            tree.target.output.write_error(f"--- Logging error ---\n{type(error).__name__}: {error}\n")
            return
        if passes(tree.target, self.filters, record):
            self._hand_on(record)

    def reader(self) -> Callable[[object, str], object]:
        """Return how objects of the script are read; no row lists it, so no script does."""
        return self._tree.target.read

    def _line(self) -> list[Logger]:
        """Return this logger and those above that get its records."""
        line: list[Logger] = []
        logger: Logger | None = self
        while logger is not None:
            line.append(logger)
            logger = logger.parent if logger.propagate else None
        return line

    def _hand_on(self, record: LogRecord) -> None:
        read = self._tree.target.read
        handlers = [handler for logger in self._line() for handler in logger.handlers]
        for handler in handlers or [self._tree.last]:
            if LogRecord.values_of(record)["levelno"] >= read(handler, "level"):
                read(handler, "handle")(record)

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

    fatal = critical

    def __repr__(self) -> str:
        kind = "RootLogger" if self is self._tree.root else "Logger"
        return f"<{kind} {self.name} ({level_name(self.getEffectiveLevel())})>"


def logging_module(context: FacadeContext) -> Members:
    """Give logging."""
    from bascule.guest.facades.log_adapters import Filter, LoggerAdapter

    tree = LogTree(context)
    root = tree.root

    def basicConfig(**options: object) -> None:
        for name in options:
            if name not in _OPTIONS:
                raise TypeError(f"basicConfig: {name} is not available: records go to the script's output")
        style = str(options.get("style", "%"))
        formatter = Formatter(
            cast("str | None", options.get("format", default_format(style))),
            cast("str | None", options.get("datefmt")),
            style,
        )
        if options.get("force"):
            root.handlers.clear()
        if root.handlers:
            return
        given = options.get("handlers")
        handlers = list(cast("list[object]", given)) if given else [StreamHandler(options.get("stream"))]
        for handler in handlers:
            if context.guards.read(handler, "formatter") is None:
                context.guards.read(handler, "setFormatter")(formatter)
            root.addHandler(handler)
        if options.get("level") is not None:
            root.setLevel(options["level"])

    def getLogger(name: str | None = None) -> Logger:
        if name is not None and not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("A logger name must be a string")
        return root if not name or name == "root" else tree.logger(name)

    def disable(level: object = 50) -> None:
        tree.disabled = level_number(level)

    def log(level: object, msg: object, *args: object, **options: object) -> None:
        if not root.handlers:
            basicConfig()
        root.log(level, msg, *args, **options)

    def at(level: int, name: str) -> object:
        def write(msg: object, *args: object, **options: object) -> None:
            log(level, msg, *args, **options)

        return renamed(write, name)

    def exception(msg: object, *args: object, **options: object) -> None:
        log(40, msg, *args, **{"exc_info": True, **options})

    return {
        **LEVELS,
        "FATAL": LEVELS["CRITICAL"],
        "WARN": LEVELS["WARNING"],
        "Filter": Filter,
        "Formatter": Formatter,
        "Handler": Handler,
        "Logger": Logger,
        "LoggerAdapter": LoggerAdapter,
        "NullHandler": NullHandler,
        "StreamHandler": StreamHandler,
        "basicConfig": basicConfig,
        "critical": at(50, "critical"),
        "debug": at(10, "debug"),
        "disable": disable,
        "error": at(40, "error"),
        "exception": exception,
        "getLevelName": renamed(level_name, "getLevelName"),
        "getLogger": getLogger,
        "info": at(20, "info"),
        "log": log,
        "root": root,
        "warn": at(30, "warn"),
        "warning": at(30, "warning"),
    }
