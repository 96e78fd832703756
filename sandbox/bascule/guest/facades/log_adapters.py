"""logging's filters by name, and loggers that add to what is said. They write through the logger they hold.

A script may inherit from both and put anything into their fields, so nothing is trusted that is read of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from bascule.guest.facades.log_handlers import LogRecord
from bascule.guest.facades.logs import Logger


class Filter:
    """Lets through the records of one logger and of those below it. Scripts write ``filter``."""

    name: str

    def __init__(self, name: str = "") -> None:
        self.name = name

    def filter(self, record: object) -> bool:
        """Whether a record is written."""
        source = LogRecord.values_of(record)["name"]
        return not self.name or f"{source}.".startswith(f"{self.name}.")


class LoggerAdapter:
    """A logger that adds ``extra`` to each record. Scripts write ``process`` to change messages."""

    logger: object
    extra: object

    def __init__(self, logger: object, extra: object = None, merge_extra: bool = False) -> None:
        self.logger = logger
        self.extra = extra
        self.merge_extra = merge_extra
        _logger_of(self)

    def process(self, msg: object, kwargs: dict[str, object]) -> tuple[object, dict[str, object]]:
        """Return message and options as they are to be written."""
        extra = self.extra
        if self.merge_extra and isinstance(kwargs.get("extra"), dict):
            extra = {**cast("dict[str, object]", extra or {}), **cast("dict[str, object]", kwargs["extra"])}
        return msg, {**kwargs, "extra": extra}

    def setLevel(self, level: object) -> None:
        """Leave out records below ``level``, of the logger as well."""
        _logger_of(self).setLevel(level)

    def getEffectiveLevel(self) -> int:
        """Return the level in force."""
        return _logger_of(self).getEffectiveLevel()

    def isEnabledFor(self, level: object) -> bool:
        """Whether a record of this level would be written."""
        return _logger_of(self).isEnabledFor(level)

    def log(self, level: object, msg: object, *args: object, **kwargs: object) -> None:
        """Write a record if its level is enabled."""
        logger = _logger_of(self)
        if not logger.isEnabledFor(level):
            return
        read: Callable[[object, str], Any] = logger.reader()
        each: object = self
        while each is not logger:
            msg, kwargs = read(each, "process")(msg, dict(kwargs))
            each = cast(LoggerAdapter, each).logger
        logger.log(level, msg, *args, **kwargs)

    def debug(self, msg: object, *args: object, **kwargs: object) -> None:
        """Write a record of level DEBUG."""
        self.log(10, msg, *args, **kwargs)

    def info(self, msg: object, *args: object, **kwargs: object) -> None:
        """Write a record of level INFO."""
        self.log(20, msg, *args, **kwargs)

    def warning(self, msg: object, *args: object, **kwargs: object) -> None:
        """Write a record of level WARNING."""
        self.log(30, msg, *args, **kwargs)

    def error(self, msg: object, *args: object, **kwargs: object) -> None:
        """Write a record of level ERROR."""
        self.log(40, msg, *args, **kwargs)

    def exception(self, msg: object, *args: object, **kwargs: object) -> None:
        """Write a record of level ERROR with the exception being handled."""
        self.log(40, msg, *args, **{"exc_info": True, **kwargs})

    def critical(self, msg: object, *args: object, **kwargs: object) -> None:
        """Write a record of level CRITICAL."""
        self.log(50, msg, *args, **kwargs)


_MOST_ADAPTERS = 20


def _logger_of(adapter: LoggerAdapter) -> Logger:
    each: object = adapter
    for _ in range(_MOST_ADAPTERS):
        if type(each) is Logger:
            return each
        if not isinstance(each, LoggerAdapter):
            break
        each = each.logger
    raise TypeError("write LoggerAdapter(logging.getLogger(name), {...})")
