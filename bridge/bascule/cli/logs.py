"""The operator's log on standard error: errors only, and nothing a script chose can act on the terminal."""

from __future__ import annotations

import logging

from bascule.bridge.display import show_block


class _SafeFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return show_block(super().format(record))


def keep_log_safe() -> None:
    """Send Bascule's log to standard error, made safe to show; done once per process."""
    log = logging.getLogger("bascule")
    if any(isinstance(handler.formatter, _SafeFormatter) for handler in log.handlers):
        return
    handler = logging.StreamHandler()
    handler.setLevel(logging.ERROR)
    handler.setFormatter(_SafeFormatter("bascule: %(levelname)s %(name)s: %(message)s"))
    log.addHandler(handler)
    log.propagate = False
